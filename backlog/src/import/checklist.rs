//! Markdown with `- [ ] Name: description` lines.

use super::markdown::read;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::tasks_md::{boxes, has_task_headings};

pub(super) const RULE: Rule = Rule {
    syntax: Syntax::Markdown,
    fits: |source| matches!(source, Source::Markdown(text) if !has_task_headings(text) && boxes(text).next().is_some()),
    read: |source, intake| read(source, intake, Shape::Checklist),
};
