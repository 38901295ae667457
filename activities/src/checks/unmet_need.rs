//! Missing prerequisites of checks that an agent cannot provide: protected files and programs.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use longhaul_workflows::contracts::UnmetNeed;

/// The exit codes of a shell that cannot run a command.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// The prerequisites that a failed command lacks in a tree, as far as its output names them.
pub(super) fn of(
    command: &str,
    exit_code: Option<i32>,
    tree: &Path,
    is_protected: impl Fn(&Path) -> bool,
    search: &OsStr,
) -> Option<UnmetNeed> {
    let is_parted = |letter: char| letter.is_whitespace() || ";&|()<>\"'`=".contains(letter);
    let words = command.split(is_parted).filter(|word| !word.is_empty());
    let missing = words.map(|word| word.trim_start_matches("./")).find(|word| {
        let path = Path::new(word);
        // A bare word can be the name of a test as well as that of a directory.
        let is_in_protected = || word.contains('/') && is_protected(&path.join("any"));
        path.components().all(|part| matches!(part, Component::Normal(_)))
            && (is_protected(path) || is_in_protected())
            && tree.join(path).symlink_metadata().is_err()
    });
    if let Some(path) = missing {
        return Some(UnmetNeed::File { path: path.to_owned() });
    }
    let program = command.split_whitespace().next()?;
    let is_name = program.chars().all(|letter| letter.is_alphanumeric() || "_.+-".contains(letter));
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let is_found = std::env::split_paths(search).any(|dir| is_program(&dir.join(program)));
    let cannot_run = exit_code.is_some_and(|code| CANNOT_RUN.contains(&code));
    (cannot_run && is_name && !is_found).then(|| UnmetNeed::Program { name: program.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(command: &str, exit_code: i32, expected: Option<&UnmetNeed>) {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("acceptance")).unwrap();
        std::fs::write(tree.path().join("acceptance/there.sh"), "").unwrap();
        let is_protected = |path: &Path| {
            let is_below = ["acceptance", "fixtures"].iter().any(|dir| path.starts_with(dir));
            is_below && path.iter().count() > 1
        };
        let found =
            of(command, Some(exit_code), tree.path(), is_protected, OsStr::new("/usr/bin:/bin"));
        assert_eq!(found.as_ref(), expected, "{command}");
    }

    #[test]
    fn a_missing_protected_file_is_found_in_any_word() {
        let file = |path: &str| Some(UnmetNeed::File { path: path.into() });
        expect("sh acceptance/login.sh", 2, file("acceptance/login.sh").as_ref());
        expect("cd x && ./acceptance/a.sh; true", 127, file("acceptance/a.sh").as_ref());
        expect("run --with=acceptance/a.sh", 1, file("acceptance/a.sh").as_ref());
        expect("ls fixtures/ x", 1, file("fixtures/").as_ref());
        expect("sh acceptance/there.sh", 1, None);
        expect("cargo test --test fixtures login::", 101, None);
        expect("sh tests/new.sh", 127, None);
    }

    #[test]
    fn a_missing_program_is_a_bare_name_outside_of_the_search_path() {
        let program = Some(UnmetNeed::Program { name: "no-such-program".into() });
        expect("no-such-program --test", 127, program.as_ref());
        expect("no-such-program", 1, None);
        expect("./target/app", 127, None);
        expect("sh run.sh", 127, None);
    }
}
