//! `features` with acceptance criteria and `depends_on`; the greater number in `priority` is the sooner.

use super::detect::{all_have, any_has};
use super::error::ImportError;
use super::generic::read_list;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::EntriesAt;

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, fits, read };

const TYPICAL: [&str; 2] = ["acceptance_criteria", "depends_on"];

fn fits(source: &Source<'_>) -> bool {
    let is_list = source.array(None).is_some_and(|list| all_have(list, &["id", "status"]) && any_has(list, &TYPICAL));
    let is_project = source.array(Some("features")).is_some_and(|list| {
        any_has(list, &TYPICAL) || source.object().is_some_and(|list| list.contains_key("project_name"))
    });
    is_list || is_project && source.lists().contains(&"features")
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let at = if source.array(None).is_some() { EntriesAt::Root } else { EntriesAt::Key("features") };
    read_list(source, intake, Shape::Ada, at)
}
