//! What can be wrong with a file of runs, where, and what to do.

use super::{FAMILY, VERSION};
use crate::history_file::HistoryFileError;

/// Why runs cannot be written to a file, or a file not be read. Lines are counted from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The first line does not say that this is a file of runs.
    #[error(
        "line 1: neither an export nor the history of a run: {found}; an export begins with \
         {{\"schema\":\"{FAMILY}{VERSION}\"}}"
    )]
    NotABundle {
        /// What is there instead.
        found: String,
    },
    /// What a check took out of a damaged log.
    #[error(
        "line 1: this is what `longhaul check --repair` moved out of a damaged log: the events that could be read, each a \
         line, and every record as it was, in hex; it is no whole history, so it cannot be taken in or replayed: look at it \
         with `less`, or take the run from a backup"
    )]
    Quarantined,
    /// The file is of a version that this program does not know.
    #[error(
        "line 1: the file is a `{FAMILY}{found}`, and this program reads up to `{FAMILY}{VERSION}`: read it with a \
         newer longhaul"
    )]
    Newer {
        /// The version of the file.
        found: u32,
    },
    /// The history of a run is not what it should be.
    #[error("the history that begins at line {line}: {error}")]
    History {
        /// Where it begins.
        line: usize,
        /// What is wrong with it; its lines are counted from there.
        error: HistoryFileError,
    },
    /// A run cannot be written.
    #[error("run {run} cannot be written: {reason}")]
    Unwritable {
        /// Which run.
        run: String,
        /// Why.
        reason: String,
    },
    /// The file ends before its last line.
    #[error("line {line}: the file ends without its footer: it was cut off; get it again from its source")]
    CutOff {
        /// Where it ends.
        line: usize,
    },
    /// The content is not what was written.
    #[error(
        "line {line}: the lines before hash to {computed}, and {recorded} was written: the file is damaged or was edited; \
         get it again from its source"
    )]
    Checksum {
        /// The last line.
        line: usize,
        /// The hash in the footer.
        recorded: String,
        /// The hash of what is there.
        computed: String,
    },
    /// A line is not what it should be.
    #[error("line {line}: {problem}")]
    Line {
        /// Which line.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}
