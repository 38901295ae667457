//! Errors of history and run files.

use serde::Deserialize;

use crate::wire::json::{reason, shown};

/// A schema: the identification in the first line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The kind of file.
    pub family: &'static str,
    /// The version that this program writes, and the newest it reads.
    pub version: u32,
}

impl std::fmt::Display for Schema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.family, self.version)
    }
}

impl Schema {
    /// Checks the part of the first line that is common to all versions.
    pub(crate) fn check(self, line: &str) -> Result<(), FileError> {
        #[derive(Deserialize)]
        struct AnyVersion {
            schema: String,
        }
        let other = |found| Err(FileError::OtherFile { expected: self, found });
        let any: AnyVersion = match serde_json::from_str(line) {
            Ok(any) => any,
            Err(error) if line.starts_with(&format!("{{\"schema\":\"{}/", self.family)) => {
                return Err(FileError::Line {
                    line: 1,
                    problem: format!("the header: {}", reason(&error)),
                });
            }
            Err(_) => return other(format!("it says {}", shown(line))),
        };
        let version = any
            .schema
            .strip_prefix(self.family)
            .and_then(|version| version.strip_prefix('/')?.parse().ok());
        match version {
            Some(found) if found > self.version => Err(FileError::Newer { known: self, found }),
            _ if any.schema == self.to_string() => Ok(()),
            _ => other(format!("its schema is {}", shown(&any.schema))),
        }
    }
}

/// Why runs cannot be written to a file, or a file cannot be read. Lines are counted from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A run cannot be written: a payload is not JSON, or its history has gaps.
    #[error("{0}")]
    Unwritable(String),
    /// The first line belongs to another kind of file.
    #[error("line 1: not a `{}` file: {found}; such a file begins with \
        {{\"schema\":\"{expected}\"}}", .expected.family)]
    OtherFile {
        /// The expected schema.
        expected: Schema,
        /// The schema in the file.
        found: String,
    },
    /// A quarantine file of a repair.
    #[error(
        "line 1: these records were moved out of a damaged log by a repair; they are \
         not a whole history, so they cannot be imported or replayed; take the run from a backup"
    )]
    Quarantined,
    /// The version of the file is unknown.
    #[error("line 1: the file is a `{}/{found}`, and this program reads up to `{known}`: \
         read it with a newer longhaul", .known.family)]
    Newer {
        /// The newest known version.
        known: Schema,
        /// The version of the file.
        found: u32,
    },
    /// The file ends before its last line.
    #[error(
        "line {line}: the file ends without its footer: it is truncated; get it again from its \
         source"
    )]
    CutOff {
        /// The line after which it ends.
        line: usize,
    },
    /// The content does not match its hash.
    #[error(
        "line {line}: the lines before hash to {computed}, but the footer says {recorded}: \
         the file is damaged or was edited; \
         get it again from its source"
    )]
    Checksum {
        /// The line of the footer.
        line: usize,
        /// The hash in the footer.
        recorded: String,
        /// The hash of the content.
        computed: String,
    },
    /// A line is malformed.
    #[error("line {line}: {problem}")]
    Line {
        /// The line number.
        line: usize,
        /// The defect.
        problem: String,
    },
}
