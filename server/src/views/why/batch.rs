//! Why a batch makes no progress: the obstacles of its projects.

use std::collections::BTreeMap;

use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::batch::{Entry, EntryState};

use super::super::View;
use super::{Kind, Reason};
use crate::advice;
use crate::batches::{BatchStanding, SubmitBatch};
use crate::status;

/// The command that continues a batch, if the file of the batch is known.
pub(crate) fn continues_batch(labels: &BTreeMap<String, String>) -> Option<String> {
    let file = labels.get(SubmitBatch::FILE)?;
    Some(format!("{} continues it", advice::command(["batch", file])))
}

impl View<'_> {
    /// One reason for each unfinished project; those that need a person come first.
    pub(super) async fn batch_reasons(&self, batch: &RunId) -> Result<Vec<Reason>, StoreError> {
        let standing = BatchStanding::of(&self.store.published(batch).await?).unwrap_or_default();
        let plan = &standing.view.plan;
        let mut reasons = Vec::new();
        for entry in &plan.projects {
            let state = self.entry_state(batch, entry, standing.published(&entry.name)).await?;
            reasons.extend(self.of_entry(batch, entry, &state).await?);
        }
        if reasons.is_empty() {
            let count = plan.projects.len();
            reasons.push(Reason::of(
                Kind::Done,
                format!("It is done: all features of its {count} projects pass."),
            ));
        }
        reasons.sort_by_key(|reason| !reason.kind.needs_person());
        // Projects that need a person do so without a process; the others wait for the batch to
        // run.
        if !self.owner.runs(batch) && reasons.iter().any(|reason| reason.kind != Kind::Done) {
            let reason = Reason::of(Kind::NotRunning, "No process runs it now.");
            let summary = self.store.summary(batch).await?;
            let again = summary.and_then(|summary| continues_batch(&summary.labels));
            reasons.push(Reason { remedy: again, ..reason });
        }
        Ok(reasons)
    }

    async fn of_entry(
        &self,
        batch: &RunId,
        entry: &Entry,
        state: &EntryState,
    ) -> Result<Option<Reason>, StoreError> {
        let name = &entry.name;
        let root = &entry.project.root;
        let kind = match state {
            EntryState::Passed => return Ok(None),
            EntryState::Waiting if entry.after.is_empty() => {
                return Ok(Some(Reason::of(Kind::Next, format!("{name} has not started yet."))));
            }
            EntryState::Waiting => {
                let after: Vec<String> = entry.after.iter().map(ToString::to_string).collect();
                let text = format!("{name} waits until all features of {} pass.", after.join(", "));
                return Ok(Some(Reason::of(Kind::Dependency, text)));
            }
            EntryState::Working => {
                let text = if self.owner.runs(batch) {
                    format!("{name} is in progress.")
                } else {
                    format!("{name} is in progress; no process runs the batch.")
                };
                return Ok(Some(Reason::of(Kind::Working, text)));
            }
            EntryState::Refused { reason } => {
                let reason =
                    Reason::of(Kind::List, format!("{name} cannot be worked on: {reason}"));
                return Ok(Some(reason.with_remedy(format!(
                    "{} checks the project",
                    advice::command(["doctor", root])
                ))));
            }
            EntryState::Blocked => Kind::Blocked,
            EntryState::Suspended => Kind::Message,
        };
        let project = RunId::new(entry.project.id.clone()).ok();
        let held = match project {
            Some(project) => self.held(&project).await?,
            None => Vec::new(),
        };
        let (features, reasons): (Vec<String>, Vec<String>) = held.into_iter().unzip();
        let details =
            if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let reason = Reason::of(kind, format!("{name} needs attention{details}."));
        Ok(Some(
            reason
                .with_features(features)
                .with_remedy(format!("{} shows the details", advice::command(["status", root]))),
        ))
    }

    /// The features of a project that need a person, with the reason; else the project itself.
    async fn held(&self, project: &RunId) -> Result<Vec<(String, String)>, StoreError> {
        if self.store.summary(project).await?.is_none() {
            return Ok(Vec::new());
        }
        let document = status::of_project(self.store, project, &self.owner, None).await?;
        let held = document.features.into_iter().filter(|line| line.needs_person);
        let reasons = held.map(|line| {
            let reason = line.reason.as_deref().unwrap_or("needs a person");
            (line.id.clone(), format!("{}: {}", line.id, reason.trim_end_matches('.')))
        });
        Ok(reasons.collect())
    }
}
