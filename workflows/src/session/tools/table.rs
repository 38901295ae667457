//! The table of the tools.

use serde_json::Value;

use crate::contracts::ToolUse;

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: &'static [Field],
}

/// A field of its arguments.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) about: &'static str,
}

/// The values of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A whole number from 1.
    Whole,
    Flag,
    OneOf(&'static [&'static str]),
}

impl Kind {
    pub(super) fn json_type(self) -> &'static str {
        match self {
            Self::Text | Self::OneOf(_) => "string",
            Self::Whole => "integer",
            Self::Flag => "boolean",
        }
    }

    pub(super) fn wanted(self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Whole => "a whole number from 1".into(),
            Self::Flag => "true or false".into(),
            Self::OneOf(values) => format!("one of: {}", values.join(", ")),
        }
    }

    /// The value, if it is one of this kind. Models write numbers and flags as strings too.
    pub(super) fn check(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Text, Value::String(_)) | (Self::Flag, Value::Bool(_)) => Some(value.clone()),
            (Self::OneOf(values), Value::String(text)) => {
                values.contains(&text.as_str()).then(|| value.clone())
            }
            (Self::Flag, Value::String(text)) => text.trim().parse::<bool>().ok().map(Value::from),
            (Self::Whole, Value::String(text)) => whole(text.trim().parse().ok()?),
            (Self::Whole, Value::Number(number)) => whole(number.as_f64()?),
            _ => None,
        }
    }
}

/// A whole number from 1. Larger ones than any line or second count as the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is whole, positive and bounded"
)]
fn whole(number: f64) -> Option<Value> {
    let is_whole = number >= 1.0 && number.fract() == 0.0;
    is_whole.then(|| (number.min(f64::from(u32::MAX)) as u64).into())
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: true, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: false, about }
}

const FILE: Field = required("path", Kind::Text, "The file, relative to the work tree.");

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: ToolUse::SHELL,
        about: "Runs a command with bash (or sh) in the root of the work tree and returns its \
                output and exit code. Each call is a new shell: the directory and variables of \
                earlier calls are gone. There is no terminal and no input. Processes that the \
                command leaves in the background end with the call. Of long output the middle is \
                left out: prefer commands with little output. Use `read`, `edit`, `write`, \
                `search` and `list` for files rather than cat, sed, echo, grep and ls.",
        fields: &[
            required("command", Kind::Text, "The command. It may have several lines."),
            optional("timeout", Kind::Whole, "Its timeout in seconds, by default 600."),
        ],
    },
    Tool {
        name: "read",
        about: "Reads a text file. Each line is preceded by its number and a tab, which are not \
                part of the file. At most 2,000 lines are returned: give a range for the others.",
        fields: &[
            FILE,
            optional("start", Kind::Whole, "The first line, from 1."),
            optional("end", Kind::Whole, "The last line."),
        ],
    },
    Tool {
        name: "write",
        about: "Writes a whole file: creates it, with its directories, or replaces its content. \
                Use `edit` to change a part of a file.",
        fields: &[FILE, required("content", Kind::Text, "The whole content.")],
    },
    Tool {
        name: "edit",
        about: "Replaces text in a file. `old` must occur exactly once, unless `count` or `all` \
                says otherwise: include enough lines around the change. Copy `old` exactly, with \
                its indentation and without the line numbers of `read`.",
        fields: &[
            FILE,
            required("old", Kind::Text, "The text to replace. It may have several lines."),
            required("new", Kind::Text, "The new text. Empty: `old` is removed."),
            optional("count", Kind::Whole, "How often `old` occurs; each is replaced."),
            optional("all", Kind::Flag, "Whether to replace every occurrence."),
        ],
    },
    Tool {
        name: "search",
        about: "Searches the lines of files for a regular expression (Rust syntax; `(?i)` ignores \
                case) and returns file, line number and line. Files that .gitignore names and \
                binary files are skipped. At most 200 lines are returned.",
        fields: &[
            required("pattern", Kind::Text, "The regular expression."),
            optional("path", Kind::Text, "The file or directory; by default the work tree."),
            optional("glob", Kind::Text, "Only these files, for example `*.rs` or `src/**/*.ts`."),
        ],
    },
    Tool {
        name: "list",
        about: "Lists a directory, or with `glob` the files below it that match; then those that \
                .gitignore names are skipped. At most 500 entries are returned.",
        fields: &[
            optional("path", Kind::Text, "The directory; by default the work tree."),
            optional("glob", Kind::Text, "For example `*.rs` or `src/**/*.ts`."),
        ],
    },
    Tool {
        name: "note",
        about: "Records a note that outlives this context: the next session reads it. Note each \
                completed part, each decision with its reason, and each approach that failed.",
        fields: &[
            required(
                "kind",
                Kind::OneOf(&["progress", "decision", "avoid"]),
                "progress: what is done or next. decision: a choice and its reason. avoid: an \
                 approach that does not work, and why.",
            ),
            required("text", Kind::Text, "The note, in a few sentences."),
        ],
    },
    Tool {
        name: "delegate",
        about: "Gives a task to an agent with an empty context of its own, in the same work tree, \
                and returns its answer only. Use it for work that reads much and answers little, \
                such as finding the place of a fault.",
        fields: &[required(
            "task",
            Kind::Text,
            "The task with all that the agent must know, and the form of the answer.",
        )],
    },
    Tool {
        name: "ask",
        about: "Asks a person, and waits for the answer, perhaps for days. Use it only if the \
                work cannot go on without a decision or a fact that you cannot find.",
        fields: &[required("question", Kind::Text, "The question, with the options you see.")],
    },
    Tool {
        name: "finish",
        about: "Claims that the feature is done. Its checks run next; if one fails, you get its \
                output. Call it alone, when the work is complete and tested.",
        fields: &[required("summary", Kind::Text, "What was done, in a few sentences.")],
    },
];
