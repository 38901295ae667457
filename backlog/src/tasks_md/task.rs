//! Converts one task of a checklist from its lines to a draft of a feature.

use super::line::{Field, numbered, task_number};
use crate::error::Problem;
use crate::list::{Draft, Report, priority_of_word, status_of_word};
use longhaul_workflows::backlog::{Check, Feature, FeatureId, FeatureStatus};

/// A task whose lines are being read.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) line: usize,
    /// The spaces before its box, or the level of its heading.
    pub(super) depth: usize,
    id: Option<String>,
    mark: char,
    name: String,
    description: Vec<String>,
    criteria: Vec<(char, String)>,
    dependencies: Vec<String>,
    checks: Vec<String>,
    category: Option<String>,
    priority: Option<String>,
    status: Option<String>,
}

impl Task {
    fn new(line: usize, depth: usize, mark: char, name: &str) -> Self {
        Self {
            line,
            depth,
            id: None,
            mark,
            name: name.to_owned(),
            description: Vec::new(),
            criteria: Vec::new(),
            dependencies: Vec::new(),
            checks: Vec::new(),
            category: None,
            priority: None,
            status: None,
        }
    }

    /// A task from `- [ ] Name: description`.
    pub(super) fn of_box(line: usize, indent: usize, mark: char, text: &str) -> Self {
        let bold = text.strip_prefix("**").and_then(|text| text.split_once("**"));
        let (name, description) = match bold {
            Some((name, rest)) => (name, rest),
            None => text.split_once(": ").unwrap_or((text, "")),
        };
        let mut task = Self::new(line, indent, mark, name.trim().trim_end_matches(':').trim());
        task.describe(description.trim_start_matches([':', '-', '–', '—', ' ']));
        task
    }

    /// A task from `### Task 1: title`.
    pub(super) fn of_heading(line: usize, level: usize, mark: char, id: &str, title: &str) -> Self {
        let name = if title.is_empty() { id } else { title };
        Self { id: Some(id.to_owned()), ..Self::new(line, level, mark, name) }
    }

    pub(super) fn criterion(&mut self, mark: char, text: &str) {
        self.criteria.push((mark, text.to_owned()));
    }

    pub(super) fn describe(&mut self, text: &str) {
        if !text.is_empty() {
            self.description.push(text.to_owned());
        }
    }

    pub(super) fn field(&mut self, field: Field, name: &str, value: &str) {
        match field {
            Field::Other if value.is_empty() => self.describe(&format!("{name}:")),
            Field::Other => self.describe(&format!("{name}: {value}")),
            _ if value.is_empty() => {}
            Field::Criteria => self.criterion(' ', value),
            Field::Dependencies => self.dependencies.extend(references(value)),
            Field::Checks => self.checks.push(without_ticks(value).to_owned()),
            Field::Description => self.describe(value),
            Field::Priority => self.priority = Some(value.to_owned()),
            Field::Category => self.category = Some(value.to_owned()),
            Field::Status => self.status = Some(value.to_owned()),
        }
    }

    /// A bullet below a field, or without one.
    pub(super) fn bullet(&mut self, field: Option<Field>, text: &str) {
        match field {
            Some(field @ (Field::Criteria | Field::Dependencies | Field::Checks)) => {
                self.field(field, "", text);
            }
            _ => self.describe(&format!("- {text}")),
        }
    }

    /// The draft; unreadable values are reported.
    pub(super) fn into_draft(self, with_headings: bool, report: &mut Report) -> Draft {
        let place = format!("line {}", self.line);
        if self.name.is_empty() {
            report.problem(Problem {
                place: place.clone(),
                id: None,
                field: "name".to_owned(),
                found: "missing".to_owned(),
                advice: "write it after the box".to_owned(),
                repair: None,
            });
        }
        let status = self.status(&place, report);
        let alone = self.checks.len() == 1;
        let check = |(index, run): (usize, &String)| Check {
            name: if alone { "check".to_owned() } else { format!("check-{}", index + 1) },
            run: run.clone(),
            ..Check::default()
        };
        let feature = Feature {
            description: self.description.join("\n"),
            category: self.category.clone(),
            priority: self.priority(&place, report),
            acceptance_criteria: self.criteria.iter().map(|(_, text)| text.clone()).collect(),
            checks: self.checks.iter().enumerate().map(check).collect(),
            status,
            passes: status == FeatureStatus::Completed,
            ..Feature::new(FeatureId::of_place(0), self.name)
        };
        let as_id = |name: String| {
            if with_headings { as_task_id(&name).unwrap_or(name) } else { name }
        };
        let depends_on = self.dependencies.into_iter().map(as_id).collect();
        Draft { place, id: self.id, feature, depends_key: "dependencies".to_owned(), depends_on }
    }

