//! Removes blobs that no record names.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use longhaul_engine::StoreError;

use crate::blob::Source;
use crate::codec::Decoder;
use crate::error::{ReadError, blocking, catch_damage};
use crate::sled_store::SledStore;
use crate::snapshot::{Records, Scope, Snapshot, take};

/// The removed files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of files.
    pub files: u64,
    /// Their bytes on disk.
    pub bytes: u64,
}

/// The hashes of blobs.
pub(crate) type Names = HashSet<[u8; 32]>;

impl SledStore {
    /// Removes the blobs that no record names, once no [`Snapshot`] exists. Commits with large
    /// payloads wait meanwhile. In a damaged log nothing is removed: an unreadable record may name
    /// any blob.
    pub async fn sweep(&self) -> Result<Swept, StoreError> {
        self.unnamed_blobs(true).await
    }

    /// Counts the blobs that [`SledStore::sweep`] would remove.
    ///
    /// # Errors
    /// If the log is damaged.
    pub async fn unused(&self) -> Result<Swept, StoreError> {
        self.unnamed_blobs(false).await
    }

    async fn unnamed_blobs(&self, remove: bool) -> Result<Swept, StoreError> {
        let _unseen = self.shared.snapshot_guards.write().await;
        let _alone = self.shared.blobs_in_use.write().await;
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let blobs = &shared.reader.blobs;
            let there = blobs.all()?;
            let named = catch_damage(|| named(&take(&shared, &Scope::All), blobs))
                .map_err(StoreError::from)?;
            let mut swept = Swept::default();
            for (hash, path) in there.iter().filter(|(hash, _)| !named.contains(hash)) {
                swept.bytes += std::fs::metadata(path).map_or(0, |file| file.len());
                if remove {
                    blobs.remove(hash, path)?;
                }
                swept.files += 1;
            }
            Ok(swept)
        })
        .await
    }
}

/// The blobs named by records. Payloads are not read.
fn named(snapshot: &Snapshot, store: &crate::blob::BlobStore) -> Result<Names, ReadError> {
    if let Some(unreadable) = snapshot.unreadable().into_iter().next() {
        return Err(ReadError::Damaged(unreadable));
    }
    let names = RefCell::new(Names::new());
    let source = Source::Noting { store, names: &names, payloads: false };
    for records in snapshot.runs.values() {
        look_through(records, Decoder(source))?;
    }
    Ok(names.into_inner())
}

fn look_through(records: &Records, decoder: Decoder<'_>) -> Result<(), ReadError> {
    for (key, value) in &records.events {
        decoder.event(key, value)?;
    }
    for (key, value) in &records.mail {
        decoder.message(key, value)?;
    }
    for (key, value) in &records.published {
        decoder.published(key, value)?;
    }
    if let Some((key, value)) = &records.summary {
        decoder.summary(key, value)?;
    }
    Ok(())
}
