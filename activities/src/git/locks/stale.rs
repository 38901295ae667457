//! Stale locks of a killed git: removes Longhaul's own, and names those of the user's checkout.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use longhaul_engine::Failure;

use crate::git::command::directories::git_dir;
use crate::git::files;
use crate::git::names::branch_ref;
use crate::process::{Holder, holder_of};

/// A lock file younger than this may still be in use.
const FRESH: Duration = Duration::from_secs(2);
/// How long to wait for a git process that holds a lock.
const HOLDER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a lock in the user's checkout.
const POLITE: Duration = Duration::from_secs(3);
/// A lock in the user's checkout that is older than this, and that no process holds, is stale.
const OLD: Duration = Duration::from_mins(1);
/// The polling interval: git's locks are files that it removes, so their end is no event.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Clears `packed-refs.lock`. Every command that deletes a ref takes it, so a killed git of
/// Longhaul's may have left it. A git that packs refs holds it while it writes the new file.
pub(in crate::git) async fn clear_lock_of_packed(common: &Path) -> Result<(), Failure> {
    let lock = common.join("packed-refs.lock");
    let new = common.join("packed-refs.new");
    for file in [new, lock] {
        clear_lock(&file, None).await?;
    }
    Ok(())
}

/// Removes a stale lock file; a held one stays, and git reports it. Only for places that Longhaul
/// alone writes to, and for locks held for an instant.
pub(in crate::git) async fn clear_lock(lock: &Path, place: Option<&Path>) -> Result<(), Failure> {
    let begun = Instant::now();
    while let Some(age) = age_of(lock) {
        if age.is_at_least(FRESH) {
            if !matches!(holder_of(lock, place), Holder::Process(_)) {
                tracing::warn!(lock = %lock.display(), "removing a lock that a killed git left");
                return files::remove(lock);
            }
            if begun.elapsed() > HOLDER_TIMEOUT {
                return Ok(());
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// The lock that keeps git from moving a branch in the user's checkout, if it does not go away.
pub(in crate::git) async fn foreign_lock(
    branch: &str,
    common: &Path,
    checkout: Option<&Path>,
) -> Result<Option<String>, Failure> {
    let mut locks = vec![common.join(format!("{}.lock", branch_ref(branch)))];
    if let Some(checkout) = checkout {
        let admin = git_dir(checkout).await?;
        locks.extend(["index.lock", "HEAD.lock", "ORIG_HEAD.lock"].map(|name| admin.join(name)));
    }
    let begun = Instant::now();
    for lock in locks {
        if let Some(holder) = wait_for_release(&lock, checkout, begun).await {
            return Ok(Some(holder));
        }
    }
    Ok(None)
}

/// The lock of the repository's settings, if it does not go away. Git holds it for an instant: an
/// old one that no process holds was left by a killed git, and is removed.
pub(in crate::git) async fn lock_of_settings(
    common: &Path,
    checkout: &Path,
) -> Result<Option<String>, Failure> {
    let lock = common.join("config.lock");
    let holder = wait_for_release(&lock, Some(checkout), Instant::now()).await;
    let is_left =
        age_of(&lock).is_some_and(|age| is_forgotten(age, holder_of(&lock, Some(checkout))));
    if holder.is_some() && is_left {
        tracing::warn!(lock = %lock.display(), "removing a lock that a killed git left");
        return files::remove(&lock).map(|()| None);
    }
    Ok(holder)
}

/// Whether a lock in the user's repository is stale.
fn is_forgotten(age: Age, holder: Holder) -> bool {
    holder == Holder::None && age.is_at_least(OLD)
}

async fn wait_for_release(lock: &Path, checkout: Option<&Path>, begun: Instant) -> Option<String> {
    loop {
        let age = age_of(lock)?;
        let holder = holder_of(lock, checkout);
        if is_forgotten(age, holder) || begun.elapsed() >= POLITE {
            return Some(describe(lock, age, holder));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Describes a lock: path, age, holder and remedy.
fn describe(lock: &Path, age: Age, holder: Holder) -> String {
    let shown = lock.display();
    let since = age.0.and_then(|age| SystemTime::now().checked_sub(age)).map(DateTime::<Utc>::from);
    let since = since.map_or_else(
        || "an unknown time".to_owned(),
        |at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
    );
    match holder {
        Holder::Process(pid) => {
            format!(
                "git (process {pid}) is at work there and holds {shown} since {since}; wait for it"
            )
        }
        Holder::None => {
            format!(
                "{shown} has existed since {since}, and no running git holds it; remove it: \
                 rm '{shown}'"
            )
        }
        Holder::Unknown => format!(
            "{shown} has existed since {since}; wait for the git that holds it, or, if none is \
             running, remove it: rm '{shown}'"
        ),
    }
}

/// The age of a lock; `None` if its time lies in the future, in which case it counts as old.
#[derive(Debug, Clone, Copy)]
struct Age(Option<Duration>);

impl Age {
    fn is_at_least(self, limit: Duration) -> bool {
        self.0.is_none_or(|age| age >= limit)
    }
}

/// The age of an existing lock.
fn age_of(lock: &Path) -> Option<Age> {
    let metadata = std::fs::symlink_metadata(lock).ok()?;
    let written = metadata.modified().ok();
    Some(Age(written.and_then(|written| SystemTime::now().duration_since(written).ok())))
}
