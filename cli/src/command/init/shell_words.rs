//! Splits a command string into words with shell quoting: quotes and backslashes only.

/// The words; the error describes the invalid quoting.
pub(super) fn of(text: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => quoted(&mut letters, letter, word.get_or_insert_default())?,
            '\\' => {
                word.get_or_insert_default()
                    .push(letters.next().ok_or("--agent: there is nothing behind the last \\")?);
            }
            '|' | '&' | ';' | '<' | '>' | '`' | '$' => {
                return Err(format!(
                    "--agent: `{letter}` is for a shell: quote it, or give the agent as `sh -c \
                     '…'`, or a program of its own"
                ));
            }
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err("--agent needs a program".into()),
    }
}

/// The content of a quoted string; in double quotes a backslash escapes a quote or another
/// backslash.
fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            _ => word.push(letter),
        }
    }
    Err(format!("--agent: a {quote} is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_as_a_shell_does() {
        let words = |text| of(text).unwrap().join("|");
        assert_eq!(words("claude -p"), "claude|-p");
        assert_eq!(
            words(r#"  sh -c 'a  "b" | c' "x \"y\"" z\ z "" "#),
            r#"sh|-c|a  "b" | c|x "y"|z z|"#
        );
        for wrong in ["", "  ", "''", "a 'b", r#"a "b"#, "a \\", "a | b", "a && b", "a $HOME"] {
            assert!(of(wrong).is_err_and(|problem| problem.starts_with("--agent")), "{wrong}");
        }
    }
}
