//! Renders the files that show the state and the history of a project, from the fold.

use std::fmt::Write as _;

use longhaul_engine::RunId;
use longhaul_workflows::backlog::{Feature, FeatureId, FeatureStatus};
use longhaul_workflows::narrative::Kind;
use longhaul_workflows::project::{Phase, ProjectSummary};
use serde::Serialize;

use super::fold::Fold;
use super::text::{iso, one_line, precise};

/// `state.json`: for programs. `None` until the project has published a view.
pub(super) fn state(fold: &Fold) -> Option<String> {
    let view = fold.project.view.summary.as_ref()?;
    let features = fold
        .project
        .view
        .backlog
        .iter()
        .map(|feature| FeatureEntry::of(fold, &feature.id))
        .collect();
    Some(json(&State {
        schema: "longhaul.state/1",
        project: &fold.project.id,
        phase: view.phase,
        target: &view.target,
        updated_at: fold.last_at.map(precise),
        features,
        counts: Counts::of(view),
    }))
}

/// `progress.md`: for people. `None` until the project has published a view.
pub(super) fn progress(fold: &Fold) -> Option<String> {
    let view = fold.project.view.summary.as_ref()?;
    let counts = Counts::of(view);
    let mut text = format!("# Progress: {}\n\n", fold.project.id);
    if let Some(at) = fold.last_at {
        let _ = writeln!(text, "> Last updated: {}\n", iso(at));
    }
    let _ = writeln!(
        text,
        "**{} of {} features pass**; {} in progress, {} pending, {} blocked.\n",
        counts.passed, counts.features, counts.in_progress, counts.pending, counts.blocked
    );
    text.push_str(&phase(view));
    text.push_str(
        "\n| Feature | Name | Status | Sessions | Now | Reason |\n|---|---|---|---|---|---|\n",
    );
    for Feature { id, name, .. } in &fold.project.view.backlog {
        let known = fold.project.view.feature(id);
        let status = known.map_or(FeatureStatus::Pending, |known| known.status);
        let now = fold.running(id).and_then(|run| run.view.progress.step()).unwrap_or_default();
        let reason = known.and_then(|known| known.reason.as_deref()).unwrap_or_default();
        let cells = [
            &id.to_string(),
            name,
            &status.to_string(),
            &fold.sessions_of(id).to_string(),
            &now,
            reason,
        ];
        let cells = cells.map(|cell| one_line(cell, 120).replace('|', "\\|"));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    Some(text)
}

/// The project's phase, and its obstacle.
fn phase(view: &ProjectSummary) -> String {
    let mut text = match (view.phase, &view.halted) {
        (Phase::Halted, _) | (_, Some(_)) => {
            let request = view.halted.clone().unwrap_or_default();
            let by = if request.by.is_empty() {
                String::new()
            } else {
                format!(" by {}", one_line(&request.by, 120))
            };
            let why = if request.why.is_empty() {
                ".".to_owned()
            } else {
                format!(": {}", one_line(&request.why, 300))
            };
            format!("The project is halted{by}{why}\n")
        }
        (Phase::Working, None) => "The project is being worked on.\n".to_owned(),
        (Phase::Idle, None) if view.features == view.passed => "All features passed.\n".to_owned(),
        (Phase::Idle, None) => "The remaining features need a person.\n".to_owned(),
    };
    if let Some(problem) = &view.problem {
        let _ = writeln!(text, "\nThe list or the settings are wrong: {}", one_line(problem, 600));
    }
    if let Some(why) = &view.waits_on_next {
        let _ = writeln!(text, "\nFinished work waits on `longhaul/next`: {}", one_line(why, 300));
    }
    text
}

/// `session-log.txt`; `None` if it is empty.
pub(super) fn session_log(fold: &Fold) -> Option<String> {
    let lines = fold.log.iter().flat_map(|(_, line)| [line.as_str(), "\n"]);
    (!fold.log.is_empty()).then(|| lines.collect())
}

/// `history.json`; `None` if it is empty.
pub(super) fn history(fold: &Fold) -> Option<String> {
    let entries: Vec<HistoryEntry> = fold
        .history
        .iter()
        .map(|(key, entry)| HistoryEntry {
            timestamp: precise(key.at),
            feature: entry.feature.as_ref(),
            run: &key.run,
            position: key.position,
            kind: entry.kind,
            text: &entry.text,
        })
        .collect();
    (!entries.is_empty()).then(|| json(&entries))
}

/// JSON with two spaces for each level and a newline at the end.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    let text = serde_json::to_string_pretty(value).expect("the keys of these files are text");
    format!("{text}\n")
}

#[derive(Serialize)]
struct State<'a> {
    schema: &'static str,
    project: &'a RunId,
    phase: Phase,
    target: &'a str,
    updated_at: Option<String>,
    features: Vec<FeatureEntry<'a>>,
    counts: Counts,
}

#[derive(Serialize)]
struct Counts {
    features: usize,
    passed: usize,
    in_progress: usize,
    pending: usize,
    blocked: usize,
}

impl Counts {
    fn of(view: &ProjectSummary) -> Self {
        let begun = view.passed + view.in_progress + view.blocked;
        Self {
            features: view.features,
            passed: view.passed,
            in_progress: view.in_progress,
            pending: view.features.saturating_sub(begun),
            blocked: view.blocked,
        }
    }
}

#[derive(Serialize)]
struct FeatureEntry<'a> {
    id: &'a FeatureId,
    status: FeatureStatus,
    passes: bool,
    run: Option<&'a RunId>,
    sessions: u32,
    reason: Option<&'a str>,
    commit: Option<&'a str>,
}

impl<'a> FeatureEntry<'a> {
    fn of(fold: &'a Fold, id: &'a FeatureId) -> Self {
        let known = fold.project.view.feature(id);
        Self {
            id,
            status: known.map_or(FeatureStatus::Pending, |known| known.status),
            passes: known.is_some_and(|known| known.passes),
            run: known.and_then(|known| known.run.as_ref()),
            sessions: fold.sessions_of(id),
            reason: known.and_then(|known| known.reason.as_deref()),
            commit: known.and_then(|known| known.commit.as_deref()),
        }
    }
}

#[derive(Serialize)]
struct HistoryEntry<'a> {
    timestamp: String,
    feature: Option<&'a FeatureId>,
    run: &'a RunId,
    position: longhaul_engine::Position,
    kind: Kind,
    text: &'a str,
}
