//! An array of `{category, description, steps, passes}`, or of `{name, description, passes}`: its order is its priority.

use super::detect::{all_have, any_has};
use super::error::ImportError;
use super::generic::read_list;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::EntriesAt;

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, fits, read };

fn fits(source: &Source<'_>) -> bool {
    source.array(None).is_some_and(|list| {
        all_have(list, &["passes"])
            && any_has(list, &["description", "steps"])
            && !all_have(list, &["status"])
            && !any_has(list, &["number", "issue_type"])
    })
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    read_list(source, intake, Shape::Quickstart, EntriesAt::Root)
}
