//! Rows in aligned columns.

/// Aligns the cells of all rows; a line for each row. Columns of numbers are aligned on the right.
pub fn render(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let columns: Vec<Column> = (0..count).map(|index| Column::of(rows, index)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .iter()
            .zip(&columns)
            .map(|(cell, column)| column.pad(cell))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

struct Column {
    width: usize,
    numbers: bool,
}

impl Column {
    fn of(rows: &[Vec<String>], index: usize) -> Self {
        let cells = || rows.iter().filter_map(|row| row.get(index));
        Self {
            width: cells().map(|cell| cell.chars().count()).max().unwrap_or(0),
            numbers: cells().all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok()),
        }
    }

    fn pad(&self, cell: &str) -> String {
        let width = self.width;
        if self.numbers {
            format!("{cell:>width$}")
        } else {
            format!("{cell:<width$}")
        }
    }
}
