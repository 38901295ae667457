//! A user's repository: its paths, the state of its checkout, and Longhaul's marks in it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longhaul_engine::Failure;

use super::command::Git;
use super::command::directories::{common_dir, git_dir};
use super::damage::find_damage;
use super::files;
use super::locks::stale::lock_of_settings;
use super::names::{
    NEXT, OWN_BRANCHES, OWN_DIR, PROGRESS_FILE, TEMP_FILE_PATTERN, TEMP_PREFIX, branch_ref,
};

/// The oldest git with `merge-tree --write-tree`.
const OLDEST: (u32, u32) = (2, 38);

/// The version of git; a terminal failure if git is missing or too old.
pub async fn check_git() -> Result<String, Failure> {
    let text = Git::at("/").arg("--version").text().await?;
    let version = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < OLDEST {
        return Err(Failure::terminal(format!(
            "git {version} is too old; Longhaul needs git 2.38 or later"
        )));
    }
    Ok(version)
}

/// A checkout that has a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Its top directory, absolute.
    pub top: PathBuf,
    /// The unfinished operation: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`.
    pub in_progress: Option<&'static str>,
}

impl Checkout {
    /// The checkout that contains `dir`; without one, a terminal failure that names the gap.
    pub async fn containing(dir: &Path) -> Result<Self, Failure> {
        let shown = dir.display();
        match std::fs::metadata(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::terminal(format!("there is no directory {shown}")));
            }
            Ok(found) if !found.is_dir() => {
                return Err(Failure::terminal(format!("{shown} is not a directory")));
            }
            _ => {}
        }
        let finished = Git::at(dir)
            .args(["rev-parse", "--is-bare-repository", "--is-inside-work-tree"])
            .finish()
            .await?;
        if finished.code() != Some(0) {
            if let Some(damaged) = damaged(dir).await {
                return Err(damaged);
            }
            if !finished.error_text().contains("not a git repository") {
                return Err(finished.failure());
            }
            return Err(Failure::terminal(format!(
                "{shown} is not in a git repository; run `git init` there and make a first commit"
            )));
        }
        match finished.text().split_whitespace().collect::<Vec<_>>()[..] {
            ["true", ..] => {
                return Err(Failure::terminal(format!(
                    "{shown} is in a bare repository; use a checkout of it"
                )));
            }
            [_, "true"] => {}
            _ => {
                return Err(Failure::terminal(format!(
                    "{shown} is inside of a .git directory; use the checkout"
                )));
            }
        }
        let top = PathBuf::from(Git::at(dir).args(["rev-parse", "--show-toplevel"]).text().await?);
        let head =
            Git::at(&top).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).find().await;
        let head = match head {
            Ok(head) => head,
            Err(failure) => {
                let damaged = damaged(&top).await;
                return Err(damaged.unwrap_or_else(|| failure.with_code(DAMAGED)));
            }
        };
        if head.is_none() {
            return Err(missing_commit(&top).await?);
        }
        let in_progress = operation_in(&git_dir(&top).await?);
        Ok(Self { top, in_progress })
    }

    /// Its top; a terminal failure during a merge or the like.
    pub fn settled(self) -> Result<PathBuf, Failure> {
        match self.in_progress {
            None => Ok(self.top),
            Some(operation) => Err(Failure::terminal(format!(
                "{} is in the middle of a {operation}; finish or abort it first",
                self.top.display()
            ))),
        }
    }
}

/// The failure code for a damaged repository.
pub const DAMAGED: &str = "damaged_repository";

/// The failure for a damaged repository in which git does not work, if it is damaged.
async fn damaged(dir: &Path) -> Option<Failure> {
    let damage = find_damage(dir).await.ok()?;
    let file = damage.first()?.file().display();
    let shown = dir.display();
    let message = format!("the repository of {shown} is damaged: git cannot read {file}");
    Some(Failure::terminal(message).with_code(DAMAGED))
}

