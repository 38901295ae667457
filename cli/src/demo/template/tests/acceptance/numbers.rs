use reckon::numbers::{format, parse};

#[test]
fn the_usual_ways_to_write_a_number_are_read() {
    for (text, value) in [
        ("7", 7.0),
        ("1_000.5", 1000.5),
        ("1e-3", 0.001),
        ("0xFF", 255.0),
        ("0b101", 5.0),
        (".5", 0.5),
    ] {
        assert_eq!(parse(text), Ok(value), "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in [
        "", "_1", "1_", "1__0", "0x", "0xg", "1.2.3", "2x", "inf", "1e999",
    ] {
        let message = parse(text).unwrap_err().message;
        assert_eq!(message, format!("`{text}` is not a number"));
    }
}

#[test]
fn answers_are_written_without_zeros_at_the_end() {
    assert_eq!(format(2.5, 10), "2.5");
    assert_eq!(format(1200.0, 10), "1200");
    assert_eq!(format(1.0 / 3.0, 4), "0.3333");
    assert_eq!(format(-0.000_001, 2), "0");
}

#[test]
fn large_answers_have_an_exponent() {
    assert_eq!(format(1e21, 10), "1e21");
}
