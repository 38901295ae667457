//! The state of a batch, and the part that it publishes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, FeatureId};

use super::{Plan, StateReport, Submit};

/// The state of a project of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EntryState {
    /// It waits for other projects or a free slot.
    #[default]
    Waiting,
    /// It is in progress or ready.
    Working,
    /// All its features pass.
    Passed,
    /// A feature is blocked.
    Blocked,
    /// It waits for a person or a limit.
    Suspended,
    /// It cannot continue.
    Refused {
        /// The reason.
        reason: String,
    },
}

impl EntryState {
    const PREFIX: &'static str = "project/";

    /// The key under which the state of a project is published.
    pub fn key(name: &FeatureId) -> String {
        format!("{}{name}", Self::PREFIX)
    }

    /// Whether it makes no progress without a person.
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::Blocked | Self::Suspended | Self::Refused { .. })
    }

    /// The name of the state.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Passed => "passed",
            Self::Blocked => "blocked",
            Self::Suspended => "suspended",
            Self::Refused { .. } => "refused",
        }
    }
}

/// Published under [`BatchView::KEY`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchView {
    /// The plan.
    pub plan: Plan,
    /// The last submission that was applied.
    pub submitted: String,
}

impl BatchView {
    /// The key under which it is published.
    pub const KEY: &'static str = "batch";
}

/// Input of the batch workflow: its state across a continue-as-new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchInput {
    view: BatchView,
    states: BTreeMap<FeatureId, EntryState>,
}

/// The state of a batch.
pub(super) struct BatchRun {
    view: BatchView,
    order: Backlog,
    states: BTreeMap<FeatureId, EntryState>,
    changed: BTreeSet<FeatureId>,
    is_view_changed: bool,
}

impl BatchRun {
    pub(super) fn from_input(input: BatchInput) -> Self {
        let mut memory = Self {
            order: input.view.plan.order().unwrap_or_else(|_| empty()),
            view: input.view,
            states: BTreeMap::new(),
            changed: BTreeSet::new(),
            is_view_changed: false,
        };
        for (name, state) in input.states {
            memory.set(&name, state);
        }
        memory.changed.clear();
        memory
    }

    pub(super) fn into_input(self) -> BatchInput {
        BatchInput { view: self.view, states: self.states }
    }

    pub(super) fn len(&self) -> usize {
        self.view.plan.projects.len()
    }

    /// Applies a plan: new projects are added, earlier ones are checked again. The submitter was
    /// already refused a plan that changes known parts.
    pub(super) fn submit(&mut self, submit: Submit) {
        if let Ok(plan) = self.view.plan.with_additions(&submit.plan)
            && let Ok(order) = plan.order()
        {
            self.order = order;
            self.view.plan = plan;
            for (name, state) in std::mem::take(&mut self.states) {
                self.set(&name, state);
            }
        }
        let begun: Vec<FeatureId> = self
            .states
            .iter()
            .filter(|(_, state)| **state != EntryState::Waiting)
            .map(|(name, _)| name.clone())
            .collect();
        for name in begun {
            self.states.insert(name.clone(), EntryState::Working);
            self.changed.insert(name);
        }
        for entry in &self.view.plan.projects {
            if !self.states.contains_key(&entry.name) {
                self.states.insert(entry.name.clone(), EntryState::Waiting);
                self.changed.insert(entry.name.clone());
            }
        }
        self.view.submitted = submit.id;
        self.is_view_changed = true;
    }

    pub(super) fn report(&mut self, report: StateReport) {
        if report.submission == self.view.submitted && self.states.contains_key(&report.name) {
            self.set(&report.name, report.state);
        }
    }

    /// Starts the projects whose turn has come.
    pub(super) fn start_ready_projects(&mut self) {
        let working = self.states.values().filter(|state| **state == EntryState::Working).count();
        let room =
            self.view.plan.at_once.map_or(usize::MAX, |most| most as usize).saturating_sub(working);
        for _ in 0..room {
            let Some(name) = self.order.start_next() else { return };
            self.set(&name, EntryState::Working);
        }
    }

    pub(super) fn state(&self, name: &FeatureId) -> Option<&EntryState> {
        self.states.get(name)
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<FeatureId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn take_view(&mut self) -> Option<BatchView> {
        std::mem::take(&mut self.is_view_changed).then(|| self.view.clone())
    }

    /// A project that has passed stays passed in the order: its dependents have begun.
    fn set(&mut self, name: &FeatureId, state: EntryState) {
        let _ = match state {
            EntryState::Waiting => Ok(()),
            EntryState::Passed => self.order.mark_passed(name),
            _ if self.order.state(name) == Some(&crate::backlog::FeatureState::Passed) => Ok(()),
            _ => self.order.mark_in_progress(name),
        };
        self.states.insert(name.clone(), state);
        self.changed.insert(name.clone());
    }
}

fn empty() -> Backlog {
    Backlog::new(Vec::new()).expect("nothing is wrong with no projects")
}
