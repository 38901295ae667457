//! Commands that are advised to people. They name runs and directories in full, so that they work
//! from any directory.

use std::path::Path;

use longhaul_activities::git;
use longhaul_engine::{Failure, RunId};

/// A command in backticks; the words are quoted for a shell where necessary.
pub fn command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words = words.into_iter().map(|word| quoted(word.as_ref()));
    format!("`longhaul {}`", words.collect::<Vec<_>>().join(" "))
}

/// Runs a project.
pub fn run(root: impl AsRef<Path>) -> String {
    command(["run", &root.as_ref().to_string_lossy()])
}

/// Applies a verb to a run.
pub fn on(verb: &str, run: &RunId) -> String {
    command([verb, run.as_str()])
}

/// The commands that answer a request for approval.
pub fn approve_or_deny(run: &RunId) -> String {
    let deny = command(["deny", run.as_str(), "--why", "TEXT"]);
    format!("{} or {deny}", on("approve", run))
}

/// The commands that settle a parked run, joined by `or`.
pub fn reconcile(run: &RunId) -> String {
    let settle = |outcome| command(["reconcile", run.as_str(), outcome]);
    format!("{} or {}", settle("--happened"), settle("--not-happened"))
}

/// A subcommand of `feature` on a feature of a project.
pub fn feature(verb: &str, feature: &str, root: impl AsRef<Path>) -> String {
    command(["feature", verb, feature, "--dir", &root.as_ref().to_string_lossy()])
}

/// A failure of git in a directory, with the command that names and repairs a damage.
pub fn with_remedy(failure: Failure, dir: &Path) -> Failure {
    if failure.code.as_deref() != Some(git::DAMAGED) {
        return failure;
    }
    let doctor = command(["doctor", &dir.to_string_lossy()]);
    Failure { message: format!("{}; see {doctor}", failure.message), ..failure }
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_@%+=:,./-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_as_they_are() {
        assert_eq!(run("/home/me/shop"), "`longhaul run /home/me/shop`");
        assert_eq!(run("/home/me/my shop"), "`longhaul run '/home/me/my shop'`");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
