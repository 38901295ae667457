//! Reads a `tasks.md` checklist into features.
//!
//! Four forms: `- [ ] Name: description` lines, with indented boxes as acceptance criteria; `###
//! Task 1: title` headings with fields (`**Dependencies:** Task 1`, `Priority: P0`, `**Acceptance
//! Criteria:**`), in English or Portuguese; the tasks of spec-kit (`- [ ] T001 [P] [US1] text`, in
//! phases); and those of Kiro (`- [ ] 1. text`, with `1.1` below). With headings or ids, boxes
//! outside of tasks are not features.

mod line;
mod order;
mod reference;
mod task;

use super::list::{Draft, Repairs, Report, resolve};
use crate::error::ListError;
use line::{Field, Line, task_heading};
use longhaul_workflows::backlog::Feature;
use reference::{Known, spec_kit_id};
use task::Task;

/// The features of a checklist.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskList {
    /// In the file's order; their status is a claim.
    pub features: Vec<Feature>,
    /// Guesses, one sentence each.
    pub notes: Vec<String>,
}

/// The form of a checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Form {
    /// Boxes, and indented boxes as criteria.
    #[default]
    Boxes,
    /// `### Task 1: title`, with fields.
    Headings,
    /// `- [ ] T001 [P] [US1] text` in phases.
    SpecKit,
    /// `- [ ] 1. text` and `- [ ] 1.1 text`.
    Numbers,
}

impl Form {
    /// The form of a text by its headings, else by most of its boxes.
    pub(super) fn of(text: &str) -> Self {
        if has_task_headings(text) {
            return Self::Headings;
        }
        let mut all = 0;
        let mut ids = 0;
        let mut numbers = 0;
        for (_, text) in boxes(text) {
            all += 1;
            ids += usize::from(spec_kit_id(text).is_some());
            numbers += usize::from(box_number(text).is_some());
        }
        if ids > 0 && ids * 2 >= all {
            Self::SpecKit
        } else if numbers > 0 && numbers * 2 >= all {
            Self::Numbers
        } else {
            Self::Boxes
        }
    }
}

/// Reads a checklist. One error lists all problems, each with its line.
pub fn read_tasks(text: &str) -> Result<TaskList, ListError> {
    let mut report = Report::default();
    let drafts = drafts(text, Form::of(text), &mut report)?;
    let drafts = drafts.into_iter().map(|(_, draft)| draft).collect();
    let features = resolve(drafts, &[], Repairs::default(), &mut report).features;
    Ok(TaskList { notes: report.finish()?, features })
}

/// The tasks of a checklist, each with its line, counted from 1.
pub(super) fn drafts(
    text: &str,
    form: Form,
    report: &mut Report,
) -> Result<Vec<(usize, Draft)>, ListError> {
    let mut parser = Parser { form, report: std::mem::take(report), ..Parser::default() };
    for (number, line) in lines(text) {
        parser.line(number, &line);
    }
    *report = std::mem::take(&mut parser.report);
    let mut tasks = parser.tasks;
    if tasks.is_empty() {
        return Err(ListError::NoEntries {
            found: "a text without tasks".to_owned(),
            advice: "write lines such as `- [ ] Name: description`, or headings such as \
                     `### Task 1: title`",
        });
    }
    let sections: Vec<(usize, &str)> = sections(text).collect();
    put_in_order(&mut tasks, form, &sections, report);
    let known = Known {
        tasks: tasks.iter().map(Task::reference).collect(),
        lines: tasks.iter().map(|task| task.line).collect(),
        sections,
        has_ids: form != Form::Boxes,
    };
    let draft = |(index, task): (usize, Task)| (task.line, task.into_draft(index, &known, report));
    Ok(tasks.into_iter().enumerate().map(draft).collect())
}

/// The order that the form gives, and the priorities that headings name.
fn put_in_order(tasks: &mut [Task], form: Form, sections: &[(usize, &str)], report: &mut Report) {
    match form {
        Form::Numbers => {
            order::sequence(tasks);
            report.note("each task waits for the one before, as in this format");
        }
        Form::SpecKit => {
            // `Tests for User Story 1` and other headings within a phase are no phases.
            let is_phase = |heading: &str| heading.to_lowercase().starts_with("phase");
            let phases: Vec<&(usize, &str)> =
                sections.iter().filter(|(_, heading)| is_phase(heading)).collect();
            let phase_of = |task: &Task| phases.partition_point(|(line, _)| *line < task.line);
            let phase_of_tasks: Vec<usize> = tasks.iter().map(phase_of).collect();
            for (task, phase) in tasks.iter_mut().zip(&phase_of_tasks) {
                let heading = phase.checked_sub(1).map(|phase| phases[phase].1);
                let priority = heading.and_then(|heading| heading.split_once("(Priority: "));
                if let Some((priority, _)) = priority.and_then(|(_, rest)| rest.split_once(')')) {
                    task.rank(priority);
                }
            }
            order::phases(tasks, &phase_of_tasks);
            report.note("tasks wait as their phases and `[P]` labels say");
        }
        Form::Boxes | Form::Headings => {}
    }
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
    form: Form,
    tasks: Vec<Task>,
    /// Whether lines belong to the last task.
    open: bool,
    field: Option<OpenField>,
    /// The spaces before the box of the last criterion, if lines may belong to it.
    criterion: Option<usize>,
    report: Report,
}

