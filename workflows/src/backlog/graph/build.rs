//! Builds the graph; refuses graphs with cycles.

use std::collections::{BTreeSet, HashMap};

use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use super::cycles::cycles_of;
use super::{Backlog, Counts, FeatureState, Node};
use crate::backlog::error::BacklogError;
use crate::backlog::feature::{Feature, FeatureId};

/// A feature, its state, and whether an earlier run began it.
type Entry = (Feature, FeatureState, bool);

/// Builds a backlog from features in the order of the file.
pub(super) fn build(entries: Vec<Entry>) -> Result<Backlog, BacklogError> {
    refuse_duplicates(&entries)?;
    let edges: usize = entries.iter().map(|(feature, ..)| feature.depends_on.len()).sum();
    let mut graph = DiGraph::with_capacity(entries.len(), edges);
    let mut places = HashMap::with_capacity(entries.len());
    for (feature, state, resumed) in entries {
        let id = feature.id.clone();
        places.insert(id, graph.add_node(Node { feature, state, resumed, unmet: 0 }));
    }
    for place in graph.node_indices() {
        connect(&mut graph, &places, place)?;
    }
    refuse_cycles(&graph)?;

    let mut backlog = Backlog { graph, places, ready: BTreeSet::new(), counts: Counts::default() };
    for place in backlog.graph.node_indices() {
        let state = backlog.graph[place].state.clone();
        *backlog.count_of(&state) += 1;
        backlog.offer(place);
    }
    Ok(backlog)
}

fn refuse_duplicates(entries: &[Entry]) -> Result<(), BacklogError> {
    let mut seen = HashMap::with_capacity(entries.len());
    for (place, (feature, ..)) in entries.iter().enumerate() {
        if let Some(earlier) = seen.insert(feature.id.folded(), place) {
            return Err(BacklogError::Duplicate {
                first: entries[earlier].0.id.clone(),
                first_place: earlier + 1,
                second: feature.id.clone(),
                second_place: place + 1,
            });
        }
    }
    Ok(())
}

/// Adds the edges of one feature, each dependency once, and counts those that have not passed.
fn connect(
    graph: &mut DiGraph<Node, ()>,
    places: &HashMap<FeatureId, NodeIndex>,
    place: NodeIndex,
) -> Result<(), BacklogError> {
    let mut dependencies = BTreeSet::new();
    for id in &graph[place].feature.depends_on {
        let dependency = places.get(id).ok_or_else(|| BacklogError::UnknownDependency {
            feature: graph[place].feature.id.clone(),
            place: place.index() + 1,
            dependency: id.clone(),
        })?;
        dependencies.insert(*dependency);
    }
    for dependency in dependencies {
        graph.add_edge(dependency, place, ());
        if graph[dependency].state != FeatureState::Passed {
            graph[place].unmet += 1;
        }
    }
    Ok(())
}

fn refuse_cycles(graph: &DiGraph<Node, ()>) -> Result<(), BacklogError> {
    if toposort(graph, None).is_ok() {
        return Ok(());
    }
    Err(BacklogError::Cycles(cycles_of(graph, |place| &graph[place].feature.id)))
}
