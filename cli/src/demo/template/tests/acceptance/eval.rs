use reckon::error::Error;
use reckon::eval::evaluate;
use reckon::parser::parse;
use reckon::variables::Variables;

fn value(line: &str) -> Result<f64, Error> {
    let mut variables = Variables::default();
    variables.set("x", 5.0)?;
    evaluate(&parse(line)?, &variables)
}

#[test]
fn the_operators_work() {
    for (line, expected) in [
        ("1 + 2 * 3", 7.0),
        ("8 - 4 - 2", 2.0),
        ("7 / 2", 3.5),
        ("-2 ^ 2", -4.0),
        ("7 % 4", 3.0),
    ] {
        assert_eq!(value(line), Ok(expected), "{line}");
    }
}

#[test]
fn names_and_functions_have_values() {
    assert_eq!(value("x * 2"), Ok(10.0));
    assert_eq!(value("max(1, x, sqrt(16))"), Ok(5.0));
}

#[test]
fn a_remainder_is_never_negative() {
    assert_eq!(value("-7 % 4"), Ok(1.0));
}

#[test]
fn dividing_by_zero_is_an_error_at_the_operator() {
    for line in ["1 / (2 - 2)", "1 % 0"] {
        assert_eq!(value(line), Err(Error::at(2, "division by zero")), "{line}");
    }
}

#[test]
fn what_has_no_value_is_an_error_at_its_place() {
    assert_eq!(value("1 + y"), Err(Error::at(4, "`y` has no value")));
    assert_eq!(value("1 + sqr(2)").unwrap_err().at, Some(4));
    assert_eq!(
        value("(-1) ^ 0.5"),
        Err(Error::at(5, "this has no real value"))
    );
    assert_eq!(value("10 ^ 999"), Err(Error::at(3, "this is too large")));
}
