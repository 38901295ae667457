//! The event log of Longhaul: [`SledStore`] on disk, [`MemoryStore`] for tests. Both obey
//! [`longhaul_engine::store::EventLog`].
//!
//! # Layout of a data directory
//!
//! `lock` holds the lock and the process id of the owner; `log/` is one sled tree;
//! `blobs/ab/<blake3>` holds payloads over 4 KiB and records over 5 KiB, compressed, each once;
//! `shutdown_marker` says how far the log went, so that a lost end is noticed; `quarantine/` holds
//! what a check has moved aside, `log.damaged-<time>/` a log that a repair has replaced, with the
//! payloads of that time. `log.new/`, `log.next/` and `log.old/` are there while the log is
//! replaced (see `replace.rs`). The keys of the tree, with a run id as text and `\0` after it:
//!
//! | key | value |
//! |---|---|
//! | `e` run position | an event |
//! | `m` run seq | a message in a mailbox |
//! | `p` run name | a published value |
//! | `s` run | the summary of a run |
//! | `@format`, `@owner\0` epoch, `@closed\0` epoch | the format of the keyspace; who has owned the log, and closed it last |
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
//! - A read may see a commit shortly before it is durable. Nothing is built on that: a commit that
//!   follows from it is written after it, and is durable only if it is.
//! - After a failed write or sync nothing more is accepted
//!   ([`longhaul_engine::StoreError::Poisoned`]). Below [`RESERVE`] free bytes commits are refused
//!   before anything is written, and accepted again when there is room.
//! - Damage is found when it is read, named by run and position, and does not hide other runs. A
//!   log is looked at before sled opens it: where sled would take damage for the end and overwrite
//!   what follows, it is refused ([`salvage()`]).
//! - The histories of runs that are over can be pruned, but for their last event; the summary says
//!   so, and from where on there are events.
//! - Message numbers grow and are never used twice: the epoch is in their upper half.
//!
//! # What is assumed of the disk
//!
//! That `fsync` and `fdatasync` of a file make its content durable, that `fsync` of a directory
//! makes the names in it durable, and that a rename is seen whole or not at all. Not assumed: any
//! order among writes that are not synced, or that a 4 KiB write is atomic. The test `power_cut`
//! replays the system calls of a store under these rules.
//!
//! # Changing the format
//!
//! Types in `wire::v1` never change. A new shape is a `wire::v2` with its own format byte in the
//! frame, and a conversion from the old one, so that old records stay readable. A change of keys
//! raises the version in `@format`; a log of a newer version is refused. Golden bytes in `golden/`
//! hold us to this.

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
