//! Errors of reading and writing: undecodable records, panics of sled, and their conversion to
//! store errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Once, OnceLock};

use longhaul_engine::StoreError;

/// Why stored bytes have no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The bytes are damaged.
    Damaged(String),
    /// A blob or many records must be read, and this reader has a tight budget.
    TooMuch,
    /// An error of the system, or one that already names its record.
    Store(StoreError),
}

impl ReadError {
    /// Adds the name of the record.
    pub(crate) fn in_record(self, record: impl FnOnce() -> String) -> StoreError {
        match self {
            Self::Damaged(reason) => StoreError::Damaged { record: record(), reason },
            Self::TooMuch => {
                StoreError::Damaged { record: record(), reason: "it asks for a blob".into() }
            }
            Self::Store(error) => error,
        }
    }

    /// The same, for a reader that may be retried with a larger budget.
    pub(crate) fn named(self, record: impl FnOnce() -> String) -> Self {
        match self {
            Self::TooMuch => Self::TooMuch,
            error => Self::Store(error.in_record(record)),
        }
    }
}

impl From<ReadError> for StoreError {
    /// The fallback for errors that no reader has named.
    fn from(error: ReadError) -> Self {
        error.in_record(|| "record of the log".into())
    }
}

impl From<sled::Error> for ReadError {
    fn from(error: sled::Error) -> Self {
        Self::Store(unreadable(&error))
    }
}

/// Set when a write fails, and never reset: the kernel may have dropped the pages that it could not
/// write.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Sets the mark; the first reason stays.
    pub(crate) fn set(&self, reason: String) -> StoreError {
        tracing::error!(reason, "the log accepts no further writes");
        StoreError::Poisoned(self.0.get_or_init(|| reason).clone())
    }

    /// An error if the mark is set.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |reason| Err(StoreError::Poisoned(reason.clone())))
    }
}

/// An error of the file system, with the operation.
pub(crate) fn io(doing: &str, path: &Path, error: &std::io::Error) -> StoreError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let doing = format!("{doing} {}", path.display());
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => StoreError::Full(format!("{doing}: {error}")),
        _ => StoreError::Io { doing, reason: error.to_string() },
    }
}

/// A read error of sled.
pub(crate) fn unreadable(error: &sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => {
            StoreError::Io { doing: "reading the log".into(), reason: error.to_string() }
        }
        sled::Error::Corruption { .. } => StoreError::Damaged {
            record: format!("{} of log/db in the data directory", page_of(error)),
            reason: "it is damaged".into(),
        },
        _ => StoreError::Damaged {
            record: "page of log/db in the data directory".into(),
            reason: error.to_string(),
        },
    }
}

/// The page of the file that an error names.
pub(crate) fn page_of(error: &sled::Error) -> String {
    let at = match error {
        sled::Error::Corruption { at: Some(at), .. } => format!("{at:?}"),
        _ => String::new(),
    };
    // The offset of a disk pointer is visible only in its `Debug` form.
    let digits: String =
        at.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { "a page".to_owned() } else { format!("the page at byte {digits}") }
}

/// Reads with sled; a panic of sled counts as damage.
pub(crate) fn catch_damage<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    catch_sled_panic(read).unwrap_or_else(|panic| Err(ReadError::Damaged(panic)))
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Turns a panic into an error with its message, without printing to the terminal.
pub(crate) fn catch_sled_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_caught() {
                before(panic);
            }
        }));
    });
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    done.map_err(|panic| message_of(&*panic))
}

/// Whether a panic on this thread is suppressed: it is caught here, or sled's own threads report it
/// as an error.
fn is_caught() -> bool {
    let is_sled = || std::thread::current().name().is_some_and(|name| name.starts_with("sled-"));
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false) || is_sled()
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// Runs blocking work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(StoreError::Unusable(format!("the log could not be used: {error}")))
    })
}
