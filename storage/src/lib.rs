//! The event log of Longhaul: [`SledStore`] on disk, [`MemoryStore`] for tests. Both obey
//! [`longhaul_engine::store::EventLog`].
//!
//! # Layout of a data directory
//!
//! `lock` holds the lock and the process id of the owner; `log/` is one sled tree;
//! `blobs/ab/<blake3>` holds payloads over 4 KiB and records over 5 KiB, compressed, each once;
//! `shutdown_marker` holds the end of the log, so that a truncation is detected; `quarantine/`
//! holds records that a repair removed, `log.damaged-<time>/` a log that a repair replaced, with
//! its payloads. `log.new/`, `log.next/` and `log.old/` exist while the log is replaced (see
//! `replace.rs`). The keys of the tree, with a run id as a string and `\0` after it:
//!
//! | key | value |
//! |---|---|
//! | `e` run position | an event |
//! | `m` run seq | a message in a mailbox |
//! | `p` run name | a published value |
//! | `s` run | the summary of a run |
//! | `@format`, `@owner\0` epoch, `@closed\0` epoch | the format of the keyspace; the owners of the log, and the last close |
//! | `@pruned` | histories were removed: the next open rewrites the log without their space |
//!
//! Numbers are big-endian, so keys sort as ids and positions do. A value is a frame: format byte,
//! kind byte, length, body (bincode of a frozen type in `wire::v1`), CRC32 over key and frame. It
//! is checked before it is decoded, and decoding is bounded.
//!
//! # Invariants
//!
//! - One process owns a directory. Each owner has an epoch, recorded before its first commit.
//! - A commit is written whole or not at all, and only at the end of the history of its run.
//!   Positions have no gaps.
//! - `Ok` means: on stable storage. The blobs of a commit, with their names, are synced before the
//!   commit is written; the log is synced with `fdatasync` after sled's `flush`, which does not do
//!   that itself. Many commits share one sync.
//! - A read may see a commit shortly before it is durable. That is safe: a commit that depends on
//!   it is written after it, and is durable only if it is.
//! - After a failed write or sync no further commit is accepted
//!   ([`longhaul_engine::StoreError::Poisoned`]). With less than [`RESERVE`] free bytes commits are
//!   refused before anything is written, and accepted again when there is room.
//! - Damage is detected on read, named by run and position, and does not affect other runs. A log
//!   is checked before sled opens it: if sled would treat damage as the end and overwrite the rest,
//!   the log is refused ([`salvage()`]).
//! - The histories of finished runs can be pruned to their last event; the summary records that,
//!   and the position of the first remaining event.
//! - Message numbers grow and are never used twice: the epoch is in their upper half.
//!
//! # Assumptions about the disk
//!
//! `fsync` and `fdatasync` of a file make its content durable, `fsync` of a directory makes its
//! names durable, and a rename is atomic. Not assumed: any order among unsynced writes, or that a 4
//! KiB write is atomic. The test `power_cut` replays the system calls of a store under these rules.
//!
//! # Changing the format
//!
//! Types in `wire::v1` never change. A new shape is a `wire::v2` with its own format byte in the
//! frame, and a conversion from the old one, so that old records stay readable. A change of keys
//! increments the version in `@format`; a log of a newer version is refused. Golden bytes in
//! `golden/` enforce this.

mod archive;
mod blob;
pub mod bundle;
mod check;
mod codec;
mod committer;
mod directory;
mod error;
mod file_error;
mod files;
mod gap;
mod head_cache;
pub mod history_file;
mod key;
mod memory;
mod open;
mod read;
mod record;
mod replace;
mod run_record;
mod salvage;
mod shutdown_marker;
mod sled_store;
mod snapshot;
mod space;
mod statistics;
mod sweep;
mod wire;
mod write_batch;
mod writer;

pub use archive::Archive;
pub use check::{CheckReport, Damage, check_at_rest};
pub use file_error::{FileError, Schema};
pub use files::private_directory;
pub use memory::MemoryStore;
pub use run_record::RunRecord;
pub use salvage::{Salvage, salvage};
#[doc(hidden)]
pub use sled_store::OpenOptions;
pub use sled_store::SledStore;
pub use snapshot::{Scope, Snapshot};
#[doc(hidden)]
pub use space::Probe;
pub use space::RESERVE;
pub use statistics::Statistics;
pub use sweep::Swept;
