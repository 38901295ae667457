//! The mark that a write failed in a way after which nothing on disk can be vouched for.

use std::sync::OnceLock;

use longhaul_engine::StoreError;

/// Set once, never taken back: the kernel may have dropped the pages that it failed to write.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Sets the mark; the first reason stays.
    pub(crate) fn set(&self, reason: String) -> StoreError {
        tracing::error!(reason, "the log takes no more appends");
        StoreError::Poisoned(self.0.get_or_init(|| reason).clone())
    }

    /// An error if the mark is set.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |reason| Err(StoreError::Poisoned(reason.clone())))
    }
}
