//! Entries that were read, with ids and dependencies as they are written.

use super::report::shortened;
use crate::error::{Problem, Repair};
use longhaul_workflows::backlog::{Feature, InvalidFeatureId};

/// Maximum length of an id generated from a text, without the number that makes it unique.
pub(super) const SLUG_LEN: usize = 40;

/// An entry with unresolved id and dependencies.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Its place: `entry 3`, `line 12`.
    pub(crate) place: String,
    /// Its explicit id.
    pub(crate) id: Option<String>,
    /// Its fields; the id and the dependencies in it are ignored.
    pub(crate) feature: Feature,
    /// The field with the dependencies, for messages.
    pub(crate) depends_key: String,
    /// Ids or names.
    pub(crate) depends_on: Vec<String>,
}

impl Draft {
    /// The place, with the id or the beginning of the name.
    pub(crate) fn label(&self) -> String {
        let name = self.id.clone().unwrap_or_else(|| shortened(&self.feature.name, SLUG_LEN));
        format!("{} `{name}`", self.place)
    }

    pub(super) fn problem(&self, field: &str, found: String, advice: String) -> Problem {
        Problem {
            place: self.place.clone(),
            id: self.id.clone(),
            field: field.to_owned(),
            found,
            advice,
            repair: None,
        }
    }

    pub(super) fn invalid_id(&self, written: &str, error: &InvalidFeatureId) -> Problem {
        let advice =
            "write at most 64 ASCII letters, digits and . _ -, beginning with a letter or a digit";
        let found = format!("found \"{written}\": {}", error.reason());
        Problem { repair: Some(Repair::RenameIds), ..self.problem("id", found, advice.to_owned()) }
    }
}

/// Lowercase ASCII letters and digits with `-` between the words, at most `most` bytes, cut at a
/// word.
pub(crate) fn slug(text: &str, most: usize) -> String {
    let mut slug = String::new();
    let plain: String = text.to_lowercase().chars().map(without_accent).collect();
    for word in
        plain.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
    {
        if slug.is_empty() {
            slug.push_str(&word[..word.len().min(most)]);
        } else if slug.len() + 1 + word.len() <= most {
            slug.push('-');
            slug.push_str(word);
        } else {
            break;
        }
    }
    slug
}

fn without_accent(letter: char) -> char {
    match letter {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' | 'ø' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        other => other,
    }
}