    fn priority(&self, place: &str, report: &mut Report) -> i64 {
        let Some(text) = &self.priority else { return 0 };
        let word = text.split_whitespace().next().unwrap_or_default();
        if let Ok(number) = word.parse() {
            return number;
        }
        if let Some(priority) = priority_of_word(word) {
            report.guess(format!("the priority {word} is read as {priority}"), place);
            return priority;
        }
        report.problem(Problem {
            place: place.to_owned(),
            id: self.id.clone(),
            field: "priority".to_owned(),
            found: format!("found \"{text}\""),
            advice: "write P0 to P4, or a whole number, higher for sooner".to_owned(),
            repair: None,
        });
        0
    }

    fn status(&self, place: &str, report: &mut Report) -> FeatureStatus {
        if let Some(word) = &self.status {
            return status_of_word(word).unwrap_or_else(|| {
                report.guess(format!("the status `{word}` is not known, read as pending"), place);
                FeatureStatus::Pending
            });
        }
        if let Some(status) =
            status_of_mark(self.mark).filter(|status| *status != FeatureStatus::Pending)
        {
            return status;
        }
        if status_of_mark(self.mark).is_none() {
            report
                .guess(format!("the mark `[{}]` is not known, read as pending", self.mark), place);
        }
        let marks: Vec<_> =
            self.criteria.iter().filter_map(|(mark, _)| status_of_mark(*mark)).collect();
        let any = |status| marks.contains(&status);
        // A heading has no state of its own; an empty box means that the task is open.
        let status = if self.id.is_none() {
            FeatureStatus::Pending
        } else if any(FeatureStatus::Blocked) {
            FeatureStatus::Blocked
        } else if !marks.is_empty()
            && marks.iter().all(|status| *status == FeatureStatus::Completed)
        {
            FeatureStatus::Completed
        } else if any(FeatureStatus::Completed) || any(FeatureStatus::InProgress) {
            FeatureStatus::InProgress
        } else {
            FeatureStatus::Pending
        };
        if status != FeatureStatus::Pending {
            report.guess(format!("{status}, as the boxes of the criteria say"), place);
        }
        status
    }
}

fn status_of_mark(mark: char) -> Option<FeatureStatus> {
    Some(match mark {
        ' ' => FeatureStatus::Pending,
        'x' | 'X' => FeatureStatus::Completed,
        '~' => FeatureStatus::InProgress,
        '!' => FeatureStatus::Blocked,
        _ => return None,
    })
}

/// The dependencies in `Task 1, Task 2` or `nenhuma`.
fn references(text: &str) -> Vec<String> {
    let none = ["nenhuma", "nenhum", "none", "n/a", "-", "–", "—"];
    let names = text.split([',', ';']).map(|name| without_ticks(name.trim().trim_end_matches('.')));
    let named =
        names.filter(|name| !name.is_empty() && !none.contains(&name.to_lowercase().as_str()));
    named.map(str::to_owned).collect()
}

/// `Task 1`, `#1`, `1` and `Task 1 (the schema)` as `task-1`; none for anything else.
fn as_task_id(name: &str) -> Option<String> {
    let (id, rest) = task_number(name).or_else(|| numbered(name))?;
    (rest.trim().is_empty() || rest.trim_start().starts_with('(')).then_some(id)
}

fn without_ticks(text: &str) -> &str {
    text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text).trim()
}
