//! Notes that an agent appended to the progress file.

use std::path::Path;

use longhaul_engine::Failure;

use crate::files::{end_in_checkout, progress_file};
use crate::git::files;
use crate::git::names::PROGRESS_FILE;
use crate::git::objects::refs::Repository;

/// An agent's notes in the progress file.
#[derive(Debug, Default)]
pub(in crate::git) struct Notes {
    /// The appended text.
    pub(in crate::git) text: String,
    /// Why the file was not read. An unreadable file from an agent must not fail the seal.
    pub(in crate::git) unread: Option<String>,
}

/// The limit in bytes; of longer notes, the end is kept.
const LIMIT: usize = 64 * 1024;

impl Repository {
    /// The part of the work tree's progress file that is new: compared with the base commit's file,
    /// or if it is not tracked, with the one in the user's checkout.
    pub(in crate::git) async fn notes_in(
        &self,
        work_tree: &Path,
        base: &str,
    ) -> Result<Notes, Failure> {
        let now = match progress_file(work_tree) {
            Ok(Some(now)) => now,
            Ok(None) => return Ok(Notes::default()),
            Err(error) => return Ok(Notes { unread: Some(error.to_string()), ..Notes::default() }),
        };
        let before = match self.file_in(base, PROGRESS_FILE).await? {
            Some((_, bytes)) => bytes,
            None => end_in_checkout(&self.root)
                .map_err(|error| files::unreadable(&error, &self.root))?
                .unwrap_or_default(),
        };
        Ok(Notes {
            text: appended(&files::shown(&before), &files::shown(&now)).to_owned(),
            unread: None,
        })
    }
}

/// The text after the common leading lines.
fn appended<'a>(before: &str, now: &'a str) -> &'a str {
    let common = before
        .split_inclusive('\n')
        .zip(now.split_inclusive('\n'))
        .take_while(|(old, new)| old == new);
    let new = &now[common.map(|(_, line)| line.len()).sum()..];
    let start = new.ceil_char_boundary(new.len().saturating_sub(LIMIT));
    new[start..].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_what_follows_the_common_lines() {
        for (before, now, expected) in [
            ("", "one\n", "one"),
            ("one\n", "one\ntwo\n", "two"),
            ("one\n", "one\n", ""),
            ("one\nother\n", "one\ntwo\n", "two"),
            ("one", "rewritten", "rewritten"),
        ] {
            assert_eq!(appended(before, now), expected, "{before:?} -> {now:?}");
        }
        assert_eq!(appended("", &"é".repeat(LIMIT)).len(), LIMIT);
    }
}
