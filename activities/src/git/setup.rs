//! A project's first use: its owner, its repository and branch, and what can be told about a
//! checkout before a session is paid.

pub(super) mod init;
pub(super) mod moved;
pub(super) mod owner;
pub(super) mod preflight;
