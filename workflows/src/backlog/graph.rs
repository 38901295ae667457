//! Scheduling: the DAG of features and an ordered set of the ready ones.
//!
//! Updates are incremental. Each feature counts its dependencies that have not passed; a state
//! change touches only that feature and its direct dependents.

mod build;
mod cycles;
mod update;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use serde::{Deserialize, Serialize};

use super::error::BacklogError;
use super::feature::{Feature, FeatureId};

pub use cycles::cycles;
pub use update::Changes;

/// The state of a feature, as set by the owner of the backlog.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureState {
    /// Not begun, or returned.
    #[default]
    Pending,
    /// Started.
    InProgress,
    /// Its checks passed.
    Passed,
    /// Waits for a person.
    Blocked(Block),
}

/// Why a feature is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// For programs.
    pub cause: BlockCause,
    /// For people.
    pub reason: String,
}

/// The cause for which a feature is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockCause {
    /// Its run gave it up, or failed.
    Run,
    /// Its run was cancelled.
    Cancelled,
    /// The feature list says so.
    List,
    /// It has no check.
    NoCheck,
    /// A person or a program asked for it.
    Request,
}

/// How many features are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Not begun, including `workable` ones.
    pub pending: usize,
    /// Pending, and every dependency has passed.
    pub workable: usize,
    /// Started.
    pub in_progress: usize,
    /// Done.
    pub passed: usize,
    /// Waiting for a person.
    pub blocked: usize,
}

impl Counts {
    /// All features.
    pub fn total(&self) -> usize {
        self.pending + self.in_progress + self.passed + self.blocked
    }
}

/// The features of a project, with their dependencies and states.
///
/// Every feature begins as pending, whatever the list claims: the caller judges claims. The next
/// feature is a pending one whose dependencies have all passed. Features begun before a crash come
/// first, then higher priority, then the order of the file.
///
/// ```
/// use longhaul_workflows::backlog::{Backlog, Feature, FeatureId};
///
/// let id = |text: &str| FeatureId::new(text).unwrap();
/// let schema = Feature::new(id("schema"), "Tables for users");
/// let login = Feature {
///     depends_on: vec![id("schema")],
///     priority: 9,
///     ..Feature::new(id("login"), "Login")
/// };
/// let mut backlog = Backlog::new(vec![login, schema])?;
///
/// assert_eq!(backlog.start_next(), Some(id("schema")));
/// assert_eq!(backlog.start_next(), None, "login waits");
/// assert_eq!(backlog.waiting_for(&id("login")), [id("schema")]);
/// backlog.mark_passed(&id("schema"))?;
/// assert_eq!(backlog.start_next(), Some(id("login")));
/// # Ok::<(), longhaul_workflows::backlog::BacklogError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Backlog {
    /// Edges go from a dependency to its dependents; the index of a node is its place in the file.
    graph: DiGraph<Node, ()>,
    places: HashMap<FeatureId, NodeIndex>,
    ready: BTreeSet<Rank>,
    counts: Counts,
}

#[derive(Debug, Clone)]
struct Node {
    feature: Feature,
    state: FeatureState,
    /// Begun by an earlier run, so to be finished first.
    resumed: bool,
    /// The number of dependencies that have not passed.
    unmet: usize,
}

/// The sort key of ready features: smaller is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    fresh: bool,
    priority: Reverse<i64>,
    place: NodeIndex,
}

impl Backlog {
    /// Builds the graph; every feature is pending.
    ///
    /// Refuses duplicate ids, missing dependencies, and cycles.
    pub fn new(features: Vec<Feature>) -> Result<Self, BacklogError> {
        build::build(
            features.into_iter().map(|feature| (feature, FeatureState::Pending, false)).collect(),
        )
    }

    /// Takes the next workable feature and marks it as in progress.
    pub fn start_next(&mut self) -> Option<FeatureId> {
        let place = self.ready.first()?.place;
        self.set_state(place, FeatureState::InProgress);
        Some(self.graph[place].feature.id.clone())
    }

    /// The feature that [`start_next`](Self::start_next) would take.
    pub fn peek(&self) -> Option<&FeatureId> {
        self.workable().next()
    }

    /// All workable features, the next one first.
    pub fn workable(&self) -> impl Iterator<Item = &FeatureId> {
        self.ready.iter().map(|rank| &self.graph[rank.place].feature.id)
    }

    /// Marks a feature as in progress, workable or not: for one that already runs.
    pub fn mark_in_progress(&mut self, id: &FeatureId) -> Result<(), BacklogError> {
        self.place(id).map(|place| self.set_state(place, FeatureState::InProgress))
    }

    /// Marks a feature as done; dependents that waited only for it become workable.
    pub fn mark_passed(&mut self, id: &FeatureId) -> Result<(), BacklogError> {
        let place = self.place(id)?;
        self.set_state(place, FeatureState::Passed);
        self.set_resumed(place, false);
        Ok(())
    }

    /// Marks a feature as waiting for a person; its dependents wait too.
    pub fn mark_blocked(&mut self, id: &FeatureId, block: Block) -> Result<(), BacklogError> {
        let place = self.place(id)?;
        self.set_state(place, FeatureState::Blocked(block));
        self.set_resumed(place, false);
        Ok(())
    }

