//! Markdown with `### Task 1: title` headings and fields in bold: a `tasks.md`.

use super::markdown::read;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::tasks_md::has_task_headings;

pub(super) const RULE: Rule = Rule {
    syntax: Syntax::Markdown,
    fits: |source| matches!(source, Source::Markdown(text) if has_task_headings(text)),
    read: |source, intake| read(source, intake, Shape::TasksMd),
};
