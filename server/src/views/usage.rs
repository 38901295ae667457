//! The ledger of turns, tokens and cost, folded from events.
//!
//! Each token is counted once, in the history of a session run: at the answer of a model call, or
//! in the report of another agent than the built-in one.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_activities::prices::Prices;
use longhaul_engine::{Event, RunId, Summary};
use longhaul_workflows::contracts::Usage;
use longhaul_workflows::feature::{COPIED, FORKED_FROM};
use longhaul_workflows::projection::SessionView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Name, View, project_and_feature};
use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;

/// The ledger of all projects, or of the runs that a name covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowUsage {
    /// The project, feature, run or session; absent: all.
    pub within: Option<Name>,
    /// The subject of a row.
    pub by: UsageBy,
}

/// The subject of a row of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// A feature of a project.
    #[default]
    Feature,
    /// A project.
    Project,
    /// A model.
    Model,
    /// A day in UTC.
    Day,
    /// A provider of models; the driver of an agent that is a program.
    Provider,
    /// A label of the run or of its project: `KEY=VALUE`. Usage without labels is in the row
    /// `none`, and that with several is in the row of each.
    Label,
}

/// The ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageDocument {
    /// The subject of a row.
    pub by: UsageBy,
    /// The rows, in the order of their subjects.
    pub rows: Vec<UsageRow>,
    /// The sum of the rows.
    pub total: UsageSum,
    /// How many runs have no history any more because they were pruned; their tokens are missing.
    pub pruned_runs: usize,
}

/// A row of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// The subject: `PROJECT/FEATURE`, the id of a project, the name of a model, a date.
    pub name: String,
    /// Its sums.
    #[serde(flatten)]
    pub sum: UsageSum,
}

/// Sums of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSum {
    /// Answers of models, without summaries of conversations.
    pub turns: u64,
    /// Tokens.
    pub tokens: Usage,
    /// The cost in US dollars, as far as it is known: the agent states it, or the model has a
    /// price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The tokens without a known cost.
    pub unpriced_tokens: u64,
}

/// An entry of the ledger.
#[derive(Debug, Clone, Default)]
struct Entry {
    at: DateTime<Utc>,
    model: String,
    provider: String,
    turns: u64,
    usage: Usage,
    /// The recorded cost in millionths of a US dollar.
    stated_micros: Option<u64>,
}

request!(ShowUsage, "usage" -> UsageDocument, |self, service| {
    let prices = Prices::load(service.log.directory()).map_err(RequestError::refused)?;
    service.view().usage(&self, &prices).await
});

impl View<'_> {
    /// The use of the sessions of a run; `None` if nothing was counted.
    pub(super) async fn used_by(
        &self,
        run: &RunId,
        prices: &Prices,
    ) -> Result<Option<UsageSum>, RequestError> {
        let name = Name { text: run.to_string(), project: None, whole: true };
        let show = ShowUsage { within: Some(name), by: UsageBy::Feature };
        let total = self.usage(&show, prices).await?.total;
        Ok(Some(total).filter(|total| *total != UsageSum::default()))
    }

    pub(super) async fn usage(
        &self,
        show: &ShowUsage,
        prices: &Prices,
    ) -> Result<UsageDocument, RequestError> {
        let within = self.scope(show.within.as_ref()).await?;
        let mut rows: BTreeMap<String, UsageSum> = BTreeMap::new();
        let mut document = UsageDocument { by: show.by, ..UsageDocument::default() };
        for (run, summary) in self.within(&within).await? {
            if RunKind::of(&summary) != RunKind::Session {
                continue;
            }
            if summary.pruned_at().is_some() {
                document.pruned_runs += 1;
                continue;
            }
            let labels = self.labels_of(&run).await?;
            for entry in of_session(&self.store.read(&run, 0).await?) {
                let names = match show.by {
                    UsageBy::Label => labels.clone(),
                    by => vec![subject(by, &run, &summary, &entry)],
                };
                for name in names {
                    rows.entry(name).or_default().add(&entry, prices);
                }
                document.total.add(&entry, prices);
            }
        }
        document.rows = rows.into_iter().map(|(name, sum)| UsageRow { name, sum }).collect();
        Ok(document)
    }
}

impl View<'_> {
    /// The labels of a run and of those above it, as `KEY=VALUE`. The nearest value of a key
    /// counts.
    async fn labels_of(&self, run: &RunId) -> Result<Vec<String>, RequestError> {
        let mut labels = BTreeMap::new();
        let mut next = Some(run.clone());
        while let Some(run) = next {
            if let Some(summary) = self.store.summary(&run).await? {
                let internal = [COPIED, FORKED_FROM];
                let of_people =
                    summary.labels.into_iter().filter(|(key, _)| !internal.contains(&key.as_str()));
                for (key, value) in of_people {
                    labels.entry(key).or_insert(value);
                }
            }
            next = run.above();
        }
        let mut labels: Vec<_> =
            labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        if labels.is_empty() {
            labels.push("none".into());
        }
        Ok(labels)
    }
}

