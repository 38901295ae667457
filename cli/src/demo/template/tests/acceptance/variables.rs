use reckon::variables::{Variables, assignment};

#[test]
fn what_was_set_is_found_again() {
    let mut variables = Variables::default();
    variables.set("y", 2.0).unwrap();
    variables.set("x", 1.0).unwrap();
    assert_eq!(variables.get("x"), Some(1.0));
    assert_eq!(variables.get("z"), None);
    assert_eq!(
        variables.all(),
        [("x".to_owned(), 1.0), ("y".to_owned(), 2.0)]
    );
}

#[test]
fn constants_are_there_and_cannot_be_set() {
    let mut variables = Variables::default();
    assert_eq!(variables.get("pi"), Some(std::f64::consts::PI));
    assert_eq!(
        variables.set("pi", 3.0).unwrap_err().message,
        "`pi` is a constant"
    );
}

#[test]
fn an_assignment_keeps_the_places_of_its_expression() {
    let found = assignment("x = 1 + 2").unwrap().unwrap();
    assert_eq!(
        (found.name.as_str(), found.expression.as_str()),
        ("x", "    1 + 2")
    );
    assert_eq!(assignment("1 + 2"), Ok(None));
}

#[test]
fn only_a_name_can_be_set() {
    assert_eq!(assignment("2 x = 1").unwrap_err().at, Some(4));
    assert_eq!(assignment("= 1").unwrap_err().at, Some(0));
}