/// Why HEAD names no commit: there is none yet, or the repository is damaged.
async fn missing_commit(top: &Path) -> Result<Failure, Failure> {
    let shown = top.display();
    // Git cannot name the branch when its ref is damaged.
    let head = files::read(&git_dir(top).await?.join("HEAD"))?.unwrap_or_default();
    let branch = files::shown(head.trim_ascii()).trim_start_matches("ref: ").to_owned();
    let has_ref = files::is_there(&common_dir(top).await?.join(&branch));
    let damage = find_damage(top).await?;
    if damage.is_empty() && !has_ref {
        let listed = Git::at(top).args(["for-each-ref", "--count=1", "refs/heads/"]).finish();
        if !listed.await?.text().is_empty() {
            let branch = branch.trim_start_matches("refs/heads/");
            return Ok(Failure::terminal(format!(
                "the branch `{branch}` of {shown} has no commit; check out another branch there"
            )));
        }
        return Ok(Failure::terminal(format!("{shown} has no commit yet; make a first one")));
    }
    let named = damage.first().map_or(branch, |damage| {
        let file = damage.file();
        let missing = if files::is_there(file) { "" } else { " is missing" };
        format!("{}{missing}", file.display())
    });
    let message = format!(
        "the repository {shown} is damaged: its HEAD names no commit that can be read ({named})"
    );
    Ok(Failure::terminal(message).with_code(DAMAGED))
}

/// The checked-out branch; a terminal failure if HEAD is detached.
pub async fn branch_of(checkout: &Path) -> Result<String, Failure> {
    if let Some(on) = checked_out(&checkout.join(".git"))
        && let Some(branch) = on.strip_prefix("refs/heads/")
    {
        return Ok(branch.to_owned());
    }
    let found =
        Git::at(checkout).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).find().await?;
    found.ok_or_else(|| {
        Failure::terminal(format!(
            "no branch is checked out in {} (detached HEAD); check one out, or set `target` under \
             [project] in longhaul.toml",
            checkout.display()
        ))
    })
}

/// The ref that HEAD names in a git directory; `None` if it is detached, or only git can read it.
pub(super) fn checked_out(git_dir: &Path) -> Option<String> {
    let is_directory = std::fs::symlink_metadata(git_dir).is_ok_and(|metadata| metadata.is_dir());
    let head = if is_directory { files::read(&git_dir.join("HEAD")).ok()?? } else { return None };
    let on = files::shown(head.trim_ascii()).strip_prefix("ref: ").map(str::to_owned);
    // A reftable repository has this value in its HEAD file.
    on.filter(|on| on != "refs/heads/.invalid")
}

/// The commit of a branch; `None` if there is no such branch.
pub(crate) async fn tip_of(checkout: &Path, branch: &str) -> Result<Option<String>, Failure> {
    let name = format!("{}^{{commit}}", branch_ref(branch));
    Git::at(checkout).args(["rev-parse", "--verify", "--quiet", &name]).find().await
}

/// Refuses a target whose name is one of Longhaul's own: it would be moved and deleted as a branch
/// of work.
pub(crate) fn refuse_own_branch(target: &str) -> Result<(), Failure> {
    if !target.to_lowercase().starts_with(OWN_BRANCHES) {
        return Ok(());
    }
    Err(Failure::terminal(format!(
        "the target `{target}` has a name of Longhaul's own branches, `{OWN_BRANCHES}...`; rename \
         it, or set `target` under [project] in longhaul.toml"
    )))
}

/// Why there can be no branches of work: another branch takes their names.
pub async fn names_obstacle(checkout: &Path) -> Result<Option<String>, Failure> {
    let taken = OWN_BRANCHES.trim_end_matches('/');
    Ok(has_branch(checkout, taken).await?.then(|| {
        format!(
            "git can have no branches `{OWN_BRANCHES}...` besides the branch `{taken}` in {}; \
             rename it: git branch -m {taken} NAME",
            checkout.display()
        )
    }))
}

/// Whether there is a branch of this name.
pub async fn has_branch(checkout: &Path, branch: &str) -> Result<bool, Failure> {
    Ok(tip_of(checkout, branch).await?.is_some())
}

/// The commits that are neither in a branch nor in the work that waits for it.
pub async fn commits_not_in(
    checkout: &Path,
    commits: &[&str],
    branch: &str,
) -> Result<HashSet<String>, Failure> {
    if commits.is_empty() {
        return Ok(HashSet::new());
    }
    let mut input = commits.join("\n");
    let checked = Git::at(checkout)
        .args(["cat-file", "--batch-check=%(objectname)"])
        .input(input.clone() + "\n");
    let is_gone = |line: &&str| line.ends_with(" missing");
    let known = checked.text().await?;
    let gone =
        known.lines().filter(is_gone).filter_map(|line| line.split(' ').next()).map(str::to_owned);
    for known in [branch_ref(branch), branch_ref(NEXT)] {
        if Git::at(checkout)
            .args(["rev-parse", "--verify", "--quiet", &known])
            .find()
            .await?
            .is_some()
        {
            input += &format!("\n^{known}");
        }
    }
    let listed = Git::at(checkout)
        .args(["rev-list", "--ignore-missing", "--stdin"])
        .input(input + "\n")
        .text()
        .await?;
    Ok(listed.lines().map(str::to_owned).chain(gone).collect())
}