    /// Returns, unblocks or un-passes a feature. Dependents in progress continue.
    pub fn mark_pending(&mut self, id: &FeatureId) -> Result<(), BacklogError> {
        self.place(id).map(|place| self.set_state(place, FeatureState::Pending))
    }

    /// Records that work on a feature began in an earlier run: while pending it precedes all new
    /// ones. A pass or a block removes the mark.
    pub fn mark_started_before(&mut self, id: &FeatureId) -> Result<(), BacklogError> {
        self.place(id).map(|place| self.set_resumed(place, true))
    }

    /// The state of a feature; `None` if it is not in the backlog.
    pub fn state(&self, id: &FeatureId) -> Option<&FeatureState> {
        self.places.get(id).map(|&place| &self.graph[place].state)
    }

    /// A feature; `None` if it is not in the backlog.
    pub fn feature(&self, id: &FeatureId) -> Option<&Feature> {
        self.places.get(id).map(|&place| &self.graph[place].feature)
    }

    /// The features and their states in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&Feature, &FeatureState)> {
        self.graph.node_weights().map(|node| (&node.feature, &node.state))
    }

    /// The direct dependencies that have not passed, in the order of the file; empty for an unknown
    /// id.
    pub fn waiting_for(&self, id: &FeatureId) -> Vec<FeatureId> {
        self.neighbours(id, Direction::Incoming, |node| node.state != FeatureState::Passed)
    }

    /// The direct dependents, in the order of the file; empty for an unknown id.
    pub(crate) fn dependents(&self, id: &FeatureId) -> Vec<FeatureId> {
        self.neighbours(id, Direction::Outgoing, |_| true)
    }

    /// The blocked features among all transitive dependencies, in the order of the file.
    pub fn blocked_by(&self, id: &FeatureId) -> Vec<FeatureId> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<NodeIndex> = self.places.get(id).copied().into_iter().collect();
        while let Some(place) = open.pop() {
            let dependencies = self.graph.neighbors_directed(place, Direction::Incoming);
            open.extend(dependencies.filter(|&dependency| seen.insert(dependency)));
        }
        let blocked =
            |place: &NodeIndex| matches!(self.graph[*place].state, FeatureState::Blocked(_));
        seen.into_iter().filter(blocked).map(|place| self.graph[place].feature.id.clone()).collect()
    }

    /// The number of features in each state.
    pub fn counts(&self) -> Counts {
        Counts { workable: self.ready.len(), ..self.counts }
    }

    /// Whether no feature runs or can begin: all passed, or the rest waits for a person.
    pub fn is_settled(&self) -> bool {
        self.counts.in_progress == 0 && self.ready.is_empty()
    }

    fn place(&self, id: &FeatureId) -> Result<NodeIndex, BacklogError> {
        self.places.get(id).copied().ok_or_else(|| BacklogError::UnknownFeature { id: id.clone() })
    }

    fn neighbours(
        &self,
        id: &FeatureId,
        side: Direction,
        wanted: impl Fn(&Node) -> bool,
    ) -> Vec<FeatureId> {
        let Some(&place) = self.places.get(id) else {
            return Vec::new();
        };
        let mut found: Vec<NodeIndex> = self.graph.neighbors_directed(place, side).collect();
        found.sort_unstable();
        let nodes = found.into_iter().map(|neighbour| &self.graph[neighbour]);
        nodes.filter(|node| wanted(node)).map(|node| node.feature.id.clone()).collect()
    }

    fn set_state(&mut self, place: NodeIndex, state: FeatureState) {
        self.ready.remove(&self.rank(place));
        let before = std::mem::replace(&mut self.graph[place].state, state);
        *self.count_of(&before) -= 1;
        let after = self.graph[place].state.clone();
        *self.count_of(&after) += 1;
        self.offer(place);
        if (before == FeatureState::Passed) != (after == FeatureState::Passed) {
            self.update_dependents(place, after == FeatureState::Passed);
        }
    }

    fn set_resumed(&mut self, place: NodeIndex, resumed: bool) {
        self.ready.remove(&self.rank(place));
        self.graph[place].resumed = resumed;
        self.offer(place);
    }

    fn update_dependents(&mut self, place: NodeIndex, passed: bool) {
        let mut dependents = self.graph.neighbors_directed(place, Direction::Outgoing).detach();
        while let Some(dependent) = dependents.next_node(&self.graph) {
            let unmet = &mut self.graph[dependent].unmet;
            *unmet = if passed { *unmet - 1 } else { *unmet + 1 };
            if passed {
                self.offer(dependent);
            } else {
                self.ready.remove(&self.rank(dependent));
            }
        }
    }

    /// Inserts a feature into the ready set if it is workable.
    fn offer(&mut self, place: NodeIndex) {
        let node = &self.graph[place];
        if node.state == FeatureState::Pending && node.unmet == 0 {
            self.ready.insert(self.rank(place));
        }
    }

    fn rank(&self, place: NodeIndex) -> Rank {
        let node = &self.graph[place];
        Rank { fresh: !node.resumed, priority: Reverse(node.feature.priority), place }
    }

    fn count_of(&mut self, state: &FeatureState) -> &mut usize {
        match state {
            FeatureState::Pending => &mut self.counts.pending,
            FeatureState::InProgress => &mut self.counts.in_progress,
            FeatureState::Passed => &mut self.counts.passed,
            FeatureState::Blocked(_) => &mut self.counts.blocked,
        }
    }
}

#[cfg(test)]
mod tests;
