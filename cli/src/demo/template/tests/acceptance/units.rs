use reckon::units::{convert, request};

fn converted(line: &str) -> f64 {
    convert(&request(line).unwrap()).unwrap()
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

#[test]
fn a_request_is_an_amount_and_two_units() {
    let found = request("-1_500 m to km").unwrap();
    assert_eq!(
        (found.amount, found.from.as_str(), found.to.as_str()),
        (-1500.0, "m", "km")
    );
    assert_eq!(request("5 + 3"), None);
    assert_eq!(request("x km to m"), None);
}

#[test]
fn lengths_are_converted() {
    assert!(close(converted("5 km to m"), 5000.0));
    assert!(close(converted("1 mi to km"), 1.609344));
    assert!(close(converted("1 ft to in"), 12.0));
}

#[test]
fn masses_are_converted() {
    assert!(close(converted("2 kg to g"), 2000.0));
    assert!(close(converted("1 lb to oz"), 16.0));
}

#[test]
fn times_are_converted() {
    assert!(close(converted("1.5 h to min"), 90.0));
    assert!(close(converted("1 d to h"), 24.0));
}

#[test]
fn units_of_different_kinds_do_not_mix() {
    let error = convert(&request("5 km to kg").unwrap()).unwrap_err();
    assert_eq!(error.message, "km cannot be told in kg");
    let error = convert(&request("5 km to parsec").unwrap()).unwrap_err();
    assert_eq!(error.message, "there is no unit `parsec`");
}
