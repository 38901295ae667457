//! The selection of several runs for one order.

use std::str::FromStr;

use longhaul_server::RunKind;
use longhaul_workflows::projection::State;

use super::key_value::key_value;

/// The heading of the options.
pub(super) const SELECTION: &str = "Selection";

/// The selected runs, instead of named ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// All runs that match: project=, status=, kind=, feature=, label.NAME=; may be repeated, all
    /// must match
    #[arg(long = "filter", value_name = "KEY=VALUE", help_heading = SELECTION)]
    pub(crate) filters: Vec<Filter>,
    /// Limit for the number of runs
    #[arg(long, value_name = "N", help_heading = SELECTION)]
    pub(crate) limit: Option<usize>,
    /// Only report what would be done, and to which runs
    #[arg(long, help_heading = SELECTION)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation of several runs
    #[arg(short, long, help_heading = SELECTION)]
    pub(crate) yes: bool,
}

/// One condition on runs: `project=shop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// The directory of a project, its id, or a prefix of the id.
    Project(String),
    Status(State),
    Kind(RunKind),
    Feature(String),
    Label(String, String),
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = key_value(text)?;
        Ok(match key.as_str() {
            "project" => Self::Project(value),
            "status" => Self::Status(value.parse()?),
            "kind" if RunKind::NAMES.contains(&&*value) => Self::Kind(RunKind::named(&value)),
            "kind" => return Err(format!("`{value}` is none of {}", RunKind::NAMES.join(", "))),
            "feature" => Self::Feature(value),
            _ => match key.strip_prefix("label.") {
                Some(label) if !label.is_empty() => Self::Label(label.to_owned(), value),
                _ => {
                    return Err(format!(
                        "`{key}` is none of project, status, kind, feature, label.NAME"
                    ));
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_or_refused_with_the_keys_that_there_are() {
        let label = "label.team=web".parse::<Filter>().unwrap();
        assert_eq!(label, Filter::Label("team".into(), "web".into()));
        let wrong = [
            ("project", "KEY=VALUE"),
            ("colour=red", "label.NAME"),
            ("label.=x", "label.NAME"),
            ("status=asleep", "`asleep` is none of pending, running"),
            ("kind=run", "`run` is none of project, feature, session, batch"),
        ];
        for (wrong, expected) in wrong {
            let refused = wrong.parse::<Filter>().unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
