//! Completes moves of the user's checkout that a crash or a power cut interrupted: the files that
//! git was writing are restored from HEAD. Nothing else in the checkout is touched.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use longhaul_engine::Failure;

use super::covers;
use super::own_files::{Move, stage};
use crate::git::command::Git;
use crate::git::files;
use crate::git::objects::read::{Change, Entry};
use crate::git::objects::refs::Repository;

impl Repository {
    /// Completes a recorded move. `admin` is the git directory of the checkout.
    pub(in crate::git) async fn end_move(
        &self,
        interrupted: &Move,
        admin: &Path,
    ) -> Result<(), Failure> {
        let checkout = &interrupted.checkout;
        mend_index(checkout, admin).await?;
        let head = Git::at(checkout)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .find()
            .await?;
        let is_there = match head.as_deref() {
            Some(head) if head == interrupted.from => false,
            Some(head) if head == interrupted.to => true,
            // The user has moved HEAD since.
            _ => return Ok(()),
        };
        for commit in [&interrupted.from, &interrupted.to] {
            if self.commit_of(commit).await?.is_none() {
                // Pruned since: what the move would have changed is unknown.
                tracing::warn!(checkout = %checkout.display(), "the repository has lost {commit}");
                return Ok(());
            }
        }
        let mut changes = self.changes(&interrupted.from, &interrupted.to).await?;
        let is_own =
            |change: &Change| interrupted.own_files.iter().any(|file| covers(file, &change.path));
        let own: Vec<Change> = changes.extract_if(.., |change| is_own(change)).collect();
        let of_head = own.iter().map(|change| {
            (change.path.as_slice(), if is_there { &change.after } else { &change.before })
        });
        stage(checkout, of_head).await?;
        for change in own.iter().filter(|_| is_there) {
            self.bring(checkout, change).await?;
        }
        let hashes = hashes_of(checkout, &changes).await?;
        let absent = absent_in(checkout).await?;
        let mut written = Vec::new();
        for change in &changes {
            let right = if is_there { &change.after } else { &change.before };
            let now = hashes.get(&change.path).map(String::as_str);
            if !absent.contains(&change.path) && self.is_of_move(checkout, change, now).await? {
                written.push((change, right));
            }
        }
        restore(checkout, &written).await
    }

    /// Whether the move left a file in this state: as in one of the commits, missing, or truncated.
    async fn is_of_move(
        &self,
        checkout: &Path,
        change: &Change,
        now: Option<&str>,
    ) -> Result<bool, Failure> {
        let Some(now) = now else {
            return Ok(!files::is_there(&checkout.join(files::path_of(&change.path))));
        };
        if now == change.before.object || now == change.after.object {
            return Ok(true);
        }
        let bytes = files::read(&checkout.join(files::path_of(&change.path)))?.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(true);
        }
        for entry in [&change.before, &change.after].into_iter().filter(|entry| entry.is_there()) {
            let whole = self.reader.read(&entry.object).await?;
            if whole.is_some_and(|whole| whole.bytes.starts_with(&bytes)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Rebuilds the index if git cannot read it.
async fn mend_index(checkout: &Path, admin: &Path) -> Result<(), Failure> {
    let listed = Git::at(checkout).args(["ls-files", "-z"]).finish().await?;
    if listed.code() == Some(0) && files::is_there(&admin.join("index")) {
        return Ok(());
    }
    tracing::warn!(
        checkout = %checkout.display(),
        "making the index of a checkout again: {}",
        listed.error_text(),
    );
    files::remove(&admin.join("index"))?;
    Git::at(checkout).args(["read-tree", "HEAD"]).run().await?;
    Git::at(checkout).args(["update-index", "-q", "--refresh"]).finish().await.map(drop)
}

/// The object names that git would give the existing files.
async fn hashes_of(
    checkout: &Path,
    changes: &[Change],
) -> Result<HashMap<Vec<u8>, String>, Failure> {
    let mut hashes = HashMap::new();
    for change in changes {
        let path = files::path_of(&change.path);
        let is_file =
            std::fs::symlink_metadata(checkout.join(path)).is_ok_and(|metadata| metadata.is_file());
        if is_file {
            let hash = Git::at(checkout).args(["hash-object", "--"]).arg(path).text().await?;
            hashes.insert(change.path.clone(), hash);
        }
    }
    Ok(hashes)
}

/// The files that a sparse checkout omits.
async fn absent_in(checkout: &Path) -> Result<HashSet<Vec<u8>>, Failure> {
    let listed = Git::at(checkout).args(["ls-files", "-t", "-z"]).run().await?;
    let absent = files::nul_separated(&listed.stdout).filter_map(|line| line.strip_prefix(b"S "));
    Ok(absent.map(<[u8]>::to_vec).collect())
}

/// Restores files and the index from HEAD.
async fn restore(checkout: &Path, files: &[(&Change, &Entry)]) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let paths = |files: &mut dyn Iterator<Item = &(&Change, &Entry)>| {
        files.map(|(change, _)| change.path.as_slice()).collect::<Vec<_>>().join(&0)
    };
    let from_stdin = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    let git = || Git::at(checkout).keep_running_on_drop();
    git()
        .args(["reset", "--quiet", "HEAD"])
        .args(from_stdin)
        .input(paths(&mut files.iter()))
        .finish()
        .await?;
    for (change, _) in files.iter().filter(|(_, right)| !right.is_there()) {
        files::remove(&checkout.join(files::path_of(&change.path)))?;
    }
    let there = paths(&mut files.iter().filter(|(_, right)| right.is_there()));
    if there.is_empty() {
        return Ok(());
    }
    git().args(["checkout", "--quiet", "HEAD"]).args(from_stdin).input(there).run().await.map(drop)
}
