//! Numbers, read and written.

use crate::error::Error;

/// Reads a number: `1_000.5`, `1e-3`, `0xff`, `0b101`. An underscore stands between two digits.
pub fn parse(text: &str) -> Result<f64, Error> {
    let wrong = || Error::new(format!("`{text}` is not a number"));
    let digits = plain_digits(text).ok_or_else(wrong)?;
    for (prefix, radix) in [("0x", 16), ("0b", 2)] {
        if let Some(digits) = digits.strip_prefix(prefix) {
            // Without this, the sign of `0x+1` would be taken.
            let all_digits = digits.chars().all(|c| c.is_digit(radix));
            let value = all_digits
                .then(|| u32::from_str_radix(digits, radix).ok())
                .flatten();
            return value.map(f64::from).ok_or_else(wrong);
        }
    }
    // Rust would also read `inf` and `nan`.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    digits
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(wrong)
}

/// The text without its underscores; `None` if one of them is out of place.
fn plain_digits(text: &str) -> Option<String> {
    let between_digits = text
        .split('_')
        .zip(text.split('_').skip(1))
        .all(|(before, after)| {
            before.ends_with(|c: char| c.is_ascii_hexdigit())
                && after.starts_with(|c: char| c.is_ascii_hexdigit())
        });
    between_digits.then(|| text.replace('_', "").to_ascii_lowercase())
}

/// Writes a number with at most `precision` digits after the point, and no zeros at the end.
pub fn format(value: f64, precision: usize) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:e}");
    }
    let text = format!("{value:.precision$}");
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => &text,
    };
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}