/// A field whose bullets follow.
struct OpenField {
    field: Field,
    /// The smallest number of spaces before its bullets.
    indent: usize,
}

impl Parser {
    fn line(&mut self, number: usize, line: &Line<'_>) {
        match *line {
            Line::Blank => {}
            Line::Heading { level, text } => self.heading(number, level, text),
            Line::Box { indent, mark, is_optional, text } => {
                self.check_box(number, indent, mark, is_optional, text);
            }
            Line::Field { indent, .. } | Line::Bullet { indent, .. } if self.is_detail(indent) => {
                let text = match line {
                    Line::Field { name, value, .. } => format!("{name}: {value}"),
                    Line::Bullet { text, .. } => (*text).to_owned(),
                    _ => return,
                };
                if let Some(task) = self.current() {
                    task.detail(&text);
                }
            }
            Line::Field { indent, is_bullet, field, name, value } => {
                // The bullets of a field without a value follow it; those of a bullet are deeper.
                let deeper = is_bullet || !value.is_empty();
                self.field = Some(OpenField { field, indent: indent + usize::from(deeper) });
                if let Some(task) = self.current() {
                    task.field(field, name, value);
                }
            }
            Line::Bullet { indent, text } => {
                self.field = self.field.take().filter(|field| indent >= field.indent);
                let field = self.field.as_ref().map(|field| field.field);
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

    /// Whether a line with this indentation belongs to the last criterion.
    fn is_detail(&mut self, indent: usize) -> bool {
        self.criterion = self.criterion.filter(|above| self.open && indent > *above);
        self.criterion.is_some()
    }

    fn check_box(&mut self, line: usize, indent: usize, mark: char, optional: bool, text: &str) {
        let begun = match self.form {
            Form::Headings => None,
            Form::Boxes => self.begins_task(indent).then(|| Task::of_box(line, indent, mark, text)),
            Form::SpecKit => {
                spec_kit_id(text).map(|(id, text)| Task::of_spec_kit(line, indent, mark, &id, text))
            }
            Form::Numbers => match box_number(text) {
                Some((number, title)) if !self.is_part_of_last(number) => {
                    Some(Task::of_number(line, mark, number, title))
                }
                None if indent == 0 => Some(Task::of_box(line, indent, mark, text)),
                _ => None,
            },
        };
        if let Some(mut task) = begun {
            task.is_optional = optional;
            self.begin(task);
            return;
        }
        let is_inside = |task: &Task| self.form != Form::SpecKit || indent > task.depth;
        let is_inside = self.tasks.last().is_some_and(is_inside);
        match self.current().filter(|_| is_inside) {
            Some(task) => {
                let text = if optional { format!("{text} (optional)") } else { text.to_owned() };
                task.criterion(mark, &text);
                self.criterion = Some(indent);
            }
            None => {
                self.report.guess("a box outside of any task: not read", format!("line {line}"));
            }
        }
    }

    /// Whether `1.2` is a part of the last task, which is `1`.
    fn is_part_of_last(&self, number: &str) -> bool {
        let above = self.tasks.last().and_then(Task::id).and_then(|id| id.strip_prefix("task-"));
        above.and_then(|above| number.strip_prefix(above)).is_some_and(|rest| rest.starts_with('.'))
    }

    fn heading(&mut self, number: usize, level: usize, text: &str) {
        if let Some((mark, id, title)) = task_heading(text) {
            self.begin(Task::of_heading(number, level, mark, &id, title));
            return;
        }
        let has_headings = self.form == Form::Headings;
        let inside = has_headings && self.tasks.last().is_some_and(|task| level > task.depth);
        self.open &= inside;
        let field = Field::named(text.trim_end_matches(':'));
        self.field = field.map(|field| OpenField { field, indent: 0 });
        self.criterion = None;
    }

    fn begins_task(&self, indent: usize) -> bool {
        !self.open || self.tasks.last().is_none_or(|task| indent <= task.depth)
    }

    fn begin(&mut self, task: Task) {
        self.tasks.push(task);
        self.open = true;
        self.field = None;
        self.criterion = None;
    }

    fn current(&mut self) -> Option<&mut Task> {
        self.tasks.last_mut().filter(|_| self.open)
    }
}

/// The number and the title of `1. title` and `1.2 title`.
fn box_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let number = text[..end].trim_end_matches('.');
    let is_number = number.starts_with(|letter: char| letter.is_ascii_digit());
    let is_apart = text[end..].starts_with(' ');
    (is_number && is_apart && !number.contains("..")).then(|| (number, text[end..].trim()))
}

#[cfg(test)]
mod tests;
