use reckon::history::History;

fn history(limit: usize, lines: &[&str]) -> History {
    let mut history = History::new(limit);
    for line in lines {
        history.push(line);
    }
    history
}

#[test]
fn lines_are_recalled_by_their_number() {
    let history = history(10, &["1 + 1", "2 + 2"]);
    assert_eq!(history.recall("!!").unwrap(), "2 + 2");
    assert_eq!(history.recall("!1").unwrap(), "1 + 1");
    assert_eq!(history.recall("3 + 3").unwrap(), "3 + 3");
}

#[test]
fn blank_and_repeated_lines_are_not_kept() {
    let lines = history(10, &["1", " ", "1", "2"]).lines();
    assert_eq!(lines, [(1, "1".to_owned()), (2, "2".to_owned())]);
}

#[test]
fn numbers_stay_when_old_lines_are_dropped() {
    let history = history(2, &["1", "2", "3"]);
    assert_eq!(history.recall("!3").unwrap(), "3");
    assert_eq!(
        history.recall("!1").unwrap_err().message,
        "the history has no line `!1`"
    );
}
