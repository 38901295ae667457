//! Lines that begin with a colon.

use crate::error::Error;
use crate::history::History;
use crate::numbers;
use crate::table;
use crate::variables::Variables;

const HELP: [(&str, &str); 5] = [
    ("1 + 2 * 3", "an expression; `ans` is the last answer"),
    ("x = 5", "sets a variable"),
    ("5 km to mi", "converts a unit"),
    (":vars", "shows the variables"),
    (":history", "shows the lines so far; !! and !2 repeat one"),
];

/// Answers `:help`, `:vars` and `:history`.
pub fn run(line: &str, variables: &Variables, history: &History) -> Result<String, Error> {
    let rows: Vec<Vec<String>> = match line.trim() {
        ":help" => HELP
            .iter()
            .map(|(line, what)| vec![(*line).into(), (*what).into()])
            .collect(),
        ":vars" => variables
            .all()
            .into_iter()
            .map(|(name, value)| vec![name, numbers::format(value, 10)])
            .collect(),
        ":history" => history
            .lines()
            .into_iter()
            .map(|(number, line)| vec![number.to_string(), line])
            .collect(),
        other => {
            return Err(Error::new(format!(
                "there is no command `{other}`; try :help"
            )));
        }
    };
    Ok(table::render(&rows).trim_end().to_owned())
}
