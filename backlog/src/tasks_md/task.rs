//! Converts one task of a checklist from its lines to a draft of a feature.

use super::line::Field;
use super::reference::{Known, without_ticks};
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
    /// Tasks that come first by the order of the file.
    before: Vec<String>,
    /// Whether its box is the only source of its state.
    is_box: bool,
    /// `- [ ]* text`.
    pub(super) is_optional: bool,
    /// `[P]`: at the same time as its neighbours with this label.
    pub(super) is_parallel: bool,
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
            before: Vec::new(),
            is_box: false,
            is_optional: false,
            is_parallel: false,
        }
    }

    /// Its id, if it has one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The id or the name by which others depend on it.
    pub(super) fn reference(&self) -> String {
        self.id.clone().unwrap_or_else(|| self.name.clone())
    }

    /// Whether it has a label such as `[US1]`.
    pub(super) fn has_story(&self) -> bool {
        self.category.as_ref().is_some_and(|category| category.starts_with("US"))
    }

    /// Makes it wait for another task.
    pub(super) fn needs(&mut self, id: &str) {
        self.before.push(id.to_owned());
    }

    /// Sets the priority, unless it has one.
    pub(super) fn rank(&mut self, priority: &str) {
        self.priority.get_or_insert_with(|| priority.to_owned());
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

    /// A numbered task of Kiro from `- [ ] 2. Title`.
    pub(super) fn of_number(line: usize, mark: char, number: &str, title: &str) -> Self {
        let id = Some(format!("task-{number}"));
        let name = if title.is_empty() { number } else { title };
        Self { id, is_box: true, ..Self::new(line, 0, mark, name) }
    }

    /// A task of spec-kit from `- [ ] T012 [P] [US1] Text (depends on T010, T011)`.
    pub(super) fn of_spec_kit(
        line: usize,
        indent: usize,
        mark: char,
        id: &str,
        text: &str,
    ) -> Self {
        let mut rest = text.trim_start();
        let mut labels = Vec::new();
        while let Some((label, after)) =
            rest.strip_prefix('[').and_then(|text| text.split_once(']'))
        {
            labels.push(label.trim());
            rest = after.trim_start();
        }
        let mut task = Self::of_box(line, indent, mark, rest);
        task.id = Some(id.to_owned());
        task.is_parallel = labels.contains(&"P");
        let story = labels.iter().find(|label| label.starts_with("US"));
        task.category = story.map(|story| (*story).to_owned());
        let lower = rest.to_ascii_lowercase();
        if let Some(at) = lower.find("depends on t").filter(|_| lower.len() == rest.len()) {
            let named = &rest[at + "depends on ".len()..];
            let end = named.find([')', ';', '.']).unwrap_or(named.len());
            task.dependencies.push(named[..end].to_owned());
        }
        task
    }

    /// A line that belongs to the last criterion.
    pub(super) fn detail(&mut self, text: &str) {
        if let Some((_, criterion)) = self.criteria.last_mut() {
            *criterion += &format!("\n{text}");
        }
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
            Field::Dependencies => self.dependencies.push(value.to_owned()),
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

    /// The draft of the task at `index`; unreadable values are reported.
    pub(super) fn into_draft(self, index: usize, known: &Known<'_>, report: &mut Report) -> Draft {
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
        let named = self.dependencies.iter().flat_map(|text| known.resolve(text, index));
        let mut depends_on: Vec<String> = Vec::new();
        for name in self.before.into_iter().chain(named) {
            if !depends_on.contains(&name) {
                depends_on.push(name);
            }
        }
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
        } else if self.is_box {
            let begun = any(FeatureStatus::Completed) || any(FeatureStatus::InProgress);
            if begun { FeatureStatus::InProgress } else { FeatureStatus::Pending }
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
        '~' | '-' | '/' => FeatureStatus::InProgress,
        '!' => FeatureStatus::Blocked,
        _ => return None,
    })
}
