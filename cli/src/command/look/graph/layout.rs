//! Where the features of a graph go in a picture: in columns by what they need, in each column near their neighbours.

use std::collections::HashMap;

use longhaul_server::views::GraphDocument;
use longhaul_server::views::graph::Node;

/// How often the columns are put in order.
const SWEEPS: usize = 8;
/// In how many places lines may pass through columns; where they would need more, they go straight, behind the boxes.
const PLACES: usize = 100_000;

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

/// The index of each feature.
pub(super) fn places(document: &GraphDocument) -> HashMap<&str, usize> {
    document.features.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect()
}

/// How many steps each feature is away from one that needs nothing, on the longest way.
pub(super) fn ranks(document: &GraphDocument) -> Vec<usize> {
    let places = places(document);
    let (mut open, mut needed_by) = (vec![0_usize; document.features.len()], vec![Vec::new(); document.features.len()]);
    for (index, node) in document.features.iter().enumerate() {
        for need in node.depends_on.iter().filter_map(|need| places.get(need.as_str())) {
            open[index] += 1;
            needed_by[*need].push(index);
        }
    }
    let mut ranks = vec![0; document.features.len()];
    // A list that is accepted has no circle; what is in one stays at the beginning.
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
        let needs = |(index, node): (usize, &Node)| {
            let needs = node.depends_on.iter().filter_map(|need| known.get(need.as_str()));
            needs.map(|from| (*from, index)).collect::<Vec<_>>()
        };
        let lines: Vec<(usize, usize)> = document.features.iter().enumerate().flat_map(needs).collect();
        let through: usize = lines.iter().map(|(from, to)| ranks[*to].saturating_sub(ranks[*from] + 1)).sum();
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

    /// Puts each place near the middle of its neighbours, to the right and to the left in turn; keeps the best order.
    fn untangle(&mut self) {
        let (mut before, mut behind) = (vec![Vec::new(); self.places.len()], vec![Vec::new(); self.places.len()]);
        for line in &self.lines {
            for pair in line.windows(2) {
                behind[pair[0]].push(pair[1]);
                before[pair[1]].push(pair[0]);
            }
        }
        let mut rows = self.rows();
        let mut best = (self.crossings(&behind, &rows), self.columns.clone());
        for sweep in 0..SWEEPS {
            let (neighbours, columns): (_, Vec<usize>) = if sweep % 2 == 0 {
                (&before, (1..self.columns.len()).collect())
            } else {
                (&behind, (0..self.columns.len().saturating_sub(1)).rev().collect())
            };
            for column in columns {
                self.sort(column, neighbours, &mut rows);
            }
            let crossings = self.crossings(&behind, &rows);
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
    }

    fn sort(&mut self, column: usize, neighbours: &[Vec<usize>], rows: &mut [usize]) {
        let middle = |place: &usize| {
            let near = &neighbours[*place];
            // In halves, so that whole numbers do.
            let sum: usize = near.iter().map(|place| rows[*place]).sum();
            (2 * sum).checked_div(near.len()).unwrap_or(2 * rows[*place])
        };
        self.columns[column].sort_by_key(middle);
        for (row, place) in self.columns[column].iter().enumerate() {
            rows[*place] = row;
        }
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

    fn crossings(&self, behind: &[Vec<usize>], rows: &[usize]) -> usize {
        let of_column = |column: &Vec<usize>| {
            let pairs = column.iter().flat_map(|from| behind[*from].iter().map(|to| (rows[*from], rows[*to])));
            let mut pairs: Vec<(usize, usize)> = pairs.collect();
            pairs.sort_unstable();
            inversions(&mut pairs.into_iter().map(|(_, to)| to).collect::<Vec<_>>())
        };
        self.columns.iter().map(of_column).sum()
    }
}

/// How many pairs of numbers are in the wrong order; sorts them.
fn inversions(numbers: &mut [usize]) -> usize {
    if numbers.len() < 2 {
        return 0;
    }
    let (left, right) = numbers.split_at_mut(numbers.len() / 2);
    let mut count = inversions(left) + inversions(right);
    let mut next = right.iter().peekable();
    let mut merged = Vec::with_capacity(left.len() + right.len());
    for (index, number) in left.iter().enumerate() {
        while let Some(smaller) = next.next_if(|other| *other < number) {
            count += left.len() - index;
            merged.push(*smaller);
        }
        merged.push(*number);
    }
    merged.extend(next.copied());
    numbers.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use longhaul_workflows::projection::State;

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
        assert_eq!(layout.crossings(&behind, &layout.rows()), 0);
        behind.swap(0, 1);
        assert_eq!(layout.crossings(&behind, &layout.rows()), 1);
    }

    #[test]
    fn pairs_in_the_wrong_order_are_counted() {
        for (numbers, count) in [(&[3, 2, 1][..], 3), (&[1, 2, 2, 3], 0), (&[2, 4, 1, 3, 5], 3), (&[], 0)] {
            assert_eq!(inversions(&mut numbers.to_vec()), count, "{numbers:?}");
        }
    }

    #[test]
    fn long_chains_take_no_long_time() {
        let ids: Vec<String> = (0..20_000).rev().map(|number| format!("f{number}")).collect();
        let mut graph = sample(&[]);
        graph.features = ids
            .iter()
            .enumerate()
            .map(|(index, id)| Node {
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
