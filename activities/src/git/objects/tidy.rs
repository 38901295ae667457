//! Keeps the repository small: packs loose objects and refs from time to time.

use longhaul_engine::Failure;

use super::refs::Repository;

/// The number of loose objects above which they are packed: git's own limit.
const LOOSE: usize = 6700;
/// The number of refs for features' work above which refs are packed.
const LOOSE_REFS: usize = 1000;

impl Repository {
    /// Packs loose objects and refs when there are many. Unreachable objects stay: a private
    /// repository may borrow them. The caller must not hold the repository lock.
    pub(in crate::git) async fn tidy(&self) -> Result<(), Failure> {
        if self.loose_objects() > LOOSE {
            let _guard = self.exclusive().await;
            let repack = ["repack", "-d", "-l", "-q"];
            self.git().args(repack).keep_running_on_drop().run().await?;
        }
        if self.loose_refs() > LOOSE_REFS {
            let _guard = self.exclusive().await;
            self.git().args(["pack-refs", "--all", "--prune"]).keep_running_on_drop().run().await?;
        }
        Ok(())
    }

    /// An estimate from one of the 256 directories, as git does it.
    fn loose_objects(&self) -> usize {
        let sample = self.plumbing.objects().join("17");
        256 * std::fs::read_dir(sample).into_iter().flatten().count()
    }

    fn loose_refs(&self) -> usize {
        let mut open = vec![self.common.join("refs/longhaul/features")];
        let mut count = 0;
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(entry.path());
                } else {
                    count += 1;
                }
            }
        }
        count
    }
}
