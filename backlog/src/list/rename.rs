//! Valid ids for entries whose own id is invalid or taken.

use std::collections::HashSet;

use super::draft::Draft;
use super::report::Report;
use longhaul_workflows::backlog::FeatureId;

/// Gives new ids, which differ from all valid ids of the file.
pub(super) struct NewIds {
    /// In lower case.
    taken: HashSet<String>,
}

impl NewIds {
    pub(super) fn new(drafts: &[Draft]) -> Self {
        let valid = drafts.iter().filter_map(|draft| FeatureId::new(draft.id.clone()?).ok());
        Self { taken: valid.map(|id| id.folded()).collect() }
    }

    /// A new id that resembles the written one; the same for the same file.
    pub(super) fn renamed(
        &mut self,
        draft: &Draft,
        written: &str,
        index: usize,
        report: &mut Report,
    ) -> FeatureId {
        let base = usable(written);
        let numbered = |number: usize| {
            let number = format!("-{number}");
            let kept = base.len().min(FeatureId::MAX_LEN - number.len());
            FeatureId::new(base[..kept].trim_end_matches(['.', '-']).to_owned() + &number).ok()
        };
        let candidates = std::iter::once(FeatureId::new(base.clone()).ok());
        let id = candidates
            .chain((2..).map(numbered))
            .flatten()
            .find(|id| !self.taken.contains(&id.folded()))
            .unwrap_or_else(|| FeatureId::of_place(index));
        self.taken.insert(id.folded());
        report.guess(
            "the id cannot be used: renamed",
            format!("{} `{written}` -> `{id}`", draft.place),
        );
        id
    }
}

/// A valid id with the usable letters of a text.
fn usable(text: &str) -> String {
    let mut id = String::with_capacity(text.len().min(FeatureId::MAX_LEN));
    for letter in text.chars() {
        let is_allowed = letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let letter = if is_allowed { letter } else { '-' };
        let doubles = |last: char| id.ends_with(last) && letter == last;
        if id.len() < FeatureId::MAX_LEN && !doubles('.') && !doubles('-') {
            id.push(letter);
        }
    }
    let id = id.trim_start_matches(['.', '-']).trim_end_matches(['.', '-']);
    let id = id.strip_suffix(".lock").unwrap_or(id);
    if id.is_empty() { "feature".to_owned() } else { id.to_owned() }
}
