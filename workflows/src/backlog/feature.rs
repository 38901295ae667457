//! One feature of the backlog: the work, and the checks that accept it.

use std::fmt;

use longhaul_engine::Payload;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The id of a feature everywhere: in the list, the log, branches, worktrees and runs.
///
/// At most [`FeatureId::MAX_LEN`] bytes of ASCII letters, digits and `. _ -`. It becomes part of
/// branch names and paths, so it must not begin with `.` or `-`, end with `.` or `.lock`, or
/// contain `..`.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct FeatureId(String);

/// An invalid feature id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be a feature id: {reason}")]
pub struct InvalidFeatureId {
    text: String,
    reason: &'static str,
}

impl InvalidFeatureId {
    /// The reason, as the end of a sentence.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl FeatureId {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Validates a string as an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidFeatureId> {
        let text = text.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > Self::MAX_LEN {
            "it is longer than 64 bytes"
        } else if !text.bytes().all(allowed) {
            "only ASCII letters, digits and . _ - are allowed"
        } else if text.starts_with(['.', '-']) {
            "it begins with . or -"
        } else if text.ends_with('.') || text.to_ascii_lowercase().ends_with(".lock") {
            "it ends with . or .lock"
        } else if text.contains("..") {
            "it contains .."
        } else {
            return Ok(Self(text));
        };
        Err(InvalidFeatureId { text, reason })
    }

    /// The id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The generated id of an entry without a usable one; the index is counted from 0.
    pub fn of_place(index: usize) -> Self {
        Self(format!("feature-{}", index + 1))
    }

    /// The id in lower case: ids that differ only in case would share a path on some file systems.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl TryFrom<String> for FeatureId {
    type Error = InvalidFeatureId;
    fn try_from(text: String) -> Result<Self, InvalidFeatureId> {
        Self::new(text)
    }
}

impl From<FeatureId> for String {
    fn from(id: FeatureId) -> Self {
        id.0
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The status of a feature in a list. It is a claim; the log decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// Not begun, or returned.
    #[default]
    Pending,
    /// Being worked on.
    InProgress,
    /// Claimed to be done.
    Completed,
    /// Waits for a person.
    Blocked,
}

impl FeatureStatus {
    /// Its name in the list.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for FeatureStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// An acceptance check: a command that must exit with 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct Check {
    /// The name of its evidence; unique within its feature.
    pub name: String,
    /// The shell command.
    pub run: String,
    /// The timeout in seconds; `None`: the project's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Whether it is held out: an agent learns only the result and the message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The message for an agent when it fails and is held out: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Check {
    /// The part that an agent may see.
    #[must_use]
    pub(crate) fn for_agents(self) -> Self {
        if self.hidden { Self { run: String::new(), ..self } } else { self }
    }
}

/// One feature of the backlog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feature {
    /// Its id.
    pub id: FeatureId,
    /// A title for people.
    pub name: String,
    /// The work; may be empty.
    #[serde(default)]
    pub description: String,
    /// The kind of work, free text of the list.
    #[serde(default)]
    pub category: Option<String>,
    /// Higher is earlier.
    #[serde(default)]
    pub priority: i64,
    /// Acceptance criteria, for an agent to read.
    #[serde(default, deserialize_with = "exact")]
    pub acceptance_criteria: Vec<String>,
    /// Features that must pass before this one begins.
    #[serde(default, deserialize_with = "exact")]
    pub depends_on: Vec<FeatureId>,
    /// The acceptance checks.
    #[serde(default, deserialize_with = "exact")]
    pub checks: Vec<Check>,
    /// The claimed status.
    #[serde(default)]
    pub status: FeatureStatus,
    /// The claimed result of its checks.
    #[serde(default)]
    pub passes: bool,
    /// The claimed time of its last test, as in the list.
    #[serde(default)]
    pub last_tested: Option<String>,
    /// Whether a person must approve the merge.
    #[serde(default)]
    pub approval: bool,
    /// The keys of its list entry that Longhaul does not read, for an agent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Reads a list without the room that a growing one reserves: a backlog has many short lists.
fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let mut elements = Vec::deserialize(deserializer)?;
    elements.shrink_to_fit();
    Ok(elements)
}

impl Feature {
    /// A pending feature with an id and a name only.
    pub fn new(id: FeatureId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            description: String::new(),
            category: None,
            priority: 0,
            acceptance_criteria: Vec::new(),
            depends_on: Vec::new(),
            checks: Vec::new(),
            status: FeatureStatus::Pending,
            passes: false,
            last_tested: None,
            approval: false,
            extra: Map::new(),
        }
    }

    /// The fields that differ from another version of this feature, without the claims, which
    /// Longhaul maintains.
    pub fn differing_fields(&self, other: &Self) -> Vec<&'static str> {
        let compared = [
            ("name", self.name != other.name),
            ("description", self.description != other.description),
            ("category", self.category != other.category),
            ("priority", self.priority != other.priority),
            ("acceptance_criteria", self.acceptance_criteria != other.acceptance_criteria),
            ("depends_on", self.depends_on != other.depends_on),
            ("checks", self.checks != other.checks),
            ("approval", self.approval != other.approval),
            ("extra", self.extra != other.extra),
        ];
        compared.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
    }

    /// A digest of the work that is asked for, with the gates of its project: two versions of a
    /// feature differ in it if an edit matters to its run.
    pub fn version(&self, gates: &[Check], baseline: &[Check]) -> String {
        let asked = Self {
            priority: 0,
            depends_on: Vec::new(),
            status: FeatureStatus::Pending,
            passes: false,
            last_tested: None,
            extra: Map::new(),
            ..self.clone()
        };
        blake3::hash(Payload::of(&(asked, gates, baseline)).as_bytes()).to_hex()[..16].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_id(text: &str, expected: &str) {
        let outcome = FeatureId::new(text)
            .map_or_else(|error| error.reason().to_owned(), |_| "fine".to_owned());
        assert_eq!(outcome, expected, "{text}");
    }

    #[test]
    fn ids_are_safe_in_branches_and_paths() {
        check_id("user-login_2.0", "fine");
        check_id("7", "fine");
        check_id(&"a".repeat(64), "fine");
        check_id(&"a".repeat(65), "it is longer than 64 bytes");
        check_id("", "it is empty");
        check_id("a b", "only ASCII letters, digits and . _ - are allowed");
        check_id("a/b", "only ASCII letters, digits and . _ - are allowed");
        check_id("é", "only ASCII letters, digits and . _ - are allowed");
        check_id(".git", "it begins with . or -");
        check_id("-rf", "it begins with . or -");
        check_id("main.lock", "it ends with . or .lock");
        check_id("main.LOCK", "it ends with . or .lock");
        check_id("main.", "it ends with . or .lock");
        check_id("a..b", "it contains ..");
    }

    #[test]
    fn a_feature_is_read_with_its_defaults() {
        let feature: Feature = serde_json::from_str(r#"{"id":"login","name":"Login"}"#).unwrap();
        assert_eq!(feature, Feature::new(FeatureId::new("login").unwrap(), "Login"));
        let refused =
            serde_json::from_str::<Feature>(r#"{"id":"../x","name":"Login"}"#).unwrap_err();
        assert!(refused.to_string().contains("`../x` cannot be a feature id"), "{refused}");
    }
}
