//! The report as JUnit XML: a suite for each project, a case for each feature.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use longhaul_engine::RunId;
use longhaul_server::RunKind;
use longhaul_server::status::FeatureLine;
use longhaul_server::views::{ListRuns, Name, Why};
use longhaul_server::{BatchStanding, Client};
use longhaul_workflows::projection::State;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::command::call;

use super::report::{ProjectReport, Report};

/// The details of features, by project and feature.
pub(super) type RunDetailsByFeature = BTreeMap<(String, String), RunDetails>;

/// The details of a feature that only its runs have.
#[derive(Default)]
pub(super) struct RunDetails {
    /// The sum of the times of its closed runs.
    time: Option<Duration>,
    /// Why it has not passed, with the end of the output of the failed check or session.
    output: String,
}

/// Reads the details of all features.
pub(super) async fn details(
    client: &Client,
    standing: &BatchStanding,
) -> Result<RunDetailsByFeature> {
    let mut details = RunDetailsByFeature::new();
    for document in standing.projects.values() {
        let mut times = times(client, &document.project).await?;
        for feature in &document.features {
            let time = times.remove(&feature.id);
            let output = output(client, &document.project, feature).await;
            let key = (document.project.clone(), feature.id.clone());
            details.insert(key, RunDetails { time, output });
        }
    }
    Ok(details)
}

/// The whole document.
pub(super) fn xml(report: &Report, details: &RunDetailsByFeature) -> Result<String> {
    let mut junit = quick_junit::Report::new(report.batch.as_str());
    let mut total = Duration::ZERO;
    let none = RunDetails::default();
    for project in &report.projects {
        let mut suite = TestSuite::new(project.name.as_str());
        let mut sum = Duration::ZERO;
        for feature in &project.features {
            let key = (project.project.clone(), feature.id.clone());
            let details = details.get(&key).unwrap_or(&none);
            sum += details.time.unwrap_or_default();
            suite.add_test_case(case(project, feature, details));
        }
        suite.set_time(sum);
        total += sum;
        junit.add_test_suite(suite);
    }
    junit.set_time(total);
    Ok(junit.to_string()?)
}

/// How long the runs of each feature took.
async fn times(client: &Client, project: &str) -> Result<BTreeMap<String, Duration>> {
    let mut times: BTreeMap<String, Duration> = BTreeMap::new();
    let query = ListRuns {
        project: RunId::new(project.to_owned()).ok(),
        kind: Some(RunKind::Feature),
        limit: usize::MAX,
        ..ListRuns::default()
    };
    for run in call(client, query).await?.runs {
        let took = run.ended_at.and_then(|ended_at| (ended_at - run.started_at).to_std().ok());
        if let (Some(feature), Some(took)) = (run.header.feature, took) {
            *times.entry(feature).or_default() += took;
        }
    }
    Ok(times)
}

/// The explanation of a feature that has not passed.
async fn output(client: &Client, project: &str, feature: &FeatureLine) -> String {
    if feature.passes {
        return String::new();
    }
    let of = RunId::new(project.to_owned()).ok();
    let name = Name { text: feature.id.clone(), project: of, whole: true };
    // A project that was refused is not in the log.
    let Ok(document) = client.call(Why { name, list: None }).await else { return String::new() };
    let lines = document.reasons.iter().flat_map(|reason| {
        std::iter::once(reason.text.clone())
            .chain(reason.remedy.iter().map(|remedy| format!("→ {remedy}")))
            .chain(reason.output.iter().map(|line| format!("  {line}")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn case(project: &ProjectReport, feature: &FeatureLine, details: &RunDetails) -> TestCase {
    let reason = feature.reason.as_deref().unwrap_or_default();
    let status = feature.status.as_str();
    let explained = || details.output.lines().next().map(|line| format!("{status}: {line}"));
    let first = reason.lines().next().filter(|line| !line.is_empty()).map(str::to_owned);
    let first = first.or_else(explained).unwrap_or_else(|| status.to_owned());
    let text = if details.output.is_empty() { reason } else { &details.output };
    let status = if feature.passes {
        TestCaseStatus::success()
    } else if is_failure(feature) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(first).set_type(feature.status.as_str()).set_description(text);
        status
    } else {
        let mut status = TestCaseStatus::skipped();
        status.set_message(first);
        status
    };
    let mut case = TestCase::new(feature.id.as_str(), status);
    case.set_classname(project.name.as_str());
    if let Some(time) = details.time {
        case.set_time(time);
    }
    if !feature.passes && !text.is_empty() {
        case.set_system_out(text);
    }
    if !feature.findings.is_empty() {
        case.set_system_err(feature.findings.join("\n"));
    }
    case
}

fn is_failure(feature: &FeatureLine) -> bool {
    matches!(feature.status, State::Blocked | State::Failed)
}
