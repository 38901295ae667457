//! The outcome of a batch: one document, printed as a table, as JSON, or as JUnit XML.

use std::collections::BTreeMap;

use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::EntryState;
use longhaul_workflows::projection::{ProjectState, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::command::terminal::{self, Terminal, counted};
use crate::exit::Exit;
use crate::status_text::first_line;
use longhaul_server::status::{Counts, FeatureLine, StatusDocument};

use super::settled::SettledBatch;

/// The outcome of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct Report {
    /// The id of the batch.
    pub(super) batch: String,
    /// How many projects are in each state.
    counts: BTreeMap<&'static str, usize>,
    /// Whether the batch itself is paused or stuck.
    is_held: bool,
    /// The projects in the order of the file.
    pub(super) projects: Vec<ProjectReport>,
}

/// The outcome of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProjectReport {
    /// Its name in the batch.
    pub(super) name: String,
    /// Its id, which is also the id of its run.
    pub(super) project: String,
    /// The top of its checkout.
    root: String,
    /// Its state.
    pub(super) state: ProjectState,
    /// Why it makes no progress, or what needs a person.
    reason: Option<String>,
    /// The state that the batch recorded.
    #[serde(skip)]
    entry: EntryState,
    /// Agents of projects with a higher value start first.
    priority: i64,
    /// Its labels.
    labels: BTreeMap<String, String>,
    /// The names of the projects that had to pass first.
    after: Vec<String>,
    /// Why finished work waits on `longhaul/next`.
    waits_on_next: Option<String>,
    /// Feature counts by state.
    counts: Counts,
    /// Its features, in the order of the list.
    pub(super) features: Vec<FeatureLine>,
}

impl Report {
    pub(super) fn new(batch: &str, done: SettledBatch) -> Self {
        let SettledBatch { mut standing, is_held } = done;
        let mut projects = Vec::new();
        for entry in std::mem::take(&mut standing.view.plan.projects) {
            let state = standing.state(&entry.name);
            let Some(document) = standing.projects.remove(&entry.name) else { continue };
            let StatusDocument { project, root, counts, features, waits_on_next, reason, .. } =
                document;
            let recorded = standing.states.remove(&entry.name).unwrap_or_default();
            let reason = match &recorded {
                EntryState::Refused { reason } => Some(reason.clone()),
                EntryState::Waiting if !entry.after.is_empty() => {
                    let after: Vec<&str> = entry.after.iter().map(FeatureId::as_str).collect();
                    Some(format!("after {}", after.join(", ")))
                }
                _ => reason,
            };
            projects.push(ProjectReport {
                state,
                reason,
                entry: recorded,
                name: entry.name.to_string(),
                project,
                root,
                priority: entry.priority,
                labels: entry.labels,
                after: entry.after.iter().map(ToString::to_string).collect(),
                waits_on_next,
                counts,
                features,
            });
        }
        let mut counts = BTreeMap::new();
        for project in &projects {
            *counts.entry(State::from(project.state).word()).or_default() += 1;
        }
        Self { batch: batch.to_owned(), counts, is_held, projects }
    }

    /// The exit code of the started projects. Waiting projects count only if no project started.
    pub(super) fn exit(&self) -> Exit {
        let exit = |project: &ProjectReport| match &project.entry {
            EntryState::Waiting => None,
            EntryState::Passed => Some(Exit::Ok),
            EntryState::Blocked => Some(Exit::Finding),
            EntryState::Suspended | EntryState::Working => Some(Exit::Suspended),
            EntryState::Refused { .. } => Some(Exit::Usage),
        };
        let exits: Vec<Exit> = self.projects.iter().filter_map(exit).collect();
        let is_complete = exits.len() == self.projects.len();
        match Exit::of_all(exits) {
            // Projects that wait without a failed one were held back by a person.
            _ if self.is_held => Exit::Suspended,
            Exit::Ok if !is_complete => Exit::Suspended,
            exit => exit,
        }
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let terminal = Terminal::here();
        let row = |project: &ProjectReport| {
            let pass = format!("{}/{}", project.counts.passed, project.counts.total);
            vec![
                project.name.clone(),
                terminal.state(project.state),
                pass,
                terminal::safe(&first_line(project.reason.as_deref().unwrap_or_default())),
            ]
        };
        let rows: Vec<_> = self.projects.iter().map(row).collect();
        let counts: Vec<_> = self
            .counts
            .iter()
            .map(|(state, count)| format!("{count} {}", state.replace('_', " ")))
            .collect();
        let head = format!(
            "batch {}: {}, {}",
            self.batch,
            counted(self.projects.len() as u64, "project"),
            counts.join(", ")
        );
        format!(
            "{}\n{}",
            terminal.fitted(&head),
            terminal.table(&["PROJECT", "STATE", "PASS", ""], &rows)
        )
    }
}
