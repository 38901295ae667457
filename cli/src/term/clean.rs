//! Removes terminal control from foreign text: escape sequences, control characters, bidirectional
//! marks.

/// Removes control sequences from streamed text. Lines and tabs stay; a lone carriage return
/// becomes a newline, so that overwritten text stays visible.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
    /// The first bytes of an incomplete character.
    cut: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After a carriage return.
    Return,
    /// After ESC.
    Escape,
    /// After ESC and intermediate bytes.
    Intermediate,
    /// In a control sequence, up to its final byte.
    Sequence,
    /// In a string for the terminal, up to BEL, ST or the end of the line.
    String,
    /// After ESC in such a string.
    StringEscape,
}

impl Cleaner {
    /// Cleans the next piece.
    pub(crate) fn clean(&mut self, bytes: &[u8]) -> String {
        let bytes = [std::mem::take(&mut self.cut).as_slice(), bytes].concat();
        let mut clean = String::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (text, behind) = match std::str::from_utf8(rest) {
                Ok(text) => (text, rest.len()),
                Err(error) => {
                    let valid = error.valid_up_to();
                    let Some(length) = error.error_len() else {
                        self.cut = rest[valid..].to_vec();
                        self.push_all(&rest[..valid], &mut clean);
                        break;
                    };
                    self.push_all(&rest[..valid], &mut clean);
                    self.push('\u{fffd}', &mut clean);
                    rest = &rest[valid + length..];
                    continue;
                }
            };
            text.chars().for_each(|letter| self.push(letter, &mut clean));
            rest = &rest[behind..];
        }
        clean
    }

    fn push_all(&mut self, valid: &[u8], clean: &mut String) {
        String::from_utf8_lossy(valid).chars().for_each(|letter| self.push(letter, clean));
    }

    #[expect(clippy::match_same_arms, reason = "the order of the arms matters")]
    fn push(&mut self, letter: char, clean: &mut String) {
        // A sequence ends with its line at the latest, so an unfinished one hides no more than
        // that.
        if letter == '\n' {
            self.state = State::Text;
            clean.push('\n');
            return;
        }
        self.state = match (self.state, letter) {
            (State::Return, _) => {
                clean.push('\n');
                self.state = State::Text;
                return self.push(letter, clean);
            }
            (State::StringEscape, letter) if letter != '\\' => {
                self.state = State::Escape;
                return self.push(letter, clean);
            }
            (State::String, '\x07' | '\u{9c}') | (State::StringEscape, _) => State::Text,
            (State::String, '\x1b') => State::StringEscape,
            (State::String, _) => State::String,
            (_, '\x1b') => State::Escape,
            (_, '\r') => State::Return,
            (_, '\u{9b}') | (State::Escape, '[') => State::Sequence,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}')
            | (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Intermediate, _) => State::Text,
            (State::Sequence, '@'..='~') => State::Text,
            (State::Sequence, _) => State::Sequence,
            (State::Text, letter) => {
                if letter == '\t' || !(letter.is_control() || turns(letter)) {
                    clean.push(letter);
                }
                State::Text
            }
        };
    }
}

/// Whether a character changes the text direction.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cleans text, but keeps the colour sequences of this program.
pub(crate) fn clean(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut cleaner = Cleaner::default();
    let mut clean = cleaner.clean(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        match OURS.iter().find_map(|colour| Some((colour, part.strip_prefix(colour)?))) {
            Some((colour, rest)) if cleaner.state == State::Text => {
                clean += "\x1b[";
                clean += colour;
                clean += &cleaner.clean(rest.as_bytes());
            }
            _ => clean += &cleaner.clean(format!("\x1b[{part}").as_bytes()),
        }
    }
    clean
}

/// The colour sequences of `terminal::Terminal::paint`.
const OURS: [&str; 6] = ["32m", "33m", "31m", "34m", "2m", "0m"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_removed_wherever_they_are_cut() {
        let text = "a\x1b[31mred\x1b[0m \x1b]0;title\x07b\
                    \x1b]8;;http://x\x1b\\link\x1bc\x1b(B é\r\n\
                    over\rwritten\u{9b}2Jx\tend\x08\x7f \
                    \u{202e}turned";
        let expected = "ared blink é\nover\nwrittenx\tend turned";
        for size in [1, 2, 3, 7, 1000] {
            let mut cleaner = Cleaner::default();
            let clean: String =
                text.as_bytes().chunks(size).map(|piece| cleaner.clean(piece)).collect();
            assert_eq!(clean, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_unfinished_sequence_hides_no_line() {
        assert_eq!(
            Cleaner::default().clean(b"a\x1b]0;never ended\nseen\x1b[31\nseen too"),
            "a\nseen\nseen too"
        );
        assert_eq!(Cleaner::default().clean(b"\x9b2J\xff"), "\u{fffd}2J\u{fffd}");
    }

    #[test]
    fn only_our_own_colours_are_obeyed() {
        assert_eq!(
            clean("\x1b[32mpasses\x1b[0m\x1b[2J\x1b[8mhidden"),
            "\x1b[32mpasses\x1b[0mhidden"
        );
        assert_eq!(clean("\x1b]0;\x1b[32mtitle\x07after"), "titleafter");
    }
}
