//! What can be wrong with stored bytes, before it is known which record they are.

use std::any::Any;
use std::path::Path;

use longhaul_engine::StoreError;

/// Why stored bytes could not be turned into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// They are not what was written.
    Damaged(String),
    /// A blob or many records have to be read, and this reader may not take so long.
    TooMuch,
    /// They could not be had at all.
    Store(StoreError),
}

impl Flaw {
    /// The error for the user, once the record has a name.
    pub(crate) fn in_record(self, record: impl FnOnce() -> String) -> StoreError {
        match self {
            Self::Damaged(reason) => StoreError::Damaged { record: record(), reason },
            Self::TooMuch => StoreError::Damaged { record: record(), reason: "it asks for a blob".into() },
            Self::Store(error) => error,
        }
    }

    /// The same, for a reader that may be told to try again with more time.
    pub(crate) fn named(self, record: impl FnOnce() -> String) -> Self {
        match self {
            Self::TooMuch => Self::TooMuch,
            flaw => Self::Store(flaw.in_record(record)),
        }
    }
}

/// An error of the file system, with what was being done.
pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> StoreError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let doing = format!("{doing} {}", path.display());
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => StoreError::Full(format!("{doing}: {error}")),
        _ => StoreError::Io { doing, reason: error.to_string() },
    }
}

/// The words of a panic that was caught.
pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
