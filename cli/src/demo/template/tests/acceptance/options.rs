use reckon::options::{Options, help, parse};

#[test]
fn without_arguments_lines_are_read() {
    let options = parse::<_, String>([]).unwrap();
    assert_eq!(
        options,
        Options {
            expression: None,
            precision: 10,
            help: false
        }
    );
}

#[test]
fn the_words_of_an_expression_are_joined() {
    let options = parse(["--precision", "3", "-3", "+", "5"]).unwrap();
    assert_eq!(
        options,
        Options {
            expression: Some("-3 + 5".into()),
            precision: 3,
            help: false
        }
    );
}

#[test]
fn help_names_every_option() {
    assert!(parse(["--help"]).unwrap().help);
    assert!(help().contains("--precision N") && help().contains("--help"));
}

#[test]
fn wrong_options_are_refused_by_name() {
    assert_eq!(
        parse(["--colour"]).unwrap_err().message,
        "there is no option `--colour`; try --help"
    );
    assert_eq!(
        parse(["-p"]).unwrap_err().message,
        "--precision needs a number"
    );
    assert_eq!(
        parse(["-p", "x"]).unwrap_err().message,
        "--precision is a number up to 15, not `x`"
    );
}
