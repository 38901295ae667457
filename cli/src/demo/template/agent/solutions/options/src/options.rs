//! The options of the command line.

use crate::error::Error;

/// What was asked for on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The one expression to answer; without it lines are read from standard input.
    pub expression: Option<String>,
    /// How many digits to write after the point.
    pub precision: usize,
    /// Whether only the help is wanted.
    pub help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            expression: None,
            precision: 10,
            help: false,
        }
    }
}

/// Reads the arguments, without the name of the program.
pub fn parse<I, S>(arguments: I) -> Result<Options, Error>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let mut options = Options::default();
    let mut words = Vec::new();
    let mut arguments = arguments.into_iter().map(Into::into);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => options.help = true,
            "-p" | "--precision" => options.precision = precision(arguments.next())?,
            "--" => words.extend(arguments.by_ref()),
            unknown if is_option(unknown) => {
                return Err(Error::new(format!(
                    "there is no option `{unknown}`; try --help"
                )));
            }
            _ => words.push(argument),
        }
    }
    if !words.is_empty() {
        options.expression = Some(words.join(" "));
    }
    Ok(options)
}

/// `-x` and `--x` are options; `-`, `-3` and `-(2)` belong to an expression.
fn is_option(argument: &str) -> bool {
    let name = argument
        .strip_prefix('-')
        .map(|rest| rest.trim_start_matches('-'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn precision(value: Option<String>) -> Result<usize, Error> {
    let value = value.ok_or_else(|| Error::new("--precision needs a number"))?;
    let number = value.parse().ok().filter(|number| *number <= 15);
    number.ok_or_else(|| Error::new(format!("--precision is a number up to 15, not `{value}`")))
}

/// The help text.
pub fn help() -> String {
    "Usage: reckon [--precision N] [EXPRESSION]\n\n\
     Without an expression, lines are read from standard input.\n\n\
     \x20 -p, --precision N  at most N digits after the point (10)\n\
     \x20 -h, --help         this text\n"
        .to_owned()
}
