//! Text encodings of backlog files.

use std::borrow::Cow;

/// The text of a file in UTF-8, or in UTF-16 with a byte order mark, without NUL characters. The
/// error is the offset of the first invalid byte and its line, counted from 1.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, (usize, usize)> {
    let not_text = |at: usize| (at, bytes[..at].split(|byte| *byte == b'\n').count().max(1));
    let wide = |read: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes[2..].as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().copied().map(read).collect();
        let text = if rest.is_empty() { String::from_utf16(&units).ok() } else { None };
        text.filter(|text| !text.contains('\0'))
    };
    match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes).map(Cow::from).ok_or_else(|| not_text(0)),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes).map(Cow::from).ok_or_else(|| not_text(0)),
        _ => {
            let text = std::str::from_utf8(bytes).map_err(|error| not_text(error.valid_up_to()))?;
            if let Some(at) = text.find('\0') {
                return Err(not_text(at));
            }
            Ok(text.strip_prefix('\u{feff}').unwrap_or(text).into())
        }
    }
}
