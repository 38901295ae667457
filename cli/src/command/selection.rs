//! Runs selected by filters instead of names.

use anyhow::Result;
use longhaul_server::Client;
use longhaul_server::RunKind;
use longhaul_server::views::list::{ListRuns, RunLine};

use super::named;
use crate::arguments::Filter;
use crate::exit::usage;

/// Which runs a verb can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Open runs.
    Open,
    /// Runs that have ended.
    Ended,
    /// Both.
    All,
}

/// The runs that match all filters, by id, and that the verb can act on unless a filter names a
/// status; no run that a later run of its feature superseded.
pub(super) async fn select(
    client: &Client,
    filters: &[Filter],
    reach: Reach,
) -> Result<Vec<RunLine>> {
    let is_open = reach == Reach::Open;
    let mut query = ListRuns { limit: usize::MAX, is_open, ..ListRuns::default() };
    for filter in filters {
        let is_repeated = match filter {
            Filter::Project(name) => {
                query.project.replace(named::project(client, name).await?).is_some()
            }
            Filter::Status(status) => {
                query.is_open = false;
                query.status.push(*status);
                query.status.len() > 1
            }
            Filter::Kind(kind) => query.kind.replace(kind.clone()).is_some(),
            Filter::Feature(id) => query.feature.replace(id.clone()).is_some(),
            Filter::Label(key, value) => {
                query.labels.push((key.clone(), value.clone()));
                false
            }
        };
        if is_repeated {
            return Err(usage("a filter names its key twice: only labels may be repeated"));
        }
    }
    if query.feature.is_some() {
        // The order of a feature reaches its sessions.
        query.kind.get_or_insert(RunKind::Feature);
    }
    let has_status = !query.status.is_empty();
    let mut runs = super::call(client, query).await?.runs;
    if reach == Reach::Ended && !has_status {
        runs.retain(|run| run.ended_at.is_some());
    }
    runs.sort_unstable_by(|a, b| a.header.run.cmp(&b.header.run));
    Ok(runs)
}

/// Drops runs whose project is selected too: its order reaches them anyway.
pub(super) fn without_covered(mut runs: Vec<RunLine>) -> Vec<RunLine> {
    let is_project = |run: &RunLine| run.workflow == RunKind::Project;
    let projects: Vec<String> = runs
        .iter()
        .filter(|run| is_project(run))
        .filter_map(|run| run.header.project.clone())
        .collect();
    runs.retain(|run| {
        is_project(run) || run.header.project.as_ref().is_none_or(|id| !projects.contains(id))
    });
    runs
}
