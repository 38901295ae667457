//! Finds all dependency cycles: the shortest ones, until the graph without one link of each is
//! acyclic.

use std::collections::{HashMap, VecDeque};

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::backlog::error::Cycle;
use crate::backlog::feature::{Feature, FeatureId};

/// The work after which the search ends, in visited links: about a second.
const BUDGET: usize = 20_000_000;

/// The cycles of a list, the shortest first; dependencies on missing features are ignored.
///
/// The time is limited: a list of tens of thousands of features that all depend on each other may
/// have more cycles.
pub fn cycles(features: &[Feature]) -> Vec<Cycle> {
    let mut graph = DiGraph::with_capacity(features.len(), features.len());
    let places: HashMap<&FeatureId, NodeIndex> =
        features.iter().map(|feature| (&feature.id, graph.add_node(()))).collect();
    for (feature, place) in features.iter().zip(0..) {
        for needed in feature.depends_on.iter().filter_map(|id| places.get(id)) {
            graph.update_edge(*needed, NodeIndex::new(place), ());
        }
    }
    cycles_of(&graph, |place| &features[place.index()].id)
}

/// A part of the graph with a cycle; its nodes hold their places in the file.
type Part = DiGraph<NodeIndex, ()>;

/// The cycles of a graph with edges from dependencies to dependents.
pub(super) fn cycles_of<'f, N>(
    graph: &DiGraph<N, ()>,
    id: impl Fn(NodeIndex) -> &'f FeatureId,
) -> Vec<Cycle> {
    let whole = graph.map(|place, _| place, |_, ()| ());
    let mut budget = BUDGET;
    let mut found: Vec<(Vec<NodeIndex>, usize)> = Vec::new();
    let mut open = parts(&whole);
    while let Some(mut part) = open.pop() {
        let (path, cut) = shortest_cycle(&part, &mut budget);
        let places: Vec<NodeIndex> = path.iter().map(|node| part[*node]).collect();
        found.push((places, cut));
        let dependent = path[cut];
        let needed = path[(cut + 1) % path.len()];
        while let Some(edge) = part.find_edge(needed, dependent) {
            part.remove_edge(edge);
        }
        budget = budget.saturating_sub(part.node_count() + part.edge_count());
        if budget == 0 {
            break;
        }
        open.extend(parts(&part));
    }
    found.sort_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
    let cycle = |(places, cut): (Vec<NodeIndex>, usize)| {
        let ids: Vec<FeatureId> = places.iter().map(|place| id(*place).clone()).collect();
        Cycle {
            without_in: ids[cut].clone(),
            without: ids[(cut + 1) % ids.len()].clone(),
            path: ids.iter().chain(ids.first()).cloned().collect(),
        }
    };
    found.into_iter().map(cycle).collect()
}

/// The strongly connected parts of a graph with a cycle.
fn parts(graph: &Part) -> Vec<Part> {
    let mut part_of = vec![usize::MAX; graph.node_count()];
    let mut node_in_part = vec![NodeIndex::end(); graph.node_count()];
    let mut parts: Vec<Part> = Vec::new();
    for mut nodes in kosaraju_scc(graph) {
        if nodes.len() == 1 && graph.find_edge(nodes[0], nodes[0]).is_none() {
            continue;
        }
        // In the order of the file, so that the result does not depend on the search order.
        nodes.sort_unstable_by_key(|node| graph[*node]);
        let mut part = Part::with_capacity(nodes.len(), nodes.len());
        for node in nodes {
            part_of[node.index()] = parts.len();
            node_in_part[node.index()] = part.add_node(graph[node]);
        }
        parts.push(part);
    }
    for edge in graph.edge_references() {
        let from = edge.source().index();
        let to = edge.target().index();
        if part_of[from] == part_of[to]
            && let Some(part) = parts.get_mut(part_of[from])
        {
            part.add_edge(node_in_part[from], node_in_part[to], ());
        }
    }
    parts
}

/// The shortest cycle of a part, from its first feature in the file to the last one, and the index
/// of the feature whose dependency on the next one leads forward in the file.
fn shortest_cycle(part: &Part, budget: &mut usize) -> (Vec<NodeIndex>, usize) {
    let mut search = Search { reached_from: vec![(NodeIndex::end(), 0); part.node_count()] };
    let mut shortest: Option<Vec<NodeIndex>> = None;
    for start in part.node_indices() {
        let limit = shortest.as_ref().map_or(usize::MAX, |path| path.len() - 1);
        if let Some(path) = search.cycle_through(part, start, limit, budget) {
            shortest = Some(path);
        }
        let is_shortest = shortest.as_ref().is_some_and(|path| path.len() <= 2);
        // A part with as many links as features is one cycle.
        if is_shortest || part.edge_count() == part.node_count() || *budget == 0 {
            break;
        }
    }
    let mut path = shortest.unwrap_or_else(|| search.any_cycle(part));
    let first = (0..path.len()).min_by_key(|index| part[path[*index]]).unwrap_or_default();
    path.rotate_left(first);
    let next = |index: usize| part[path[(index + 1) % path.len()]];
    let cut = (0..path.len()).find(|index| next(*index) >= part[path[*index]]).unwrap_or_default();
    (path, cut)
}

/// Breadth-first searches through one part.
struct Search {
    /// For each node, the node before it, and the search that reached it.
    reached_from: Vec<(NodeIndex, usize)>,
}

impl Search {
    /// The shortest cycle through a node with at most `limit` nodes. Each node depends on the next.
    fn cycle_through(
        &mut self,
        part: &Part,
        start: NodeIndex,
        limit: usize,
        budget: &mut usize,
    ) -> Option<Vec<NodeIndex>> {
        let search = start.index() + 1;
        let mut open = VecDeque::from([(start, 1_usize)]);
        while let Some((node, length)) = open.pop_front() {
            if length > limit {
                return None;
            }
            for needed in part.neighbors_directed(node, Direction::Incoming) {
                *budget = budget.saturating_sub(1);
                if needed == start {
                    return Some(self.path_to(start, node));
                }
                let reached = &mut self.reached_from[needed.index()];
                if reached.1 != search {
                    *reached = (node, search);
                    open.push_back((needed, length + 1));
                }
            }
        }
        None
    }

    fn path_to(&self, start: NodeIndex, end: NodeIndex) -> Vec<NodeIndex> {
        let before = |node: &NodeIndex| Some(self.reached_from[node.index()].0);
        let mut path: Vec<NodeIndex> =
            std::iter::successors(Some(end), before).take_while(|node| *node != start).collect();
        path.push(start);
        path.reverse();
        path
    }

    /// The shortest cycle through the first node; every node of a part is on a cycle.
    fn any_cycle(&mut self, part: &Part) -> Vec<NodeIndex> {
        let first = NodeIndex::new(0);
        let path = self.cycle_through(part, first, usize::MAX, &mut usize::MAX.clone());
        path.unwrap_or_else(|| vec![first])
    }
}
