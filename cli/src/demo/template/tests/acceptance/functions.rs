use reckon::functions::call;

#[test]
fn functions_of_one_argument() {
    for (name, argument, value) in [
        ("sqrt", 9.0, 3.0),
        ("abs", -2.0, 2.0),
        ("round", 2.5, 3.0),
        ("floor", -1.5, -2.0),
    ] {
        assert_eq!(call(name, &[argument]), Ok(value), "{name}");
    }
}

#[test]
fn functions_of_many_arguments() {
    let values = [3.0, 1.0, 2.0];
    for (name, value) in [("max", 3.0), ("min", 1.0), ("sum", 6.0), ("mean", 2.0)] {
        assert_eq!(call(name, &values), Ok(value), "{name}");
    }
}

#[test]
fn a_wrong_number_of_arguments_is_an_error() {
    assert_eq!(
        call("sqrt", &[1.0, 2.0]).unwrap_err().message,
        "`sqrt` takes one argument, not 2"
    );
    assert_eq!(
        call("max", &[]).unwrap_err().message,
        "`max` needs at least one argument"
    );
}

#[test]
fn what_has_no_value_is_an_error() {
    assert!(
        call("sqrt", &[-1.0])
            .unwrap_err()
            .message
            .contains("negative")
    );
    assert_eq!(
        call("sqr", &[1.0]).unwrap_err().message,
        "there is no function `sqr`"
    );
}
