//! What a batch remembers, and what it publishes of that.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, FeatureId};

use super::{Now, Plan, Submit};

/// Where a project of a batch stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProjectState {
    /// For others, or for a place.
    #[default]
    Waiting,
    /// It is worked on, or is to be.
    Working,
    /// All its features pass.
    Passed,
    /// A feature is blocked.
    Blocked,
    /// A person or a limit is waited for.
    Suspended,
    /// It cannot be worked on.
    Refused {
        /// Why.
        reason: String,
    },
}

impl ProjectState {
    const PREFIX: &'static str = "project/";

    /// The key that the state of a project is published under.
    pub fn key(name: &FeatureId) -> String {
        format!("{}{name}", Self::PREFIX)
    }

    /// Its word.
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
    /// What is to be done.
    pub plan: Plan,
    /// The last submission that was taken in.
    pub submitted: String,
}

impl BatchView {
    /// The key that it is published under.
    pub const KEY: &'static str = "batch";
}

/// Input of the batch workflow: what it remembered when it went on as new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchInput {
    view: BatchView,
    states: BTreeMap<FeatureId, ProjectState>,
}

/// The memory of a batch.
pub(super) struct Memory {
    view: BatchView,
    order: Backlog,
    states: BTreeMap<FeatureId, ProjectState>,
    changed: BTreeSet<FeatureId>,
    is_view_changed: bool,
}

impl Memory {
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

    /// Takes a plan in: what is new in it is added; what was begun before is looked at again. One
    /// that changes what is known was refused to whoever submitted it.
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
            .filter(|(_, state)| **state != ProjectState::Waiting)
            .map(|(name, _)| name.clone())
            .collect();
        for name in begun {
            self.states.insert(name.clone(), ProjectState::Working);
            self.changed.insert(name);
        }
        for entry in &self.view.plan.projects {
            if !self.states.contains_key(&entry.name) {
                self.states.insert(entry.name.clone(), ProjectState::Waiting);
                self.changed.insert(entry.name.clone());
            }
        }
        self.view.submitted = submit.id;
        self.is_view_changed = true;
    }

    pub(super) fn now(&mut self, now: Now) {
        if now.submission == self.view.submitted && self.states.contains_key(&now.name) {
            self.set(&now.name, now.state);
        }
    }

    /// Marks those as worked on whose turn has come.
    pub(super) fn begin_what_may(&mut self) {
        let working = self.states.values().filter(|state| **state == ProjectState::Working).count();
        let room =
            self.view.plan.at_once.map_or(usize::MAX, |most| most as usize).saturating_sub(working);
        for _ in 0..room {
            let Some(name) = self.order.start_next() else { return };
            self.set(&name, ProjectState::Working);
        }
    }

    pub(super) fn state(&self, name: &FeatureId) -> Option<&ProjectState> {
        self.states.get(name)
    }

    pub(super) fn take_changed(&mut self) -> BTreeSet<FeatureId> {
        std::mem::take(&mut self.changed)
    }

    pub(super) fn take_view(&mut self) -> Option<BatchView> {
        std::mem::take(&mut self.is_view_changed).then(|| self.view.clone())
    }

    /// What has passed once stays so in the order: what came after it has begun.
    fn set(&mut self, name: &FeatureId, state: ProjectState) {
        let _ = match state {
            ProjectState::Waiting => Ok(()),
            ProjectState::Passed => self.order.mark_passed(name),
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
