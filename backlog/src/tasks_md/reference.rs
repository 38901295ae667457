//! Resolves the dependencies of tasks: ids, names, ranges, phases, `all previous tasks`, `none`.

use super::line::{numbered, task_number};

/// The tasks of a checklist that dependencies may name, in the order of the file.
pub(super) struct Known<'t> {
    /// The id or the name of each task.
    pub(super) tasks: Vec<String>,
    /// The line of each task.
    pub(super) lines: Vec<usize>,
    /// The headings that are no tasks, with their lines.
    pub(super) sections: Vec<(usize, &'t str)>,
    /// Whether dependencies are ids such as `Task 1`, and a word between two of them is no name.
    pub(super) has_ids: bool,
}

impl Known<'_> {
    /// The dependencies that a text of the task at `index` names.
    pub(super) fn resolve(&self, text: &str, index: usize) -> Vec<String> {
        let bare = without_parentheses(text);
        let bare = without_ticks(bare.trim().trim_end_matches('.').trim()).to_owned();
        if is_none(&bare) {
            return Vec::new();
        }
        if is_all(&bare) {
            let inside = text.split(['(', ')']).find_map(|part| self.range(part));
            let range =
                inside.or_else(|| bare.split_whitespace().find_map(|part| self.range(part)));
            return range.unwrap_or_else(|| self.tasks[..index].to_vec());
        }
        let parts = bare.split([',', ';']).map(|part| without_ticks(part.trim()));
        parts
            .filter(|part| !part.is_empty() && !is_none(part))
            .flat_map(|part| self.part(part))
            .collect()
    }

    /// A name, an id, a range of ids, a phase, or ids with a word between them.
    fn part(&self, part: &str) -> Vec<String> {
        let part = part.trim_end_matches('.').trim();
        if !self.has_ids || self.tasks.iter().any(|task| task == part) {
            return vec![part.to_owned()];
        }
        if let Some(tasks) = self.range(part).or_else(|| self.section(part)) {
            return tasks;
        }
        if let Some((id, rest)) = id(part)
            && rest.trim().is_empty()
        {
            return vec![id];
        }
        for word in [" and ", " e ", " y ", " & ", " + ", " und ", "/"] {
            let ids: Option<Vec<String>> = part
                .split(word)
                .map(|part| id(part.trim()).filter(|(_, rest)| rest.trim().is_empty()))
                .map(|found| found.map(|(id, _)| id))
                .collect();
            if let Some(ids) = ids {
                return ids;
            }
        }
        vec![part.to_owned()]
    }

    /// `Task 2-5`, `T001–T004`, `6 to 21`.
    fn range(&self, text: &str) -> Option<Vec<String>> {
        let (first, rest) = id(text.trim())?;
        let rest = rest.trim_start();
        let links = ["-", "–", "—", "..", "to ", "through ", "a ", "até ", "ate "];
        let rest = links.iter().find_map(|link| rest.strip_prefix(link))?;
        let (last, rest) = id(rest.trim_start())?;
        if !rest.trim().is_empty() {
            return None;
        }
        let place = |id: &String| self.tasks.iter().position(|task| task.eq_ignore_ascii_case(id));
        let from = place(&first)?;
        let to = place(&last)?;
        (from <= to).then(|| self.tasks[from..=to].to_vec())
    }

    /// The tasks below the heading that begins with `Phase 2`, `Fase 2` or `Sprint 2`.
    fn section(&self, text: &str) -> Option<Vec<String>> {
        let mut words = text.split_whitespace();
        let kind = words.next()?.to_lowercase();
        let number = words.next()?.trim_matches(':');
        if !["phase", "fase", "sprint"].contains(&kind.as_str()) {
            return None;
        }
        number.starts_with(|letter: char| letter.is_ascii_digit()).then_some(())?;
        let wanted = format!("{kind} {number}");
        let is_wanted = |heading: &str| {
            heading.to_lowercase().strip_prefix(&wanted).is_some_and(|rest| {
                !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '.')
            })
        };
        let found = self.sections.iter().position(|(_, heading)| is_wanted(heading))?;
        let from = self.sections[found].0;
        let to = self.sections.get(found + 1).map_or(usize::MAX, |(line, _)| *line);
        let tasks = self.tasks.iter().zip(&self.lines);
        let inside: Vec<String> = tasks
            .filter(|(_, line)| (from..to).contains(*line))
            .map(|(task, _)| task.clone())
            .collect();
        (!inside.is_empty()).then_some(inside)
    }
}

/// The id at the beginning of a text, and the rest: `Task 1`, `#1`, `1.2`, `T001`.
fn id(text: &str) -> Option<(String, &str)> {
    spec_kit_id(text).or_else(|| task_number(text)).or_else(|| numbered(text))
}

/// The id `T001` at the beginning of a text, and the rest.
pub(super) fn spec_kit_id(text: &str) -> Option<(String, &str)> {
    let digits = text.strip_prefix('T')?;
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let end = digits.find(|letter: char| !is_part(letter)).unwrap_or(digits.len());
    let number = digits[..end].trim_end_matches('.');
    let (id, rest) = text.split_at(1 + number.len());
    let first = number.chars().take_while(char::is_ascii_digit).count();
    (first >= 2 && first + 4 >= number.len()).then(|| (id.to_owned(), rest))
}

fn is_none(text: &str) -> bool {
    let text = text.to_lowercase();
    let none = [
        "nenhuma",
        "nenhum",
        "none",
        "n/a",
        "na",
        "nil",
        "no",
        "nothing",
        "nada",
        "ninguna",
        "ninguno",
        "-",
        "–",
        "—",
        "sem dependências",
        "sem dependencias",
        "no dependencies",
        "nenhuma dependência",
        "keine",
        "aucune",
    ];
    none.contains(&text.as_str())
        || text.starts_with("none ")
        || text.starts_with("nenhuma ")
        || text.starts_with("no dependencies ")
}

/// `all previous tasks`, `todas as tarefas anteriores`, `All of the above`.
fn is_all(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split_whitespace();
    let begins = ["all", "todas", "todos", "every", "alle"];
    words.next().is_some_and(|word| begins.contains(&word))
}

/// The text outside of parentheses.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

pub(super) fn without_ticks(text: &str) -> &str {
    text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text).trim()
}
