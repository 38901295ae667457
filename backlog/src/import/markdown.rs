//! Markdown: `- [ ] Name: description` lines, a `tasks.md` with `### Task 1: title` headings and
//! fields, and the task lists of spec-kit and Kiro.

use super::error::ImportError;
use super::intake::{Intake, Rule, made_up};
use super::place::Place;
use super::shape::Shape;
use super::source::{Source, Syntax};
use crate::tasks_md::{self, Form, boxes, has_task_headings};
use longhaul_workflows::backlog::{Feature, FeatureStatus};

pub(super) const CHECKLIST: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| form(source) == Some(Form::Boxes),
    read: |source, intake| read(source, intake, Shape::Checklist, Form::Boxes),
};

pub(super) const TASKS: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| form(source) == Some(Form::Headings),
    read: |source, intake| read(source, intake, Shape::TasksMd, Form::Headings),
};

pub(super) const SPEC_KIT: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| form(source) == Some(Form::SpecKit),
    read: |source, intake| read(source, intake, Shape::SpecKit, Form::SpecKit),
};

pub(super) const KIRO: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| form(source) == Some(Form::Numbers),
    read: |source, intake| read(source, intake, Shape::Kiro, Form::Numbers),
};

/// The form of a text with tasks.
fn form(source: &Source<'_>) -> Option<Form> {
    let Source::Markdown(text) = source else { return None };
    (has_task_headings(text) || boxes(text).next().is_some()).then(|| Form::of(text))
}

/// Reads the tasks of a text.
fn read(
    source: &Source<'_>,
    intake: &mut Intake<'_>,
    shape: Shape,
    form: Form,
) -> Result<(), ImportError> {
    let Source::Markdown(text) = source else {
        let reason = "it is no Markdown".to_owned();
        return Err(ImportError::OtherShape { shape, place: Place::document(), reason });
    };
    let sections: Vec<(usize, &str)> = tasks_md::sections(text).collect();
    for (line, draft) in tasks_md::drafts(text, form, &mut intake.report)? {
        let above = sections[..sections.partition_point(|(above, _)| *above < line)].last();
        for (what, field) in fields(&draft.feature, !draft.depends_on.is_empty()) {
            intake.map(what, field);
        }
        let section = above.map(|(_, heading)| made_up("section", *heading));
        intake.add_draft(Place::line(line), draft, section.into_iter().collect());
    }
    Ok(())
}

/// The parts of a task, with the fields that they were read into.
fn fields(task: &Feature, depends: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let said = [
        (true, "the box or the heading", "name"),
        (!task.description.is_empty(), "the text", "description"),
        (!task.acceptance_criteria.is_empty(), "the boxes below", "acceptance_criteria"),
        (depends, "dependencies", "depends_on"),
        (task.priority != 0, "priority", "priority"),
        (task.category.is_some(), "category", "category"),
        (!task.checks.is_empty(), "checks", "checks"),
        (task.status != FeatureStatus::Pending, "the mark", "status"),
    ];
    said.into_iter().filter_map(|(is_there, what, field)| is_there.then_some((what, field)))
}
