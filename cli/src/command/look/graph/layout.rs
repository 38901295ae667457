//! Layered layout of a graph: one column per distance from the features without dependencies,
//! ordered by barycenter. Unlike `rust-sugiyama`, which places features only, it finds a way for
//! long lines between the features of other columns.

use std::collections::HashMap;

use longhaul_server::views::GraphDocument;
use longhaul_server::views::graph::FeatureNode;

/// Ordering sweeps; an even number, so that the last one goes left.
const SWEEPS: usize = 8;
/// Maximum number of places for lines that pass through columns; above it, long lines go straight
/// behind the boxes.
const PLACES: usize = 100_000;

/// A place of a column: a feature, or a line that passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Feature(usize),
    Line,
}

/// A layered layout. A line between distant columns has a place in each column between them.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// All places.
    pub(super) places: Vec<Place>,
    /// The places of each column, from the top.
    pub(super) columns: Vec<Vec<usize>>,
    /// The places on the path of each line.
    pub(super) lines: Vec<Vec<usize>>,
}

/// The index of each feature.
pub(super) fn places(document: &GraphDocument) -> HashMap<&str, usize> {
    document.features.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect()
}

/// The length of the longest path to each feature from one without dependencies.
pub(super) fn ranks(document: &GraphDocument) -> Vec<usize> {
    let places = places(document);
    let mut open = vec![0_usize; document.features.len()];
    let mut needed_by = vec![Vec::new(); document.features.len()];
    for (index, node) in document.features.iter().enumerate() {
        for need in node.depends_on.iter().filter_map(|need| places.get(need.as_str())) {
            open[index] += 1;
            needed_by[*need].push(index);
        }
    }
    let mut ranks = vec![0; document.features.len()];
    // A valid list has no cycle; features of a cycle keep rank 0.
    let mut ready: Vec<usize> = (0..open.len()).filter(|index| open[*index] == 0).collect();
    while let Some(need) = ready.pop() {
        for index in &needed_by[need] {
            ranks[*index] = ranks[*index].max(ranks[need] + 1);
            open[*index] -= 1;
            if open[*index] == 0 {
                ready.push(*index);
            }
        }
    }
    ranks
}

impl Layout {
    pub(super) fn of(document: &GraphDocument) -> Self {
        let ranks = ranks(document);
        let mut layout = Self::default();
        for (index, rank) in ranks.iter().enumerate() {
            layout.add(Place::Feature(index), *rank);
        }
        let known = places(document);
        let needs = |(index, node): (usize, &FeatureNode)| {
            let needs = node.depends_on.iter().filter_map(|need| known.get(need.as_str()));
            needs.map(|from| (*from, index)).collect::<Vec<_>>()
        };
        let lines: Vec<(usize, usize)> =
            document.features.iter().enumerate().flat_map(needs).collect();
        let through: usize =
            lines.iter().map(|(from, to)| ranks[*to].saturating_sub(ranks[*from] + 1)).sum();
        for (from, to) in lines {
            let mut line = vec![from];
            if through <= PLACES {
                line.extend((ranks[from] + 1..ranks[to]).map(|rank| layout.add(Place::Line, rank)));
            }
            line.push(to);
            layout.lines.push(line);
        }
        layout.untangle();
        layout
    }

    fn add(&mut self, place: Place, rank: usize) -> usize {
        self.columns.resize_with(self.columns.len().max(rank + 1), Vec::new);
        self.places.push(place);
        self.columns[rank].push(self.places.len() - 1);
        self.places.len() - 1
    }

    /// Moves each place to the mean row of its neighbours, column by column, to the right and to
    /// the left in turn.
    fn untangle(&mut self) {
        let mut before = vec![Vec::new(); self.places.len()];
        let mut after = vec![Vec::new(); self.places.len()];
        for pair in self.lines.iter().flat_map(|line| line.windows(2)) {
            after[pair[0]].push(pair[1]);
            before[pair[1]].push(pair[0]);
        }
        let mut rows = vec![0; self.places.len()];
        for (row, place) in self.columns.iter().flat_map(|column| column.iter().enumerate()) {
            rows[*place] = row;
        }
        for sweep in 0..SWEEPS {
            let columns = 0..self.columns.len();
            if sweep % 2 == 0 {
                columns.for_each(|column| self.sort(column, &before, &mut rows));
            } else {
                columns.rev().for_each(|column| self.sort(column, &after, &mut rows));
            }
        }
    }

    fn sort(&mut self, column: usize, neighbours: &[Vec<usize>], rows: &mut [usize]) {
        let middle = |place: &usize| {
            let near = &neighbours[*place];
            // In half rows, to stay with integers.
            let sum: usize = near.iter().map(|place| rows[*place]).sum();
            (2 * sum).checked_div(near.len()).unwrap_or(2 * rows[*place])
        };
        self.columns[column].sort_by_key(middle);
        for (row, place) in self.columns[column].iter().enumerate() {
            rows[*place] = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use longhaul_workflows::projection::State;

    #[test]
    fn features_are_behind_all_that_they_need() {
        let pending = State::Pending;
        let graph = sample(&[
            ("d", pending, &["c", "a"]),
            ("c", pending, &["b"]),
            ("b", pending, &["a"]),
            ("a", pending, &[]),
        ]);
        assert_eq!(ranks(&graph), [3, 2, 1, 0]);
        let layout = Layout::of(&graph);
        assert_eq!(layout.columns.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 2, 1]);
        assert_eq!(layout.lines.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 2, 2]);
    }

    #[test]
    fn a_cycle_does_not_hang() {
        let graph = sample(&[("a", State::Pending, &["b"]), ("b", State::Pending, &["a"])]);
        assert_eq!(ranks(&graph).len(), 2);
    }

    #[test]
    fn lines_that_can_be_untangled_do_not_cross() {
        let pending = State::Pending;
        let graph = sample(&[
            ("a", pending, &[]),
            ("b", pending, &[]),
            ("x", pending, &["b"]),
            ("y", pending, &["a"]),
        ]);
        let row = |layout: &Layout, place| {
            layout.columns.iter().find_map(|column| column.iter().position(|at| *at == place))
        };
        let layout = Layout::of(&graph);
        let rows: Vec<_> = (0..4).map(|place| row(&layout, place)).collect();
        assert_eq!((rows[0], rows[1]), (rows[3], rows[2]), "{rows:?}");
    }

    #[test]
    fn long_chains_take_no_long_time() {
        let ids: Vec<String> = (0..20_000).rev().map(|number| format!("f{number}")).collect();
        let mut graph = sample(&[]);
        graph.features = ids
            .iter()
            .enumerate()
            .map(|(index, id)| FeatureNode {
                id: id.clone(),
                name: String::new(),
                status: State::Waiting,
                depends_on: ids
                    .get(index + 1)
                    .into_iter()
                    .chain(ids.last())
                    .filter(|need| *need != id)
                    .cloned()
                    .collect(),
            })
            .collect();
        let layout = Layout::of(&graph);
        assert_eq!((layout.columns.len(), layout.places.len()), (20_000, 20_000));
    }
}
