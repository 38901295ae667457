//! A graph for a terminal: each feature once, below the one of its needs that is furthest down; the others are named.

use std::collections::BTreeMap;

use super::super::page::{Page, colour};
use super::super::tree::lines;
use super::layout::ranks;
use crate::look::GraphDocument;
use crate::look::graph::State;

pub(super) fn draw(page: Page, document: &GraphDocument) -> String {
    if document.features.is_empty() {
        return "no features".into();
    }
    let order = order(document);
    let depths: Vec<usize> = order.iter().map(|(depth, _)| *depth).collect();
    let wide = |(lead, (_, index)): (&String, &(usize, usize))| {
        lead.chars().count() + 2 + document.features[*index].id.chars().count()
    };
    let leads = lines(&depths);
    let column = leads.iter().zip(&order).map(wide).max().unwrap_or_default();
    let column = if page.is_narrow() { 0 } else { column };
    let drawn = leads.iter().zip(&order).map(|(lead, (_, index))| line(page, document, lead, *index, column));
    drawn.collect::<Vec<_>>().join("\n")
}

fn line(page: Page, document: &GraphDocument, lead: &str, index: usize, column: usize) -> String {
    let node = &document.features[index];
    let words = node.state.words();
    let text = format!("{lead}{} {}", sign(node.state), node.id);
    let gap = " ".repeat(column.saturating_sub(text.chars().count()) + 2);
    let shown = format!("{lead}{} {}{gap}{}", page.paint(colour(words), sign(node.state)), node.id, page.state(words));
    let above = below(document, &ranks(document), index);
    let known = |need: &&String| document.features.iter().position(|other| other.id == **need) != above;
    let others: Vec<&str> = node.depends_on.iter().filter(known).map(String::as_str).collect();
    if others.is_empty() {
        return shown;
    }
    let others = format!("(also needs {})", others.join(", "));
    if page.width.is_some_and(|width| text.chars().count() + gap.len() + words.len() + 2 + others.len() > width) {
        return format!("{shown}\n{}", page.indented(lead.chars().count() + 4, &others));
    }
    format!("{shown}  {others}")
}

fn sign(state: State) -> &'static str {
    match state {
        State::Passes => "✓",
        State::InProgress => "▶",
        State::Pending => "○",
        State::Waiting => "·",
        State::Blocked => "✗",
    }
}

/// The features as a tree shows them: how deep, and which.
fn order(document: &GraphDocument) -> Vec<(usize, usize)> {
    let ranks = ranks(document);
    let mut families: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for index in 0..document.features.len() {
        families.entry(below(document, &ranks, index)).or_default().push(index);
    }
    let mut order = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    open.extend(families.remove(&None).unwrap_or_default().into_iter().rev().map(|index| (0, index)));
    while let Some((depth, index)) = open.pop() {
        order.push((depth, index));
        let children = families.remove(&Some(index)).unwrap_or_default();
        open.extend(children.into_iter().rev().map(|child| (depth + 1, child)));
    }
    order
}

/// The feature that another one is drawn below: of what it needs, the one that is furthest down.
fn below(document: &GraphDocument, ranks: &[usize], index: usize) -> Option<usize> {
    let place = |need: &String| document.features.iter().position(|node| node.id == *need);
    let needs = document.features[index].depends_on.iter().filter_map(place);
    needs.filter(|need| ranks[*need] < ranks[index]).max_by_key(|need| (ranks[*need], std::cmp::Reverse(*need)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn graph() -> GraphDocument {
        sample(&[
            ("parser", State::Passes, &[]),
            ("table", State::InProgress, &["parser"]),
            ("shell", State::Waiting, &["table", "parser"]),
            ("manual", State::Blocked, &[]),
        ])
    }

    #[test]
    fn each_feature_is_below_what_it_needs() {
        let drawn = draw(Page { width: None, is_coloured: false }, &graph());
        let expected = "✓ parser     passes\n\
                        └─▶ table    in progress\n  \
                          └─· shell  waiting  (also needs parser)\n\
                        ✗ manual     blocked";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_narrow_page_is_not_left() {
        let drawn = draw(Page { width: Some(30), is_coloured: false }, &graph());
        assert!(drawn.lines().all(|line| line.chars().count() <= 30), "{drawn}");
    }
}
