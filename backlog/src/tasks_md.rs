//! Reads a `tasks.md` checklist into features.
//!
//! Two forms: `- [ ] Name: description` lines, with indented boxes as acceptance criteria; or `###
//! Two forms: `- [ ] Name: description` lines, with indented boxes as acceptance criteria; or `###
//! Task 1: title` headings with fields in bold (`**Dependencies:** Task 1`, `**Priority:** P0`,
//! `**Acceptance Criteria:**`), in English or Portuguese. With such headings, boxes outside of
//! tasks are not features.

mod line;
mod task;

use super::list::{Draft, Repairs, Report, resolve};
use crate::error::ListError;
use line::{Field, Line, task_heading};
use longhaul_workflows::backlog::Feature;
use task::Task;

/// The features of a checklist.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskList {
    /// In the file's order; their status is a claim.
    pub features: Vec<Feature>,
    /// Guesses, one sentence each.
    pub notes: Vec<String>,
}

/// Reads a checklist. One error lists all problems, each with its line.
pub fn read_tasks(text: &str) -> Result<TaskList, ListError> {
    let mut report = Report::default();
    let drafts = drafts(text, &mut report)?.into_iter().map(|(_, draft)| draft).collect();
    let features = resolve(drafts, &[], Repairs::default(), &mut report).features;
    Ok(TaskList { notes: report.finish()?, features })
}

/// The tasks of a checklist, each with its line, counted from 1.
pub(super) fn drafts(text: &str, report: &mut Report) -> Result<Vec<(usize, Draft)>, ListError> {
    let with_headings = has_task_headings(text);
    let mut parser = Parser { with_headings, report: std::mem::take(report), ..Parser::default() };
    for (number, line) in lines(text) {
        parser.line(number, &line);
    }
    *report = std::mem::take(&mut parser.report);
    if parser.tasks.is_empty() {
        return Err(ListError::NoEntries {
            found: "a text without tasks".to_owned(),
            advice: "write lines such as `- [ ] Name: description`, or headings such as `### Task 1: title`",
        });
    }
    let draft = |task: Task| (task.line, task.into_draft(with_headings, report));
    Ok(parser.tasks.into_iter().map(draft).collect())
}

/// Whether a text has headings such as `### Task 1: title`.
pub(super) fn has_task_headings(text: &str) -> bool {
    lines(text)
        .any(|(_, line)| matches!(line, Line::Heading { text, .. } if task_heading(text).is_some()))
}

/// The texts of the boxes such as `- [ ] text`, with their marks.
pub(super) fn boxes(text: &str) -> impl Iterator<Item = (char, &str)> {
    lines(text).filter_map(|(_, line)| {
        if let Line::Box { mark, text, .. } = line { Some((mark, text)) } else { None }
    })
}

/// The headings that are neither a task nor a field, with their lines.
pub(super) fn sections(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter_map(|(number, line)| match line {
        Line::Heading { level, text } if level > 1 && task_heading(text).is_none() => {
            Field::named(text.trim_end_matches(':')).is_none().then_some((number, text))
        }
        _ => None,
    })
}

/// The lines outside of fenced code, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, Line<'_>)> {
    let mut in_fence = false;
    let text = text.trim_start_matches('\u{feff}');
    text.lines().enumerate().filter_map(move |(index, text)| {
        let is_fence = text.trim_start().starts_with("```");
        in_fence ^= is_fence;
        (!is_fence && !in_fence).then(|| (index + 1, Line::of(text)))
    })
}

#[derive(Default)]
struct Parser {
    with_headings: bool,
    tasks: Vec<Task>,
    /// Whether lines belong to the last task.
    open: bool,
    /// The field of the following bullets.
    field: Option<Field>,
    report: Report,
}

impl Parser {
    fn line(&mut self, number: usize, line: &Line<'_>) {
        match line {
            Line::Blank => {}
            Line::Heading { level, text } => self.heading(number, *level, text),
            Line::Box { indent, mark, text } if self.begins_task(*indent) => {
                self.begin(Task::of_box(number, *indent, *mark, text));
            }
            Line::Box { mark, text, .. } => match self.current() {
                Some(task) => task.criterion(*mark, text),
                None => self
                    .report
                    .guess("a box outside of any task: not read", format!("line {number}")),
            },
            Line::Field { field, name, value } => {
                self.field = Some(*field);
                if let Some(task) = self.current() {
                    task.field(*field, name, value);
                }
            }
            Line::Bullet { text } => {
                let field = self.field;
                if let Some(task) = self.current() {
                    task.bullet(field, text);
                }
            }
            Line::Text { text } => {
                if let Some(task) = self.current() {
                    task.describe(text);
                }
            }
        }
    }

    fn heading(&mut self, number: usize, level: usize, text: &str) {
        if let Some((mark, id, title)) = task_heading(text) {
            self.begin(Task::of_heading(number, level, mark, &id, title));
            return;
        }
        let inside = self.with_headings && self.tasks.last().is_some_and(|task| level > task.depth);
        self.open &= inside;
        self.field = Field::named(text.trim_end_matches(':'));
    }

    fn begins_task(&self, indent: usize) -> bool {
        !self.with_headings
            && (!self.open || self.tasks.last().is_none_or(|task| indent <= task.depth))
    }

    fn begin(&mut self, task: Task) {
        self.tasks.push(task);
        self.open = true;
        self.field = None;
    }

    fn current(&mut self) -> Option<&mut Task> {
        self.tasks.last_mut().filter(|_| self.open)
    }
}

#[cfg(test)]
mod tests;
