use reckon::carets::render;
use reckon::error::Error;
use reckon::tokens::tokenize;

#[test]
fn the_caret_stands_under_the_place() {
    let line = "2 $ 3";
    let error = tokenize(line).unwrap_err();
    assert_eq!(
        render(line, &error),
        "2 $ 3\n  ^\nerror: `$` means nothing here"
    );
}

#[test]
fn the_place_may_be_the_end_of_the_line() {
    assert_eq!(
        render("1 +", &Error::at(3, "more")),
        "1 +\n   ^\nerror: more"
    );
}

#[test]
fn a_tab_stays_a_tab() {
    assert_eq!(render("\t$", &Error::at(1, "no")), "\t$\n\t^\nerror: no");
}

#[test]
fn an_error_without_a_place_is_its_message() {
    assert_eq!(render("x", &Error::new("no")), "error: no");
}
