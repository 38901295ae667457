use reckon::parser::parse;

fn understood(line: &str) -> String {
    parse(line).unwrap().to_string()
}

#[test]
fn products_bind_stronger_than_sums() {
    assert_eq!(understood("1 + 2 * 3"), "(1 + (2 * 3))");
    assert_eq!(understood("(1 + 2) * 3"), "((1 + 2) * 3)");
}

#[test]
fn equal_ranks_go_from_left_to_right_and_powers_from_right_to_left() {
    assert_eq!(understood("8 - 4 - 2"), "((8 - 4) - 2)");
    assert_eq!(understood("2 ^ 3 ^ 2"), "(2 ^ (3 ^ 2))");
}

#[test]
fn a_power_binds_stronger_than_a_sign() {
    assert_eq!(understood("-2 ^ 2"), "(-(2 ^ 2))");
    assert_eq!(understood("2 ^ -1"), "(2 ^ (-1))");
}

#[test]
fn functions_are_called_with_any_number_of_arguments() {
    assert_eq!(understood("max(1, x, f())"), "max(1, x, f())");
}

#[test]
fn what_is_missing_is_named_with_its_place() {
    for (line, at, message) in [
        ("1 +", 3, "a value is missing at the end"),
        ("(1 + 2", 6, "`)` is missing at the end"),
        ("1 2", 2, "an operator is missing here"),
        ("1 + 2x", 4, "`2x` is not a number"),
    ] {
        let error = parse(line).unwrap_err();
        assert_eq!(
            (error.at, error.message.as_str()),
            (Some(at), message),
            "{line}"
        );
    }
}
