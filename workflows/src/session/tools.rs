//! The tools of the built-in agent: their descriptions for a model, and their arguments.
//!
//! One table gives both the JSON Schemas and the check of arguments.

mod table;

use serde_json::{Map, Value};

use crate::contracts::{ToolSpec, ToolUse};
use table::{Field, Kind, TOOLS, Tool};

/// The tools, in a fixed order: providers cache the begin of a request.
pub fn specs() -> Vec<ToolSpec> {
    TOOLS
        .iter()
        .map(|tool| ToolSpec {
            name: tool.name.into(),
            description: tool.about.into(),
            schema: schema(tool).to_string(),
            mcp: None,
        })
        .collect()
}

fn schema(tool: &Tool) -> Value {
    let property = |field: &Field| {
        let mut property = Map::new();
        property.insert("type".into(), field.kind.json_type().into());
        if let Kind::OneOf(values) = field.kind {
            property.insert("enum".into(), values.into());
        }
        if let Kind::Whole = field.kind {
            property.insert("minimum".into(), 1.into());
        }
        property.insert("description".into(), field.about.into());
        (field.name.to_owned(), Value::Object(property))
    };
    let properties: Map<_, _> = tool.fields.iter().map(property).collect();
    let required: Vec<_> =
        tool.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    serde_json::json!({ "type": "object", "properties": properties, "required": required })
}

/// The arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolArgs {
    /// Runs a command.
    Shell {
        /// The command, for a shell.
        command: String,
        /// Its timeout in seconds.
        timeout: Option<u64>,
    },
    /// Reads a text file.
    Read {
        /// The file.
        path: String,
        /// The first line, from 1.
        start: Option<u64>,
        /// The last line.
        end: Option<u64>,
    },
    /// Writes a whole file.
    Write {
        /// The file.
        path: String,
        /// Its content.
        content: String,
    },
    /// Replaces text in a file.
    Edit {
        /// The file.
        path: String,
        /// The text to replace.
        old: String,
        /// The new text.
        new: String,
        /// The expected occurrences of `old`; all are replaced.
        count: Option<u64>,
        /// Whether to replace all occurrences, whatever their number.
        all: bool,
    },
    /// Searches files for a regular expression.
    Search {
        /// The expression.
        pattern: String,
        /// The file or directory to search.
        path: Option<String>,
        /// The files to search.
        glob: Option<String>,
    },
    /// Lists files.
    List {
        /// The directory.
        path: Option<String>,
        /// The files to list.
        glob: Option<String>,
    },
    /// Claims that the feature is done.
    Finish {
        /// The action.
        summary: String,
    },
    /// Records a note.
    Note {
        /// Its kind.
        kind: NoteKind,
        /// The note.
        text: String,
    },
    /// Waits for the answer of a person.
    Ask {
        /// The question.
        question: String,
    },
    /// Gives a task to an agent with a context of its own.
    Delegate {
        /// The task.
        task: String,
    },
}

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// A completed part, or the next one.
    Progress,
    /// A decision and its reason.
    Decision,
    /// An approach that does not work.
    Avoid,
}

impl ToolArgs {
    /// The arguments of a call: JSON as the model wrote it. Unknown fields are ignored.
    ///
    /// # Errors
    /// A sentence for the model: the tool, the field and the fault.
    pub fn parse(name: &str, json: &str) -> Result<Self, String> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
            return Err(format!("There is no tool `{name}`. The tools are: {}.", names.join(", ")));
        };
        let mut fields = Fields::read(tool, json)
            .map_err(|fault| format!("The arguments of `{name}` are not valid: {fault}."))?;
        Ok(match name {
            ToolUse::SHELL => {
                Self::Shell { command: fields.text("command"), timeout: fields.number("timeout") }
            }
            "read" => Self::Read {
                path: fields.text("path"),
                start: fields.number("start"),
                end: fields.number("end"),
            },
            "write" => Self::Write { path: fields.text("path"), content: fields.text("content") },
            "edit" => Self::Edit {
                path: fields.text("path"),
                old: fields.text("old"),
                new: fields.text("new"),
                count: fields.number("count"),
                all: fields.flag("all"),
            },
            "search" => Self::Search {
                pattern: fields.text("pattern"),
                path: fields.some_text("path"),
                glob: fields.some_text("glob"),
            },
            "list" => Self::List { path: fields.some_text("path"), glob: fields.some_text("glob") },
            "finish" => Self::Finish { summary: fields.text("summary") },
            "note" => Self::Note { kind: fields.note_kind("kind"), text: fields.text("text") },
            "ask" => Self::Ask { question: fields.text("question") },
            _ => Self::Delegate { task: fields.text("task") },
        })
    }
}

/// The checked fields of a call.
struct Fields(Map<String, Value>);

impl Fields {
    fn read(tool: &Tool, json: &str) -> Result<Self, String> {
        // A provider may send nothing for a call without arguments.
        let json = if json.trim().is_empty() { "{}" } else { json };
        let given = match serde_json::from_str(json) {
            Ok(Value::Object(given)) => given,
            Ok(other) => return Err(format!("{} instead of an object", named(&other))),
            Err(error) => return Err(format!("they are not JSON ({error})")),
        };
        let mut checked = Map::new();
        for field in tool.fields {
            match given.get(field.name) {
                None | Some(Value::Null) if field.required => {
                    return Err(format!("the field `{}` is missing", field.name));
                }
                None | Some(Value::Null) => {}
                Some(value) => {
                    let value = field.kind.check(value).ok_or_else(|| {
                        let wanted = field.kind.wanted();
                        format!("the field `{}` is {}, not {wanted}", field.name, named(value))
                    })?;
                    checked.insert(field.name.into(), value);
                }
            }
        }
        Ok(Self(checked))
    }

    fn some_text(&mut self, name: &str) -> Option<String> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// A required text: the check has found it.
    fn text(&mut self, name: &str) -> String {
        self.some_text(name).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn note_kind(&mut self, name: &str) -> NoteKind {
        match self.text(name).as_str() {
            "decision" => NoteKind::Decision,
            "avoid" => NoteKind::Avoid,
            _ => NoteKind::Progress,
        }
    }
}

/// A value in a sentence.
fn named(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("{value}"),
        Value::Number(number) => format!("{number}"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests;
