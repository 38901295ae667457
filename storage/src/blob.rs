//! Large contents in files of their own, named by their hash. Each is stored once, and is durable
//! before a record names it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_engine::{Payload, StoreError};

use crate::error::{Poison, ReadError, io};
use crate::files;
use crate::wire::v1::BlobRef;

/// The format byte at the start of a blob file.
const FORMAT: u8 = 1;

/// Format byte and length of the content.
const HEADER: usize = 9;

/// The longest content.
const LONGEST: u64 = 1 << 30;

/// How many names are remembered as durable.
const REMEMBERED: usize = 100_000;

/// A content to be written to a file.
#[derive(Debug, Clone)]
pub(crate) struct NewBlob {
    pub(crate) name: BlobRef,
    pub(crate) content: Payload,
}

impl NewBlob {
    pub(crate) fn of(content: Payload) -> Self {
        Self { name: name_of(content.as_bytes()), content }
    }
}

/// A source of blobs for a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Store(&'a BlobStore),
    /// Collects the names of the requested blobs; fetches payloads only if they are inspected.
    Noting {
        store: &'a BlobStore,
        names: &'a RefCell<HashSet<[u8; 32]>>,
        payloads: bool,
    },
    /// A request for a blob is a read error.
    Nowhere,
}

impl Source<'_> {
    pub(crate) fn fetch(self, name: &BlobRef) -> Result<Vec<u8>, ReadError> {
        match self {
            Self::Store(store) => store.read(name),
            Self::Noting { store, names, .. } => {
                names.borrow_mut().insert(name.hash);
                store.read(name)
            }
            Self::Nowhere => Err(ReadError::TooMuch),
        }
    }

    /// The same for a payload, which cannot invalidate the record around it.
    pub(crate) fn fetch_payload(self, name: &BlobRef) -> Result<Vec<u8>, ReadError> {
        match self {
            Self::Noting { names, payloads: false, .. } => {
                names.borrow_mut().insert(name.hash);
                Ok(b"null".to_vec())
            }
            source => source.fetch(name),
        }
    }
}

/// The name of a content.
fn name_of(content: &[u8]) -> BlobRef {
    BlobRef { hash: *blake3::hash(content).as_bytes(), len: content.len() as u64 }
}

/// The directory of blobs.
#[derive(Debug)]
pub(crate) struct BlobStore {
    root: PathBuf,
    durable: Mutex<Durable>,
    temporary: AtomicU64,
    poison: Arc<Poison>,
}

/// The names that this process knows to be on stable storage.
#[derive(Debug, Default)]
struct Durable {
    shards: HashSet<u8>,
    names: HashSet<[u8; 32]>,
}

