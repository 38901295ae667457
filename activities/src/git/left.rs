//! Locks that a killed git left: ours are removed, those of the user's checkout are named.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use longhaul_engine::Failure;

use super::files;
use super::names::head_ref;
use super::repository::git_dir;
use crate::process::{Holder, holder_of};

/// A lock file of git that is younger than this may still be somebody's.
const FRESH: Duration = Duration::from_secs(2);
/// How long a git that holds a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a lock in the user's checkout is waited for.
const POLITE: Duration = Duration::from_secs(3);
/// A lock in the user's checkout that is older than this is not waited for, if nobody holds it.
const OLD: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Every command that deletes a ref takes this lock, and one of ours may have been killed. A git
/// that packs refs holds it while it writes the new file.
pub(super) async fn clear_lock_of_packed(common: &Path) -> Result<(), Failure> {
    let (lock, new) = (common.join("packed-refs.lock"), common.join("packed-refs.new"));
    for file in [new, lock] {
        clear_lock(&file, None).await?;
    }
    Ok(())
}

/// Removes a lock file that a killed git left; one that is held stays, and git will say so. Only
/// for places that no one but Longhaul writes to, and for locks that are held for an instant.
pub(super) async fn clear_lock(lock: &Path, place: Option<&Path>) -> Result<(), Failure> {
    let begun = Instant::now();
    while let Some(age) = age_of(lock) {
        if age.is_at_least(FRESH) {
            if !matches!(holder_of(lock, place), Holder::Process(_)) {
                tracing::warn!(lock = %lock.display(), "removing a lock that a killed git left");
                return files::remove(lock);
            }
            if begun.elapsed() > PATIENCE {
                return Ok(());
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// What keeps git from moving a branch that the user may have checked out: a lock that does not go
/// away by itself.
pub(super) async fn foreign_lock(
    branch: &str,
    common: &Path,
    checkout: Option<&Path>,
) -> Result<Option<String>, Failure> {
    let mut locks = vec![common.join(format!("{}.lock", head_ref(branch)))];
    if let Some(checkout) = checkout {
        let admin = git_dir(checkout).await?;
        locks.extend(["index.lock", "HEAD.lock", "ORIG_HEAD.lock"].map(|name| admin.join(name)));
    }
    let begun = Instant::now();
    for lock in locks {
        if let Some(told) = stays(&lock, checkout, begun).await {
            return Ok(Some(told));
        }
    }
    Ok(None)
}

/// The same for one lock.
pub(super) async fn foreign_lock_at(lock: &Path, checkout: Option<&Path>) -> Option<String> {
    stays(lock, checkout, Instant::now()).await
}

async fn stays(lock: &Path, checkout: Option<&Path>, begun: Instant) -> Option<String> {
    loop {
        let age = age_of(lock)?;
        let holder = holder_of(lock, checkout);
        let is_forgotten = holder == Holder::Nobody && age.is_at_least(OLD);
        if is_forgotten || begun.elapsed() >= POLITE {
            return Some(told(lock, age, holder));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Which lock, since when, and what to do.
fn told(lock: &Path, age: Age, holder: Holder) -> String {
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
        Holder::Nobody => {
            format!(
                "{shown} is there since {since}, and no git that is at work holds it; remove it: rm '{shown}'"
            )
        }
        Holder::Unknown => format!(
            "{shown} is there since {since}; wait for the git that holds it, or, if none is at work, remove it: rm '{shown}'"
        ),
    }
}

/// For how long a lock has been there; nothing if its time lies in the future, which says nothing:
/// it counts as old.
#[derive(Debug, Clone, Copy)]
struct Age(Option<Duration>);

impl Age {
    fn is_at_least(self, limit: Duration) -> bool {
        self.0.is_none_or(|age| age >= limit)
    }
}

/// The age of a lock that is there.
fn age_of(lock: &Path) -> Option<Age> {
    let metadata = std::fs::symlink_metadata(lock).ok()?;
    let written = metadata.modified().ok();
    Some(Age(written.and_then(|written| SystemTime::now().duration_since(written).ok())))
}
