//! A line, cut into tokens.

use crate::error::Error;

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A number as it was written.
    Number(String),
    /// A name of a variable or of a function.
    Name(String),
    /// One of `+ - * / % ^ ( ) , =`.
    Symbol(char),
}

/// A token and its place in the line, in characters from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub token: Token,
    pub at: usize,
}

/// Cuts a line into tokens. Blanks separate and are dropped.
pub fn tokenize(line: &str) -> Result<Vec<Placed>, Error> {
    let characters: Vec<char> = line.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        let rest = &characters[at..];
        let (token, length) = match first {
            blank if blank.is_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' | '.' => text_of(rest, number_length(rest), Token::Number),
            name if name.is_alphabetic() || name == '_' => {
                let length = rest
                    .iter()
                    .take_while(|c| c.is_alphanumeric() || **c == '_')
                    .count();
                text_of(rest, length, Token::Name)
            }
            '+' | '-' | '*' | '/' | '%' | '^' | '(' | ')' | ',' | '=' => (Token::Symbol(first), 1),
            other => return Err(Error::at(at, format!("`{other}` means nothing here"))),
        };
        tokens.push(Placed { token, at });
        at += length;
    }
    Ok(tokens)
}

fn text_of(rest: &[char], length: usize, token: fn(String) -> Token) -> (Token, usize) {
    (token(rest[..length].iter().collect()), length)
}

/// A sign belongs to a number only after the `e` of an exponent: `1e-3`, but `0xe-3` is a difference.
fn number_length(rest: &[char]) -> usize {
    let hexadecimal = rest.get(1).is_some_and(|c| matches!(c, 'x' | 'X'));
    let belongs = |index: usize, c: char| {
        let after_exponent = index > 0 && matches!(rest[index - 1], 'e' | 'E') && !hexadecimal;
        c.is_alphanumeric() || c == '.' || c == '_' || (matches!(c, '+' | '-') && after_exponent)
    };
    rest.iter()
        .enumerate()
        .take_while(|(index, c)| belongs(*index, **c))
        .count()
}
