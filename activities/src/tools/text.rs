//! Text for a model: secrets replaced, and of bounded length.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};

/// Shorter values are not replaced: they occur by chance.
const SHORTEST: usize = 6;

/// The secrets of a session: the values of its variables.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    /// The longest first: one may begin with another.
    values: Vec<(String, String)>,
    any: Option<Regex>,
}

impl Secrets {
    pub(super) fn new(env: &BTreeMap<String, String>) -> Self {
        let mut values: Vec<_> = env
            .iter()
            .filter(|(_, value)| value.len() >= SHORTEST)
            .map(|(name, value)| (value.clone(), name.clone()))
            .collect();
        values.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        let pattern: Vec<_> = values.iter().map(|(value, _)| regex::escape(value)).collect();
        let any = (!pattern.is_empty()).then(|| {
            let regex = RegexBuilder::new(&pattern.join("|")).size_limit(usize::MAX).build();
            regex.expect("escaped text is a pattern")
        });
        Self { values, any }
    }

    /// The length of the longest value.
    pub(super) fn longest(&self) -> usize {
        self.values.first().map_or(0, |(value, _)| value.len())
    }

    /// The same text, with `[redacted NAME]` for each value.
    pub(super) fn redacted(&self, text: &str) -> String {
        let whole = 0..text.len();
        String::from_utf8_lossy(&self.redacted_part(text.as_bytes(), whole)).into_owned()
    }

    /// A part of the bytes, with `[redacted NAME]` for each value that is at least partly in it.
    pub(super) fn redacted_part(&self, bytes: &[u8], part: Range<usize>) -> Vec<u8> {
        let mut result = Vec::with_capacity(part.len());
        let mut from = part.start;
        for found in self.any.iter().flat_map(|any| any.find_iter(bytes)) {
            if found.start() >= part.end {
                break;
            }
            if found.end() <= part.start {
                continue;
            }
            result.extend_from_slice(&bytes[from..found.start().max(from)]);
            let name = self.values.iter().find(|(value, _)| value.as_bytes() == found.as_bytes());
            let name = name.map_or("", |(_, name)| name.as_str());
            result.extend_from_slice(format!("[redacted {name}]").as_bytes());
            from = found.end();
        }
        if from < part.end {
            result.extend_from_slice(&bytes[from..part.end]);
        }
        result
    }
}

/// The first and the last bytes of an output, and the length of the whole.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    pub(super) length: u64,
}

impl HeadAndTail {
    /// The bytes to read at each end so that no secret is cut.
    pub(super) fn needed(limit: usize, secrets: &Secrets) -> usize {
        limit + secrets.longest()
    }

    /// The text of at most about `limit` bytes. If it is longer, `first` and `last` have
    /// [`HeadAndTail::needed`] bytes or more; else `first` is the whole.
    pub(super) fn text(&self, limit: usize, secrets: &Secrets) -> String {
        if self.length <= limit as u64 {
            let whole = 0..self.first.len();
            return String::from_utf8_lossy(&secrets.redacted_part(&self.first, whole))
                .into_owned();
        }
        let half = limit / 2;
        let head = boundary(&self.first, half.min(self.first.len()));
        let tail = boundary(&self.last, self.last.len().saturating_sub(half));
        let left_out = self.length - (head + self.last.len() - tail) as u64;
        format!(
            "{}\n[… {left_out} bytes are left out here …]\n{}",
            String::from_utf8_lossy(&secrets.redacted_part(&self.first, 0..head)),
            String::from_utf8_lossy(&secrets.redacted_part(&self.last, tail..self.last.len())),
        )
    }
}

/// The begin of the UTF-8 character at a place.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let is_inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(*at)).unwrap_or(at)
}

/// The start of a line, at most `limit` bytes, with a mark if it is cut.
pub(super) fn start_of_line(line: &str, limit: usize) -> String {
    let end = line.floor_char_boundary(limit);
    if end == line.len() { line.to_owned() } else { format!("{} […]", &line[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(env: &[(&str, &str)]) -> Secrets {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Secrets::new(&env.iter().map(owned).collect())
    }

    fn check_cut(output: &str, limit: usize, secrets: &Secrets, expected: &str) {
        let bytes = output.as_bytes();
        let needed = HeadAndTail::needed(limit, secrets).min(bytes.len());
        let ends = HeadAndTail {
            first: bytes[..needed].to_vec(),
            last: bytes[bytes.len() - needed..].to_vec(),
            length: bytes.len() as u64,
        };
        assert_eq!(ends.text(limit, secrets), expected);
    }

    #[test]
    fn values_are_replaced_by_their_names() {
        let secrets =
            secrets(&[("A", "secret"), ("B", "secret-and-more"), ("C", "short"), ("D", "a.b|c*")]);
        for (text, expected) in [
            ("a secret.", "a [redacted A]."),
            ("secret-and-more", "[redacted B]"),
            ("secretsecret-and-mor", "[redacted A][redacted A]-and-mor"),
            ("short aXb|c*", "short aXb|c*"),
            ("a.b|c*", "[redacted D]"),
            ("secre", "secre"),
        ] {
            assert_eq!(secrets.redacted(text), expected);
        }
        assert_eq!(Secrets::default().redacted("secret"), "secret");
    }

    #[test]
    fn the_middle_is_cut() {
        let none = Secrets::default();
        check_cut("abcdef", 6, &none, "abcdef");
        check_cut("abcdefg", 6, &none, "abc\n[… 1 bytes are left out here …]\nefg");
        check_cut("abcdefgh", 4, &none, "ab\n[… 4 bytes are left out here …]\ngh");
        check_cut("éééé", 6, &none, "é\n[… 2 bytes are left out here …]\néé");
        check_cut("€€€€", 8, &none, "€\n[… 3 bytes are left out here …]\n€€");
    }

    #[test]
    fn a_secret_across_a_cut_is_replaced() {
        let secrets = secrets(&[("KEY", "secret")]);
        let mark = |n| format!("\n[… {n} bytes are left out here …]\n");
        for at in 0..=14 {
            let text = format!("{}secret{}", "-".repeat(at), "-".repeat(14 - at));
            let bytes = text.as_bytes();
            let needed = HeadAndTail::needed(8, &secrets).min(bytes.len());
            let ends = HeadAndTail {
                first: bytes[..needed].to_vec(),
                last: bytes[bytes.len() - needed..].to_vec(),
                length: 20,
            };
            let said = ends.text(8, &secrets);
            let is_visible = at < 4 || at + 6 > 16;
            assert_eq!(said.contains("[redacted KEY]"), is_visible, "{at}: {said}");
            assert!(said.contains(&mark(12)), "{said}");
            let rest = said.replace("[redacted KEY]", "").replace(&mark(12), "");
            assert!(rest.chars().all(|c| c == '-'), "{at}: {said}");
        }
    }
}
