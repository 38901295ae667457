//! Tables: as wide as their cells are shown, and where that is too wide, with the last column broken or as blocks of lines.

use unicode_width::UnicodeWidthChar;

use super::{Page, broken};

/// What parts two columns.
const GAP: usize = 2;
/// The last column is not broken to less than this: rather each row becomes a block.
const ROOM: usize = 20;

impl Page {
    /// A table; where it does not fit, each row is a block, its first cell above the others.
    pub(in crate::command) fn table(self, header: &[&str], rows: &[Vec<String>]) -> String {
        let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
        let widths = widths(std::iter::once(&header).chain(rows), header.len());
        let before = widths.iter().rev().skip(1).map(|width| width + GAP).sum::<usize>();
        let last = widths.last().copied().unwrap_or_default();
        let room = self.width.map_or(last, |width| width.saturating_sub(before).min(last));
        if self.is_narrow() || room < last.min(ROOM) {
            let blocks: Vec<String> = rows.iter().map(|row| self.block(&header, row)).collect();
            return blocks.join("\n");
        }
        let lines = std::iter::once(&header).chain(rows).flat_map(|row| lines(row, &widths, room));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn block(self, header: &[String], row: &[String]) -> String {
        let cells = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
        let lines = cells.map(|(name, cell)| match name.as_str() {
            "" => self.indented(2, cell),
            name => self.indented(2, &format!("{}: {cell}", name.to_lowercase())),
        });
        row.first().cloned().into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }
}

/// The width of each column.
fn widths<'a>(rows: impl Iterator<Item = &'a Vec<String>>, columns: usize) -> Vec<usize> {
    let mut widths = vec![0; columns];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(shown_width(cell));
        }
    }
    widths
}

/// The lines of a row: more than one if its last cell needs them.
fn lines(row: &[String], widths: &[usize], room: usize) -> Vec<String> {
    let Some((last, cells)) = row.split_last() else { return Vec::new() };
    let mut begin = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        begin += cell;
        begin.extend(std::iter::repeat_n(' ', width.saturating_sub(shown_width(cell)) + GAP));
    }
    let below = " ".repeat(shown_width(&begin));
    let parts = if shown_width(last) > room { broken(last, room) } else { vec![last.clone()] };
    let led = parts.iter().enumerate().map(|(number, part)| {
        let lead = if number == 0 { &begin } else { &below };
        format!("{lead}{part}").trim_end().to_owned()
    });
    led.collect()
}

/// How many columns of a terminal a text takes: what colours it takes none.
pub(super) fn shown_width(text: &str) -> usize {
    let mut width = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            width += letter.width().unwrap_or_default();
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Page = Page { width: None, is_coloured: false };

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_narrow_table_is_made_of_blocks() {
        let rows = [row(["shop/login/1", "running", ""])];
        let header = ["RUN", "STATUS", "REASON"];
        let narrow = Page { width: Some(40), ..PLAIN };
        assert_eq!(narrow.table(&header, &rows), "shop/login/1\n  status: running");
        assert_eq!(narrow.table(&["RUN", "", "REASON"], &rows), "shop/login/1\n  running");
        assert_eq!(PLAIN.table(&header, &rows).lines().count(), 2);
    }

    #[test]
    fn colours_take_no_room() {
        let page = Page { is_coloured: true, ..PLAIN };
        let table = page.table(&["RUN", "STATUS", "AGE"], &[row(["a", &page.state("passed"), "3s"])]);
        assert_eq!(table, "RUN  STATUS  AGE\na    \x1b[32mpassed\x1b[0m  3s");
        assert_eq!(shown_width("日本\x1b[0m"), 4);
    }

    #[test]
    fn no_cell_but_the_last_is_ever_broken() {
        let rows = [row(["shop/login/1", "4a7931dee0", "the check of the parser exits with 1"])];
        let header = ["RUN", "COMMIT", "REASON"];
        let at = |width| Page { width: Some(width), ..PLAIN }.table(&header, &rows);
        let last: Vec<String> = at(60).lines().skip(1).map(|line| line[26..].to_owned()).collect();
        assert_eq!(last, ["the check of the parser exits with", "1"]);
        let blocks = "shop/login/1-of-many\n  commit: 4a7931dee0\n  reason: the check of the parser exits with 1";
        let rows = [row(["shop/login/1-of-many", &"x".repeat(20), rows[0][2].as_str()])];
        assert_eq!(
            Page { width: Some(60), ..PLAIN }.table(&header, &rows),
            blocks.replace("4a7931dee0", &"x".repeat(20))
        );
    }
}
