//! Objects and refs of a repository: Longhaul's own git directory, commits and refs, trees without
//! a work tree, and states of work trees that are kept as objects.

pub(super) mod cat_file;
pub(super) mod partial;
pub(super) mod plumbing;
pub(super) mod read;
pub(super) mod refs;
pub(super) mod rescue;
pub(super) mod snapshot;
pub(super) mod tidy;
mod too_large;
pub(super) mod trees;