/// The row of an entry.
fn subject(by: UsageBy, run: &RunId, summary: &Summary, entry: &Entry) -> String {
    let (project, feature) = project_and_feature(run, summary);
    let project = project.unwrap_or_else(|| run.to_string());
    match by {
        UsageBy::Feature => {
            feature.map_or_else(|| project.clone(), |feature| format!("{project}/{feature}"))
        }
        UsageBy::Project => project,
        UsageBy::Provider if entry.provider.is_empty() => "unknown".into(),
        UsageBy::Provider => entry.provider.clone(),
        UsageBy::Label => String::new(),
        UsageBy::Model if entry.model.is_empty() => "unknown".into(),
        UsageBy::Model => entry.model.clone(),
        UsageBy::Day => entry.at.format("%F").to_string(),
    }
}

impl UsageSum {
    fn add(&mut self, entry: &Entry, prices: &Prices) {
        self.turns += entry.turns;
        self.tokens += entry.usage;
        #[expect(clippy::cast_precision_loss, reason = "amounts of money are below 2^52")]
        let stated = entry.stated_micros.map(|micros| micros as f64);
        match stated.or_else(|| prices.cost_micros(&entry.model, &entry.usage)) {
            Some(micros) => *self.cost_usd.get_or_insert(0.0) += micros / 1e6,
            None => self.unpriced_tokens += entry.usage.total(),
        }
    }
}

/// The uses of models in the history of a session run. A command states neither turns nor tokens
/// nor cost.
fn of_session(events: &[Event]) -> Vec<Entry> {
    let answers = SessionView::of(events).uses.into_iter().map(|answer| Entry {
        at: answer.at,
        model: answer.model,
        provider: answer.provider,
        turns: answer.turns.into(),
        usage: answer.usage,
        stated_micros: answer.cost_micros,
    });
    let is_stated =
        |entry: &Entry| entry.turns > 0 || !entry.usage.is_zero() || entry.stated_micros.is_some();
    answers.filter(is_stated).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_engine::event::Cause;
    use longhaul_engine::{Activity, EventKind, Payload, Slot};
    use longhaul_workflows::contracts::{
        AgentFacts, AgentOutcome, AgentProgress, RunSession, SessionEnding, SessionReport,
    };
    use longhaul_workflows::session::SessionWorkflow;

    use super::*;

    fn event(position: u64, kind: EventKind) -> Event {
        Event { position, at: DateTime::UNIX_EPOCH, kind }
    }

    fn begun(position: u64) -> Event {
        let kind = EventKind::RunStarted {
            workflow: SessionWorkflow::NAME.into(),
            input: Payload::null(),
            parent: None,
            labels: BTreeMap::new(),
            cause: Cause::Started,
        };
        event(position, kind)
    }

    fn slot(number: u32) -> Slot {
        Slot { command: number, call: 0, calls: 1 }
    }

    fn started(position: u64, number: u32) -> Event {
        let slot = slot(number);
        let name = RunSession::NAME.to_owned();
        let input = Payload::null();
        event(position, EventKind::ActivityStarted { slot, name, input, attempt: 1 })
    }

    fn progressed(position: u64, number: u32, output: u64) -> Event {
        let usage = Usage { output, ..Usage::default() };
        let progress = AgentProgress { usage, ..AgentProgress::default() };
        let details = Payload::of(&progress);
        event(position, EventKind::ActivityProgressed { slot: slot(number), details })
    }

    fn completed(position: u64, number: u32, output: u64) -> Event {
        let facts = AgentFacts {
            driver: "claude".into(),
            version: None,
            model: Some("opus".into()),
            conversation: None,
            outcome: AgentOutcome::Completed,
            usage: Usage { output, ..Usage::default() },
            turns: Some(2),
            cost_micros: Some(5),
            active_ms: None,
            refused: Vec::new(),
            granted: 0,
            window: None,
        };
        let report = SessionReport {
            agent: Some(facts),
            ..SessionReport::without_agent(SessionEnding::ClaimsDone)
        };
        let kind = EventKind::ActivityCompleted {
            slot: slot(number),
            name: RunSession::NAME.into(),
            input: Payload::null(),
            attempt: 1,
            output: Payload::of(&report),
        };
        event(position, kind)
    }

    #[track_caller]
    fn expect(events: &[Event], outputs: &[u64]) {
        let entries = of_session(events);
        let found: Vec<u64> = entries.iter().map(|entry| entry.usage.output).collect();
        assert_eq!(found, outputs);
    }

    #[test]
    fn a_report_replaces_the_progress_of_its_session() {
        let events = [begun(0), started(1, 1), progressed(2, 1, 7), completed(3, 1, 9)];
        expect(&events, &[9]);
        expect(&events[..3], &[7]);
        expect(&events[..2], &[]);
    }

    #[test]
    fn a_restarted_session_was_paid_for_twice() {
        let events = [
            begun(0),
            started(1, 1),
            progressed(2, 1, 7),
            begun(3),
            started(4, 1),
            completed(5, 1, 11),
        ];
        expect(&events, &[7, 11]);
    }
}
