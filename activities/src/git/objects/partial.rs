//! Partial clones: the missing objects of a commit are fetched before work begins on it. All other
//! commands get by without the network.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use longhaul_engine::Failure;

use crate::git::command::Git;
use crate::git::files;
use crate::git::names::branch_ref;
use crate::git::objects::refs::Repository;
use crate::git::repository::DAMAGED;

/// A server may count and pack for a long time before it sends anything.
const STUCK_TIMEOUT: Duration = Duration::from_mins(10);
/// Each fetch can show more missing objects: a tree, then its entries.
const ROUNDS: usize = 5;

/// Objects that are not in a partial clone.
#[derive(Debug)]
pub struct MissingObjects {
    /// How many.
    pub count: usize,
    /// The remote that has them.
    pub remote: String,
}

/// The objects of a branch that are not in a partial clone; `None`: all are there.
pub async fn missing_objects(
    checkout: &Path,
    branch: &str,
) -> Result<Option<MissingObjects>, Failure> {
    let promisors = promisors(checkout).await?;
    let Some(remote) = promisors.first() else { return Ok(None) };
    let count = missing(checkout, &branch_ref(branch)).await?.len();
    Ok((count > 0).then(|| MissingObjects { count, remote: remote.clone() }))
}

/// Fetches the objects of a branch that are not in a partial clone.
///
/// # Errors
/// A failure of the machine, if its remotes do not give them.
pub async fn fetch_missing(checkout: &Path, branch: &str) -> Result<(), Failure> {
    fetch_from(&promisors(checkout).await?, checkout, &branch_ref(branch)).await
}

/// The objects that the files of branches need and a complete repository lacks.
///
/// # Errors
/// If git cannot read the branches and their history.
pub async fn lost_objects(checkout: &Path) -> Result<Vec<String>, Failure> {
    if !promisors(checkout).await?.is_empty() {
        return Ok(Vec::new());
    }
    let lost = missing(checkout, "--all").await?;
    if lost.is_empty() {
        // A commit graph would hide that a commit of it is missing.
        let git = Git::at(checkout).setting("core.commitGraph=false");
        git.args(["rev-list", "--count", "--all"]).run().await?;
    }
    Ok(lost)
}

/// Writes lost objects again from the files of the checkout that have their content.
///
/// # Errors
/// If git cannot write.
pub async fn restore_objects(checkout: &Path, lost: &[String]) -> Result<(), Failure> {
    let listed = Git::at(checkout).args(["ls-files", "--stage", "-z"]).finish().await?;
    for entry in files::nul_separated(&listed.stdout) {
        let entry = files::shown(entry);
        let Some((facts, path)) = entry.split_once('\t') else { continue };
        let object = facts.split(' ').nth(1).unwrap_or_default();
        if lost.iter().any(|lost| lost == object) && checkout.join(path).is_file() {
            let args = ["hash-object", "-w", "--no-filters", "--", path];
            Git::at(checkout).args(args).keep_running_on_drop().run().await?;
        }
    }
    Ok(())
}

impl Repository {
    /// Makes a commit complete: a partial clone may lack objects of it.
    pub(in crate::git) async fn complete(&self, commit: &str) -> Result<(), Failure> {
        let promisors = self.plumbing.promisors();
        let last = || self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        if promisors.is_empty() || *last() == commit {
            return Ok(());
        }
        fetch_from(promisors, &self.root, commit).await?;
        commit.clone_into(&mut last());
        Ok(())
    }
}

async fn fetch_from(promisors: &[String], checkout: &Path, commit: &str) -> Result<(), Failure> {
    let mut reason = String::new();
    for remote in promisors.iter().cycle().take(ROUNDS * promisors.len()) {
        let wanted = missing(checkout, commit).await?;
        if wanted.is_empty() {
            return Ok(());
        }
        let advice = "make it reachable, or clone without `--filter`";
        reason = match fetch(checkout, remote, &wanted).await? {
            Ok(()) => continue,
            Err(cause) => format!("`{remote}` does not give them ({cause}); {advice}"),
        };
        if promisors.len() == 1 {
            break;
        }
    }
    let left = missing(checkout, commit).await?.len();
    if left == 0 {
        return Ok(());
    }
    let checkout = checkout.display();
    if promisors.is_empty() {
        let message = format!("the repository of {checkout} is damaged: missing objects: {left}");
        return Err(Failure::terminal(message).with_code(DAMAGED));
    }
    Err(Failure::machine(format!(
        "{checkout} is a partial clone without {left} objects of its files, and {reason}"
    )))
}

/// The objects of the files of a commit that are not there. Those in a missing directory are not
/// known.
async fn missing(checkout: &Path, commit: &str) -> Result<Vec<String>, Failure> {
    let options = ["rev-list", "--objects", "--no-walk", "--missing=print"];
    let listed = Git::at(checkout).args(options).arg(commit).text().await?;
    Ok(listed.lines().filter_map(|line| line.strip_prefix('?')).map(str::to_owned).collect())
}

/// Fetches objects, or returns why the remote does not give them.
async fn fetch(
    checkout: &Path,
    remote: &str,
    objects: &[String],
) -> Result<Result<(), String>, Failure> {
    let options = [
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--recurse-submodules=no",
        "--filter=blob:none",
        "--stdin",
    ];
    // As git itself fetches missing objects. The user's clone took them without a check, too.
    let mut git = Git::at(checkout)
        .setting("fetch.negotiationAlgorithm=noop")
        .setting("fetch.fsckObjects=false");
    git.stuck_timeout = STUCK_TIMEOUT;
    let git = git.arg("fetch").args(options).arg(remote);
    let finished = git.input(objects.join("\n") + "\n").finish().await?;
    let cause = finished.error_text().lines().next().unwrap_or_default();
    Ok(if finished.code() == Some(0) { Ok(()) } else { Err(cause.to_owned()) })
}

/// The remotes of which a repository is a partial clone.
async fn promisors(checkout: &Path) -> Result<Vec<String>, Failure> {
    let query = ["config", "--type=bool", "--get-regexp", r"^remote\..*\.promisor$"];
    let listed = Git::at(checkout).args(query).find().await?.unwrap_or_default();
    let named = listed.lines().filter_map(|line| {
        let remote = line.strip_prefix("remote.")?.strip_suffix(".promisor true")?;
        Some(remote.to_owned())
    });
    Ok(named.collect())
}
