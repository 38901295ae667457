use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the program itself.
fn reckon(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_reckon"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that fails at once does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn answers(input: &str) -> String {
    String::from_utf8(reckon(&[], input).stdout).unwrap()
}

#[test]
fn an_expression_on_the_command_line_is_answered() {
    let output = reckon(&["--precision", "3", "2 / 3"], "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0.667\n");
    assert!(output.status.success());
}

#[test]
fn variables_and_the_last_answer_are_kept_from_line_to_line() {
    assert_eq!(answers("x = 4\nsqrt(x) + 1\nans * 2\n"), "4\n3\n6\n");
}

#[test]
fn units_are_converted() {
    assert_eq!(answers("5 km to m\n"), "5000\n");
}

#[test]
fn commands_show_variables_and_history() {
    assert_eq!(
        answers("x = 4\nlong = 120\n:vars\n"),
        "4\n120\nans   120\nlong  120\nx       4\n"
    );
    assert_eq!(answers("1 + 1\n!!\n:history\n"), "2\n2\n1  1 + 1\n");
}

#[test]
fn an_error_is_shown_with_its_place_and_the_next_line_is_answered() {
    let output = reckon(&[], "1 / 0\n1 + 1\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "1 / 0\n  ^\nerror: division by zero\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n");
    assert!(!output.status.success());
}
