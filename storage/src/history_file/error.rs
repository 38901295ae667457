//! What can be wrong with the file of a history, where, and what to do.

use longhaul_engine::Position;

use super::{FAMILY, MAX_LINE, VERSION};

/// Why a history cannot be written to a file, or a file not be read. Lines are counted from one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryFileError {
    /// A payload cannot be embedded, because it is not JSON.
    #[error("event {position} ({kind}) cannot be written: {reason}")]
    Payload {
        /// Which event.
        position: Position,
        /// Its kind.
        kind: &'static str,
        /// What is wrong with the payload, and how it begins.
        reason: String,
    },
    /// A line is longer than is ever read.
    #[error("line {line} has {bytes} bytes, and at most {MAX_LINE} are read")]
    TooLong {
        /// Which line.
        line: usize,
        /// How long it is.
        bytes: usize,
    },
    /// The first line does not say that this is the history of a run.
    #[error(
        "line 1: not the history of a run: {found}; such a file begins with {{\"schema\":\"{FAMILY}{VERSION}\",…}}"
    )]
    NotAHistory {
        /// What is there instead.
        found: String,
    },
    /// The file is of a version that this program does not know.
    #[error(
        "line 1: the file is a `{FAMILY}{found}`, and this program reads up to `{FAMILY}{VERSION}`: read it with a \
         newer longhaul"
    )]
    Newer {
        /// The version of the file.
        found: u32,
    },
    /// The last line is not the footer.
    #[error(
        "line {line}: the file ends without its footer: it was cut off or is damaged; get it again from its source"
    )]
    CutOff {
        /// The last line.
        line: usize,
    },
    /// The content is not what was written.
    #[error(
        "line {line}: the lines before hash to {computed}, and {recorded} was written: the file is damaged or was \
         edited; get it again from its source"
    )]
    Checksum {
        /// The last line.
        line: usize,
        /// The hash in the footer.
        recorded: String,
        /// The hash of what is there.
        computed: String,
    },
    /// An event is missing, doubled, or out of order.
    #[error("line {line}: event {expected} is expected, and event {found} is there: a history has no gaps")]
    Gap {
        /// Which line.
        line: usize,
        /// The position that would follow.
        expected: Position,
        /// The position that is there.
        found: Position,
    },
    /// There are more or fewer events than the first line says.
    #[error("line 1: {said} events are announced, and {found} are there")]
    Count {
        /// What the header says.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// An event is of a kind that this program does not know.
    #[error("line {line}: no event of the kind `{kind}` is known: read the file with the longhaul that wrote it")]
    UnknownKind {
        /// Which line.
        line: usize,
        /// The kind.
        kind: String,
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
