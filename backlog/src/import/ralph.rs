//! `userStories`: a `prd.json`; 1 in `priority` is the first.

use super::error::ImportError;
use super::generic::read_list;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::EntriesAt;

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, fits, read };

fn fits(source: &Source<'_>) -> bool {
    source.lists().contains(&"userStories")
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    read_list(source, intake, Shape::Ralph, EntriesAt::Key("userStories"))
}
