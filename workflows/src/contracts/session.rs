//! A session of the built-in agent: its beginning, its end, and its notes for the next.

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SessionEnding, SessionInput, ToolSpec, git_policy};

activity! {
    /// Prepares a session: ends leftovers of an earlier attempt, writes the session's files, and
    /// words its prompts.
    BeginSession = "begin_session": BeginInput => SessionBegin, git_policy()
}

/// Input of [`BeginSession`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BeginInput {
    /// The facts.
    pub session: SessionInput,
    /// The work of the session before, which this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// The task of a sub-agent, instead of the whole feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Output of [`BeginSession`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionBegin {
    /// The work of the run has landed already, so no agent is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<SessionEnding>,
    /// The level of the sandbox: `bubblewrap`, `landlock` or `none`.
    pub sandbox: String,
    /// The texts for the model.
    pub texts: PromptTexts,
    /// The tools.
    pub tools: Vec<ToolSpec>,
    /// The context window that the provider states, in tokens, if the settings name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// The texts for a model. They are recorded, so a better text does not make a run diverge.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptTexts {
    /// The system prompt.
    pub system: String,
    /// The first message.
    pub prompt: String,
    /// Asks for a summary of the conversation.
    pub summarise: String,
    /// Introduces a summary at the start of a shortened conversation.
    pub resume: String,
    /// Follows an answer that neither calls a tool nor finishes.
    pub proceed: String,
    /// Follows an answer that was cut at its length limit.
    pub shorten: String,
}

activity! {
    /// Makes the files of a session durable, and writes its transcript and its record.
    EndSession = "end_session": EndInput => SessionEnd, git_policy()
}

/// Input of [`EndSession`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndInput {
    /// The facts.
    pub session: SessionInput,
    /// The package for the next session, if it hands over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
}

/// Output of [`EndSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// The notes file as programs of the session left it, at most 64 KiB.
    pub notes: String,
}

/// The state of the work, as the model summarises it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// The current objective.
    pub objective: String,
    /// The completed steps.
    pub completed: Vec<String>,
    /// The step in progress.
    pub in_progress: String,
    /// The obstacles.
    pub blockers: Vec<String>,
    /// The next steps.
    pub next_steps: Vec<String>,
    /// The decisions that hold from now on.
    pub decisions: Vec<String>,
    /// The approaches that did not work.
    pub avoid: Vec<String>,
    /// The open questions.
    pub questions: Vec<String>,
}

/// The package that one session leaves for the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Handoff {
    /// The session that ends.
    #[schemars(with = "String")]
    pub previous_session_id: RunId,
    /// The session that continues.
    #[schemars(with = "String")]
    pub new_session_id: RunId,
    /// The project.
    pub project_name: String,
    /// The feature.
    pub feature: String,
    /// The time of the package.
    pub created_at: DateTime<Utc>,
    /// The commit that holds the work.
    pub commit: String,
    /// The files that the work has changed.
    pub artifacts: Vec<String>,
    /// The state of the work.
    pub project_state: Summary,
}

impl Handoff {
    /// blake3 of the package, in hex.
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("a package has a JSON form");
        blake3::hash(&json).to_hex().to_string()
    }

    /// The package as a document for people and models.
    pub fn document(&self) -> String {
        let mut text = format!(
            "# Handoff of {}\n\nFrom {} to {}, {}.\nThe work is in commit {}.\n",
            self.feature,
            self.previous_session_id,
            self.new_session_id,
            self.created_at.format("%F %T UTC"),
            self.commit,
        );
        text.push_str(&self.project_state.document());
        list(&mut text, "Changed files", &self.artifacts);
        text
    }
}

impl Summary {
    /// The summary as a document; empty parts are left out.
    pub fn document(&self) -> String {
        let mut text = String::new();
        part(&mut text, "Objective", &self.objective);
        list(&mut text, "Completed", &self.completed);
        part(&mut text, "In progress", &self.in_progress);
        list(&mut text, "Blockers", &self.blockers);
        list(&mut text, "Next steps", &self.next_steps);
        list(&mut text, "Decisions", &self.decisions);
        list(&mut text, "Approaches to avoid", &self.avoid);
        list(&mut text, "Open questions", &self.questions);
        text
    }
}

fn part(text: &mut String, title: &str, content: &str) {
    if !content.trim().is_empty() {
        text.push_str(&format!("\n## {title}\n\n{}\n", content.trim()));
    }
}

fn list(text: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        text.push_str(&format!("\n## {title}\n\n"));
        for item in items {
            text.push_str(&format!("- {item}\n"));
        }
    }
}