/// Whether two checkouts are work trees of one repository.
pub async fn share_repository(one: &Path, other: &Path) -> bool {
    match (common_dir(one).await, common_dir(other).await) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The id of a project, if it has one. Read-only.
pub async fn known_project_id(root: &Path) -> Result<Option<String>, Failure> {
    Git::at(root).args(["config", "--local", "--get", "longhaul.id"]).find().await
}

/// Attempts to write the id before its lock counts as stale.
const TRIES_TO_NAME: u32 = 40;

/// The id of the project, from the repository's own configuration; created the first time.
pub async fn project_id(root: &Path) -> Result<String, Failure> {
    if let Some(id) = known_project_id(root).await? {
        return Ok(id);
    }
    let common = common_dir(root).await?;
    // Derived from the directory, so that two concurrent commands create the same id, and from its
    // time, because another repository can follow at its path.
    let mut hasher = blake3::Hasher::new();
    hasher.update(common.as_os_str().as_encoded_bytes());
    let born = std::fs::metadata(&common).and_then(|found| found.created()).ok();
    if let Some(age) = born.and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok()) {
        hasher.update(&age.as_nanos().to_le_bytes());
    }
    let id = format!("{}-{}", slug(root), &hasher.finalize().to_hex()[..6]);
    if let Some(lock) = lock_of_settings(&common, root).await? {
        return Err(Failure::terminal(format!(
            "the settings of {} cannot be written: {lock}",
            root.display()
        )));
    }
    let mut tries_left = TRIES_TO_NAME;
    loop {
        let written = Git::at(root).args(["config", "--local", "longhaul.id", &id]).run().await;
        if written.is_ok() || tries_left == 0 {
            return written.map(|_| id);
        }
        tries_left -= 1;
        // A concurrent command holds the lock for a moment, and writes the same value.
        tokio::time::sleep(Duration::from_millis(50)).await;
        if let Some(id) = known_project_id(root).await? {
            return Ok(id);
        }
    }
}

/// Makes git ignore the files that Longhaul writes into a checkout, through `info/exclude`, and
/// removes temporary files of a killed process.
pub async fn exclude_own_files(root: &Path) -> Result<(), Failure> {
    remove_left_behind(root);
    let file = common_dir(root).await?.join("info").join("exclude");
    let mut text = files::read(&file)?
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let tracked = match Git::at(root)
        .args(["ls-files", "--error-unmatch", "--", PROGRESS_FILE])
        .answer()
        .await
    {
        Ok(tracked) => tracked,
        Err(failure) => return Err(damaged(root).await.unwrap_or(failure)),
    };
    let mut lines = vec![format!("/{OWN_DIR}/"), TEMP_FILE_PATTERN.to_owned()];
    if !tracked {
        lines.push(format!("/{PROGRESS_FILE}"));
    }
    lines.retain(|line| !text.lines().any(|there| there == line));
    if lines.is_empty() {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.extend(lines.iter().flat_map(|line| [line.as_str(), "\n"]));
    files::write_durably(&file, text.as_bytes())
}

fn remove_left_behind(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let is_temporary = entry.file_name().to_str().is_some_and(|name| {
            name.len() == TEMP_FILE_PATTERN.len()
                && name.strip_prefix(TEMP_PREFIX).is_some_and(str::is_ascii)
        });
        let written = entry
            .metadata()
            .ok()
            .filter(std::fs::Metadata::is_file)
            .and_then(|file| file.modified().ok());
        let age = written.and_then(|written| written.elapsed().ok());
        // A younger one may still be in use.
        if is_temporary && age.is_some_and(|age| age > Duration::from_mins(1)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A directory's name in the characters that an id may have.
fn slug(root: &Path) -> String {
    let name =
        root.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let letters: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(40).collect();
    if slug.is_empty() { "project".to_owned() } else { slug }
}

/// The unfinished operation of a checkout, by git's state files.
pub(super) fn operation_in(git_dir: &Path) -> Option<&'static str> {
    let marks = [
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    marks.into_iter().find(|(mark, _)| git_dir.join(mark).exists()).map(|(_, operation)| operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_fit_for_run_ids() {
        for (path, expected) in
            [("/home/a/My Shop.v2", "my-shop-v2"), ("/home/a/Łódź", "d"), ("/", "project")]
        {
            assert_eq!(slug(Path::new(path)), expected, "{path}");
        }
    }
}
