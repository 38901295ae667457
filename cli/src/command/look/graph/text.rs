//! A graph as text for a terminal: each feature once, below its lowest dependency; its other
//! dependencies are named.

use std::collections::{BTreeMap, VecDeque};

use super::super::terminal::{Terminal, colour};
use super::super::tree::lines;
use super::layout::{places, ranks};
use longhaul_server::views::GraphDocument;
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::projection::State;

/// Maximum depth of a tree.
const DEEPEST: usize = 40;
/// How many cycles are shown.
const CYCLES: usize = 100;
/// How many features of a cycle are shown.
const LONGEST: usize = 20;

/// The trees, at most `limit` features of them.
pub(super) fn draw(terminal: Terminal, document: &GraphDocument, limit: usize) -> String {
    if document.features.is_empty() {
        return "no features".into();
    }
    let deepest = terminal.width.map_or(DEEPEST, |width| (width / 4).clamp(4, DEEPEST));
    let mut order = order(document, deepest);
    let more = order.len().saturating_sub(limit);
    order.truncate(limit);
    let depths: Vec<usize> = order.iter().map(|row| row.depth).collect();
    let leads = lines(&depths);
    let wide = |(lead, row): (&String, &Row)| {
        lead.chars().count() + 2 + document.features[row.index].id.chars().count()
    };
    let column = leads.iter().zip(&order).map(wide).max().unwrap_or_default();
    let column = if terminal.is_narrow() { 0 } else { column };
    let drawn =
        leads.iter().zip(&order).map(|(lead, row)| line(terminal, document, lead, row, column));
    let mut drawn: Vec<String> = drawn.collect();
    if more > 0 {
        drawn.push(format!("and {more} more features (`--limit` shows more)"));
    }
    drawn.join("\n")
}

/// The dependency cycles, after the trees; empty if there are none.
pub(super) fn cycles(document: &GraphDocument) -> String {
    let [_, ..] = document.cycles.as_slice() else { return String::new() };
    let count = document.cycles.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut text =
        format!("\n\n{count} dependency cycle{plural}; take one link of each out of `depends_on`:");
    for cycle in document.cycles.iter().take(CYCLES) {
        let path: Vec<&str> = cycle.path.iter().map(FeatureId::as_str).take(LONGEST).collect();
        let more = cycle.path.len().saturating_sub(LONGEST);
        let more = if more > 0 { format!(" -> ({more} more)") } else { String::new() };
        let feature = &cycle.without_in;
        let needed = &cycle.without;
        text += &format!("\n  {}{more}  (`{feature}` without `{needed}`)", path.join(" -> "));
    }
    if count > CYCLES {
        text += &format!("\n  and {} more (-o json names all)", count - CYCLES);
    }
    text
}

/// A feature in a drawing of the graph.
pub(in crate::command) struct DagRow {
    /// The lines of the tree to its left.
    pub(in crate::command) lead: String,
    /// Its place in the document.
    pub(in crate::command) index: usize,
    /// Its dependencies that the tree does not show.
    pub(in crate::command) also: Vec<String>,
}

/// The rows of a drawing, one for each feature.
pub(in crate::command) fn dag_rows(document: &GraphDocument) -> Vec<DagRow> {
    let order = order(document, DEEPEST);
    let depths: Vec<usize> = order.iter().map(|row| row.depth).collect();
    let row = |(lead, row): (String, &Row)| {
        let above = row.above.map(|above| &document.features[above].id);
        let needs = &document.features[row.index].depends_on;
        let also = needs.iter().filter(|need| Some(*need) != above).cloned().collect();
        DagRow { lead, index: row.index, also }
    };
    lines(&depths).into_iter().zip(&order).map(row).collect()
}

/// A feature in a tree.
struct Row {
    depth: usize,
    index: usize,
    /// Its parent in the drawing.
    above: Option<usize>,
}

