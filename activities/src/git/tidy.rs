//! Keeping the repository small: loose objects and refs are packed from time to time.

use longhaul_engine::Failure;

use super::refs::Repository;

/// Above this many loose objects they are packed: as many as git itself allows.
const LOOSE: usize = 6700;
/// Above this many refs that keep work of features, refs are packed.
const LOOSE_REFS: usize = 1000;

impl Repository {
    /// Packs loose objects and refs when there are many. Unreachable objects stay: a private
    /// repository may borrow them. To be called with the repository held by nobody.
    pub(super) async fn tidy(&self) -> Result<(), Failure> {
        if self.loose_objects() > LOOSE {
            let _held = self.exclusive().await;
            let repack = ["repack", "-d", "-l", "-q"];
            self.git().args(repack).uninterrupted().run().await?;
        }
        if self.loose_refs() > LOOSE_REFS {
            let _held = self.exclusive().await;
            self.git().args(["pack-refs", "--all", "--prune"]).uninterrupted().run().await?;
        }
        Ok(())
    }

    /// An estimate from one of the 256 directories, as git makes it.
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
