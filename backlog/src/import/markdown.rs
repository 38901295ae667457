//! Markdown: `- [ ] Name: description` lines, or a `tasks.md` with `### Task 1: title` headings and
//! fields in bold.

use super::error::ImportError;
use super::intake::{Intake, made_up};
use super::place::Place;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::tasks_md::{self, boxes, has_task_headings};
use longhaul_workflows::backlog::{Feature, FeatureStatus};

pub(super) const CHECKLIST: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| matches!(source, Source::Markdown(text) if !has_task_headings(text) && boxes(text).next().is_some()),
    read: |source, intake| read(source, intake, Shape::Checklist),
};

pub(super) const TASKS: Rule = Rule {
    syntax: Syntax::Markdown,
    matches: |source| matches!(source, Source::Markdown(text) if has_task_headings(text)),
    read: |source, intake| read(source, intake, Shape::TasksMd),
};

/// Reads the tasks of a text.
fn read(source: &Source<'_>, intake: &mut Intake<'_>, shape: Shape) -> Result<(), ImportError> {
    let Source::Markdown(text) = source else {
        let reason = "it is no Markdown".to_owned();
        return Err(ImportError::OtherShape { shape, place: Place::document(), reason });
    };
    let sections: Vec<(usize, &str)> = tasks_md::sections(text).collect();
    for (line, draft) in tasks_md::drafts(text, &mut intake.report)? {
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