impl BlobStore {
    /// Opens or creates the directory, and removes the temporary files of a dead process.
    pub(crate) fn open(root: PathBuf, poison: Arc<Poison>) -> Result<Self, StoreError> {
        files::create_directory(&root)?;
        for path in files::entries(&root)? {
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("new-")) {
                std::fs::remove_file(&path).map_err(|error| io("removing", &path, &error))?;
            }
        }
        Ok(Self { root, durable: Mutex::default(), temporary: AtomicU64::new(0), poison })
    }

    /// Makes a content and its name durable.
    pub(crate) fn write(&self, blob: &NewBlob) -> Result<(), StoreError> {
        let hash = blob.name.hash;
        if self.durable().names.contains(&hash) {
            return Ok(());
        }
        if blob.name.len > LONGEST {
            let reason = format!(
                "a payload of {} bytes is refused: the longest is {LONGEST}",
                blob.name.len
            );
            return Err(StoreError::Unusable(reason));
        }
        let shard = self.shard(hash[0])?;
        // The content of an existing name was synced, but its directory may not have been.
        if self.read(&blob.name).is_err() {
            self.place(blob)?;
        }
        self.vouch(files::sync_directory(&shard))?;
        let mut durable = self.durable();
        if durable.names.len() >= REMEMBERED {
            durable.names.clear();
        }
        durable.names.insert(hash);
        Ok(())
    }

    /// Writes a temporary file, syncs it, and renames it.
    fn place(&self, blob: &NewBlob) -> Result<(), StoreError> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(format!("new-{}-{number}", std::process::id()));
        let content = blob.content.as_bytes();
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(&[FORMAT])?;
            file.write_all(&blob.name.len.to_le_bytes())?;
            file.write_all(&zstd::bulk::compress(content, 3)?)?;
            file.sync_all()?;
            std::fs::rename(&temporary, self.path_of(&blob.name))
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&temporary);
            io("writing", &temporary, &error)
        })
    }

    /// Reads a content and checks it against its name. A mismatch is no longer treated as durable:
    /// the next writer of the same content replaces it.
    pub(crate) fn read(&self, name: &BlobRef) -> Result<Vec<u8>, ReadError> {
        self.content_of(name).inspect_err(|_| {
            self.durable().names.remove(&name.hash);
        })
    }

    fn content_of(&self, name: &BlobRef) -> Result<Vec<u8>, ReadError> {
        let path = self.path_of(name);
        let damaged =
            |reason: &str| ReadError::Damaged(format!("its blob {}: {reason}", path.display()));
        files::must_be_file(&path).map_err(|error| damaged(&error.to_string()))?;
        let file = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged("the file is missing"),
            _ => ReadError::Store(io("reading", &path, &error)),
        })?;
        let Some((header, packed)) = file.split_first_chunk::<HEADER>() else {
            return Err(damaged("the file is cut short"));
        };
        let [format, length @ ..] = header;
        if *format != FORMAT {
            return Err(damaged(&format!(
                "format {format} is not known to this version of longhaul"
            )));
        }
        if u64::from_le_bytes(*length) != name.len || name.len > LONGEST {
            return Err(damaged("the length does not match"));
        }
        let capacity =
            usize::try_from(name.len).map_err(|_| damaged("it is longer than memory"))?;
        let content = zstd::bulk::decompress(packed, capacity)
            .map_err(|error| damaged(&error.to_string()))?;
        if name_of(&content) != *name {
            return Err(damaged("the content does not match its hash"));
        }
        Ok(content)
    }

    /// The blobs in the directory: hashes and files. Other files are skipped.
    pub(crate) fn all(&self) -> Result<Vec<([u8; 32], PathBuf)>, StoreError> {
        let mut found = Vec::new();
        for shard in files::entries(&self.root)?.into_iter().filter(|path| path.is_dir()) {
            for path in files::entries(&shard)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if let Ok(hash) = blake3::Hash::from_hex(name.as_bytes()) {
                    found.push((*hash.as_bytes(), path));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Removes a blob that no record names. The caller ensures that no record is about to name it.
    pub(crate) fn remove(&self, hash: &[u8; 32], path: &Path) -> Result<(), StoreError> {
        self.durable().names.remove(hash);
        std::fs::remove_file(path).map_err(|error| io("removing", path, &error))
    }

    /// Makes the directory for names with this first byte durable.
    fn shard(&self, first: u8) -> Result<PathBuf, StoreError> {
        let path = self.root.join(format!("{first:02x}"));
        let mut durable = self.durable();
        if !durable.shards.contains(&first) {
            if !path.is_dir() {
                std::fs::create_dir(&path)
                    .map_err(|error| io("creating the directory", &path, &error))?;
            }
            self.vouch(files::sync_directory(&self.root))?;
            durable.shards.insert(first);
        }
        Ok(path)
    }

    fn path_of(&self, name: &BlobRef) -> PathBuf {
        let hex = blake3::Hash::from_bytes(name.hash).to_hex();
        self.root.join(&hex[..2]).join(hex.as_str())
    }

    /// A name that could not be synced is visible but not durable, and a repeated sync would not
    /// report that.
    fn vouch(&self, synced: Result<(), StoreError>) -> Result<(), StoreError> {
        synced.map_err(|error| self.poison.set(error.to_string()))
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(text: &str) -> NewBlob {
        NewBlob::of(Payload::from_bytes(text.as_bytes()))
    }

    #[test]
    fn a_content_is_stored_once_and_a_damaged_one_is_mended_by_the_next_writer() {
        let directory = tempfile::tempdir().unwrap();
        let open = || BlobStore::open(directory.path().join("blobs"), Arc::default()).unwrap();
        let blob = blob(&"transcript ".repeat(1000));
        let store = open();
        store.write(&blob).unwrap();
        store.write(&blob).unwrap();
        assert_eq!(store.read(&blob.name).unwrap(), blob.content.as_bytes());
        let path = store.path_of(&blob.name);
        assert!(std::fs::metadata(&path).unwrap().len() < 200, "it is compressed");

        for bad in [&b""[..], b"\x0212345678", b"\x01\xff\xff\xff\xff\xff\xff\xff\xff garbage"] {
            std::fs::write(&path, bad).unwrap();
            assert!(store.read(&blob.name).is_err());
            store.write(&blob).unwrap();
            assert_eq!(
                store.read(&blob.name).unwrap(),
                blob.content.as_bytes(),
                "also by the earlier writer"
            );
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(open().read(&blob.name), Err(ReadError::Damaged(_))));
            open().write(&blob).unwrap();
            assert_eq!(open().read(&blob.name).unwrap(), blob.content.as_bytes());
        }
    }

    #[test]
    fn half_written_files_are_removed_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("new-1-1"), "half").unwrap();
        let store = BlobStore::open(directory.path().into(), Arc::default()).unwrap();
        assert!(files::entries(&store.root).unwrap().is_empty());
    }
}