fn line(
    terminal: Terminal,
    document: &GraphDocument,
    lead: &str,
    row: &Row,
    column: usize,
) -> String {
    let node = &document.features[row.index];
    let text = format!("{lead}{} {}", sign(node.status), node.id);
    let gap = " ".repeat(column.saturating_sub(text.chars().count()) + 2);
    let shown = format!(
        "{lead}{} {}{gap}{}",
        terminal.paint(colour(node.status), sign(node.status)),
        node.id,
        terminal.state(node.status)
    );
    let above = row.above.map(|above| document.features[above].id.as_str());
    let others = node.depends_on.iter().map(String::as_str).filter(|need| Some(*need) != above);
    let others: Vec<&str> = others.collect();
    if others.is_empty() {
        return shown;
    }
    let also = if above.is_some() { "also " } else { "" };
    let others = format!("({also}needs {})", others.join(", "));
    if terminal.width.is_some_and(|width| {
        text.chars().count() + gap.len() + node.status.as_str().len() + 2 + others.len() > width
    }) {
        // The lines of the tree continue next to it.
        let beside = lead.replace("├─", "│ ").replace("└─", "  ");
        let by = beside.chars().count() + 2;
        let lines = terminal.indented(by, &others);
        let lines: Vec<String> =
            lines.lines().map(|line| format!("{beside}  {}", &line[by..])).collect();
        return format!("{shown}\n{}", lines.join("\n"));
    }
    format!("{shown}  {others}")
}

/// The sign of a state.
pub(in crate::command) fn sign(state: State) -> &'static str {
    match state {
        State::Passed | State::Done => "✓",
        State::Running => "▶",
        State::Paused => "‖",
        State::Parked => "?",
        State::Pending => "○",
        State::Waiting => "·",
        State::Blocked | State::Failed | State::Cancelled | State::NeedsAttention => "✗",
    }
}

/// The features in the order of the tree. A feature beyond the depth limit is the root of another
/// tree.
fn order(document: &GraphDocument, deepest: usize) -> Vec<Row> {
    let ranks = ranks(document);
    let places = places(document);
    let mut families: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (index, node) in document.features.iter().enumerate() {
        // Its parent is the dependency with the lowest position.
        let needs = node.depends_on.iter().filter_map(|need| places.get(need.as_str()).copied());
        let needs = needs.filter(|need| ranks[*need] < ranks[index]);
        let above = needs.max_by_key(|need| (ranks[*need], std::cmp::Reverse(*need)));
        families.entry(above).or_default().push(index);
    }
    let mut order = Vec::new();
    let root = |index| Row { depth: 0, index, above: None };
    let mut roots: VecDeque<Row> = families.remove(&None).into_iter().flatten().map(root).collect();
    while let Some(first) = roots.pop_front() {
        let mut open = vec![first];
        while let Some(next) = open.pop() {
            let children = families.remove(&Some(next.index)).unwrap_or_default();
            if next.depth == deepest {
                roots.extend(children.into_iter().map(root));
            } else {
                let below = |index| Row { depth: next.depth + 1, index, above: Some(next.index) };
                open.extend(children.into_iter().rev().map(below));
            }
            order.push(next);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use longhaul_server::views::graph::FeatureNode;

    fn graph() -> GraphDocument {
        sample(&[
            ("parser", State::Passed, &[]),
            ("table", State::Running, &["parser"]),
            ("shell", State::Waiting, &["table", "parser"]),
            ("manual", State::Blocked, &[]),
        ])
    }

    #[test]
    fn each_feature_is_below_what_it_needs() {
        let drawn = draw(Terminal { width: None, is_coloured: false }, &graph(), 200);
        let expected = "✓ parser     passed\n\
                        └─▶ table    running\n  \
                          └─· shell  waiting  (also needs parser)\n\
                        ✗ manual     blocked";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn of_many_features_the_first_are_shown() {
        let drawn = draw(Terminal { width: None, is_coloured: false }, &graph(), 2);
        let expected = "✓ parser   passed\n\
                        └─▶ table  running\n\
                        and 2 more features (`--limit` shows more)";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_narrow_page_is_not_left() {
        let drawn = draw(Terminal { width: Some(30), is_coloured: false }, &graph(), 200);
        assert!(drawn.lines().all(|line| line.chars().count() <= 30), "{drawn}");
        assert!(drawn.contains("\n  └─· shell  waiting\n      (also needs parser)\n"), "{drawn}");
    }

    #[test]
    fn a_long_chain_is_several_trees() {
        let ids: Vec<String> = (0..20_000).map(|number| format!("f{number}")).collect();
        let mut graph = sample(&[]);
        let needs = |index: usize| {
            index.checked_sub(1).map(|before| ids[before].clone()).into_iter().collect()
        };
        graph.features = (0..ids.len())
            .map(|index| FeatureNode {
                id: ids[index].clone(),
                name: String::new(),
                status: State::Waiting,
                depends_on: needs(index),
            })
            .collect();
        let drawn = draw(Terminal { width: None, is_coloured: false }, &graph, usize::MAX);
        assert!(
            drawn.contains("\n· f41 ") && drawn.contains("waiting  (needs f40)"),
            "{}",
            &drawn[..10_000]
        );
        assert_eq!(drawn.lines().count(), 20_000);
    }
}
