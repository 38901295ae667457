//! Where the features of a graph go in a picture: in columns by what they need, in each column near their neighbours.

use std::collections::BTreeMap;

use crate::look::GraphDocument;

/// How often the columns are put in order.
const SWEEPS: usize = 8;

/// What is in a place of a column: a feature, or a line that passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Feature(usize),
    Line,
}

/// A layered picture. A line between columns that are not neighbours passes through a place in each between them.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// All places.
    pub(super) places: Vec<Place>,
    /// The places of each column, from the top.
    pub(super) columns: Vec<Vec<usize>>,
    /// The places that each line goes through.
    pub(super) lines: Vec<Vec<usize>>,
}

/// How many steps each feature is away from one that needs nothing, on the longest way.
pub(super) fn ranks(document: &GraphDocument) -> Vec<usize> {
    let places: BTreeMap<&str, usize> =
        document.features.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
    let mut ranks = vec![0; document.features.len()];
    // A list that is accepted has no circle; this ends even with one.
    for _ in 0..document.features.len() {
        let mut is_settled = true;
        for (index, node) in document.features.iter().enumerate() {
            let needs = node.depends_on.iter().filter_map(|need| places.get(need.as_str()));
            let rank = needs.map(|need| ranks[*need] + 1).max().unwrap_or(0);
            if rank != ranks[index] && rank <= document.features.len() {
                ranks[index] = rank;
                is_settled = false;
            }
        }
        if is_settled {
            break;
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
        for (index, node) in document.features.iter().enumerate() {
            for need in &node.depends_on {
                let Some(from) = document.features.iter().position(|other| other.id == *need) else { continue };
                let mut line = vec![from];
                line.extend((ranks[from] + 1..ranks[index]).map(|rank| layout.add(Place::Line, rank)));
                line.push(index);
                layout.lines.push(line);
            }
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

    /// Puts each place near the middle of its neighbours, to the right and to the left in turn; keeps the best order.
    fn untangle(&mut self) {
        let (mut before, mut behind) = (vec![Vec::new(); self.places.len()], vec![Vec::new(); self.places.len()]);
        for line in &self.lines {
            for pair in line.windows(2) {
                behind[pair[0]].push(pair[1]);
                before[pair[1]].push(pair[0]);
            }
        }
        let mut best = (self.crossings(&behind), self.columns.clone());
        for sweep in 0..SWEEPS {
            let (neighbours, columns): (_, Vec<usize>) = if sweep % 2 == 0 {
                (&before, (1..self.columns.len()).collect())
            } else {
                (&behind, (0..self.columns.len().saturating_sub(1)).rev().collect())
            };
            for column in columns {
                self.sort(column, neighbours);
            }
            let crossings = self.crossings(&behind);
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
    }

    fn sort(&mut self, column: usize, neighbours: &[Vec<usize>]) {
        let rows = self.rows();
        let middle = |place: &usize| {
            let near = &neighbours[*place];
            // In halves, so that whole numbers do.
            let sum: usize = near.iter().map(|place| rows[*place]).sum();
            (2 * sum).checked_div(near.len()).unwrap_or(2 * rows[*place])
        };
        self.columns[column].sort_by_key(middle);
    }

    /// The row of each place.
    pub(super) fn rows(&self) -> Vec<usize> {
        let mut rows = vec![0; self.places.len()];
        for column in &self.columns {
            for (row, place) in column.iter().enumerate() {
                rows[*place] = row;
            }
        }
        rows
    }

    fn crossings(&self, behind: &[Vec<usize>]) -> usize {
        let rows = self.rows();
        let mut count = 0;
        for column in &self.columns {
            let pairs = column.iter().flat_map(|from| behind[*from].iter().map(|to| (rows[*from], rows[*to])));
            let pairs: Vec<(usize, usize)> = pairs.collect();
            for (index, (from, to)) in pairs.iter().enumerate() {
                count +=
                    pairs[index + 1..].iter().filter(|(a, b)| (a > from && b < to) || (a < from && b > to)).count();
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::look::graph::State;

    #[test]
    fn features_are_behind_all_that_they_need() {
        let pending = State::Pending;
        let graph =
            sample(&[("d", pending, &["c", "a"]), ("c", pending, &["b"]), ("b", pending, &["a"]), ("a", pending, &[])]);
        assert_eq!(ranks(&graph), [3, 2, 1, 0]);
        let layout = Layout::of(&graph);
        assert_eq!(layout.columns.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 2, 1]);
        assert_eq!(layout.lines.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 2, 2]);
    }

    #[test]
    fn a_circle_does_not_hang() {
        let graph = sample(&[("a", State::Pending, &["b"]), ("b", State::Pending, &["a"])]);
        assert_eq!(ranks(&graph).len(), 2);
    }

    #[test]
    fn lines_that_can_be_untangled_do_not_cross() {
        let pending = State::Pending;
        let graph = sample(&[("a", pending, &[]), ("b", pending, &[]), ("x", pending, &["b"]), ("y", pending, &["a"])]);
        let layout = Layout::of(&graph);
        let mut behind = vec![Vec::new(); 4];
        behind[1].push(2);
        behind[0].push(3);
        assert_eq!(layout.crossings(&behind), 0);
    }
}
