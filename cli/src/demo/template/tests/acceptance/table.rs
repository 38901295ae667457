use reckon::table::render;

fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
    cells
        .iter()
        .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
        .collect()
}

#[test]
fn texts_are_aligned_on_the_left_and_numbers_on_the_right() {
    let table = render(&rows(&[&["apples", "7"], &["figs", "120"]]));
    assert_eq!(table, "apples    7\nfigs    120\n");
}

#[test]
fn rows_may_be_short_and_lines_have_no_blanks_at_the_end() {
    let table = render(&rows(&[&["a", "b"], &["long"]]));
    assert_eq!(table, "a     b\nlong\n");
}

#[test]
fn width_is_counted_in_characters() {
    let table = render(&rows(&[&["ä", "x"], &["bb", "y"]]));
    assert_eq!(table, "ä   x\nbb  y\n");
}

#[test]
fn no_rows_are_no_lines() {
    assert_eq!(render(&[]), "");
}
