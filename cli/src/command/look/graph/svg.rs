//! A graph as a self-contained SVG, without scripts and external references.

use super::colours;
use super::layout::{Layout, Place};
use longhaul_server::views::GraphDocument;
use longhaul_server::views::graph::FeatureNode;

/// Box height and gaps.
const HEIGHT: usize = 40;
const ROW: usize = 60;
const GAP: usize = 70;
const MARGIN: usize = 20;
/// Approximate character width; minimum and maximum box width.
const LETTER: usize = 8;
const NARROWEST: usize = 90;
const WIDEST: usize = 280;

/// The arrow head of a line, at the dependent feature.
const ARROW: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
                     markerWidth=\"7\" markerHeight=\"7\" \
                     orient=\"auto\"><polygon points=\"0,0 8,4 0,8\" \
                     fill=\"#9e9e9e\"/></marker></defs>";

pub(super) fn draw(document: &GraphDocument) -> String {
    let layout = Layout::of(document);
    let at = Places::of(document, &layout);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" \
         height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n<title>Features of \
         {2}</title>\n{ARROW}\n",
        at.width,
        at.height,
        escaped(&document.project)
    );
    for line in &layout.lines {
        text += &format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"#9e9e9e\" stroke-width=\"1.5\" \
             marker-end=\"url(#arrow)\"/>\n",
            at.path(line)
        );
    }
    for (place, kind) in layout.places.iter().enumerate() {
        if let Place::Feature(index) = kind {
            text += &drawn(&document.features[*index], &at, place);
        }
    }
    text + "</svg>"
}

fn drawn(node: &FeatureNode, at: &Places, place: usize) -> String {
    let (fill, border) = colours(node.status);
    let x = at.x[place];
    let y = at.y[place];
    let width = at.widths[place];
    let letters = width / LETTER - 1;
    let id: String = if node.id.chars().count() > letters {
        node.id.chars().take(letters - 1).chain(['…']).collect()
    } else {
        node.id.clone()
    };
    format!(
        "<g><title>{}: {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" \
         rx=\"6\" fill=\"{fill}\" stroke=\"{border}\" stroke-width=\"1.5\"/><text x=\"{2}\" \
         y=\"{3}\" text-anchor=\"middle\">{4}</text><text x=\"{2}\" y=\"{5}\" \
         text-anchor=\"middle\" font-size=\"10\" fill=\"{border}\">{6}</text></g>\n",
        escaped(&node.id),
        escaped(&node.name),
        x + width / 2,
        y + 17,
        escaped(&id),
        y + 32,
        node.status.as_str(),
    )
}

/// The pixel positions of the places.
struct Places {
    x: Vec<usize>,
    y: Vec<usize>,
    widths: Vec<usize>,
    width: usize,
    height: usize,
}

impl Places {
    fn of(document: &GraphDocument, layout: &Layout) -> Self {
        let count = layout.places.len();
        let mut x = vec![0; count];
        let mut y = vec![0; count];
        let mut widths = vec![0; count];
        let tallest = layout.columns.iter().map(Vec::len).max().unwrap_or_default();
        let mut left = MARGIN;
        for column in &layout.columns {
            let letters = column.iter().map(|place| match layout.places[*place] {
                Place::Feature(index) => document.features[index].id.chars().count() + 2,
                Place::Line => 0,
            });
            let wide = (letters.max().unwrap_or_default() * LETTER).clamp(NARROWEST, WIDEST);
            let top = MARGIN + (tallest - column.len()) * ROW / 2;
            for (row, place) in column.iter().enumerate() {
                x[*place] = left;
                y[*place] = top + row * ROW;
                widths[*place] = wide;
            }
            left += wide + GAP;
        }
        let width = left.saturating_sub(GAP) + MARGIN;
        let height = (tallest * ROW).saturating_sub(ROW - HEIGHT) + 2 * MARGIN;
        Self { x, y, widths, width, height }
    }

    /// A line from the right side of its first place to the left side of its last, through the
    /// places between them.
    fn path(&self, line: &[usize]) -> String {
        let middle = |place: usize| self.y[place] + HEIGHT / 2;
        let mut text = String::new();
        for pair in line.windows(2) {
            let from = pair[0];
            let to = pair[1];
            let start = self.x[from] + self.widths[from];
            let end = self.x[to];
            if text.is_empty() {
                text = format!("M{start} {}", middle(from));
            } else {
                text += &format!(" L{start} {}", middle(from));
            }
            let half = usize::midpoint(start, end);
            text +=
                &format!(" C{half} {} {half} {} {end} {}", middle(from), middle(to), middle(to));
        }
        text
    }
}

/// Escapes a string for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use longhaul_workflows::projection::State;

    #[test]
    fn texts_cannot_leave_their_place() {
        let drawn = draw(&sample(&[("a", State::Passed, &[]), ("b", State::Blocked, &["a"])]));
        assert!(drawn.contains("<title>a: &lt;a&gt; &amp; &quot;more&quot;</title>"), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 2);
        assert_eq!(drawn.matches("<path").count(), 1);
        assert_eq!(escaped("a\u{1b}'<"), "a &#39;&lt;");
    }

    #[test]
    fn boxes_do_not_lie_upon_each_other() {
        let ids: Vec<String> = (0..30).map(|number| format!("feature-{number}")).collect();
        let features: Vec<(&str, State, &[&str])> =
            ids.iter().map(|id| (id.as_str(), State::Pending, &[][..])).collect();
        let graph = sample(&features);
        let layout = Layout::of(&graph);
        let at = Places::of(&graph, &layout);
        let mut tops = at.y.clone();
        tops.sort_unstable();
        assert!(tops.windows(2).all(|pair| pair[1] - pair[0] >= HEIGHT));
        assert!(at.y.iter().all(|top| top + HEIGHT + MARGIN <= at.height));
    }
}
