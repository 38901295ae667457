//! Looking at runs: what can be asked, and the documents that answer, computed from the log alone. Showing them is the
//! business of `the command line`.

pub mod describe;
mod facts;
pub mod graph;
pub mod history;
mod lane;
pub mod list;
mod names;
mod near;
mod outcomes;
pub mod report;
#[cfg(test)]
mod tests;
mod told;
pub mod tree;
pub mod why;
mod words;

use std::collections::BTreeMap;

use longhaul_engine::{EventStore, Payload, RunId, Stop, StoreError};
use longhaul_workflows::backlog::Feature;
use serde::{Deserialize, Serialize};

use crate::overlay::said;

pub use describe::{DescribeDocument, Waiting};
pub use facts::{Evidence, Session};
pub use graph::GraphDocument;
pub use history::HistoryPage;
pub use list::ListDocument;
use names::Found;
pub use names::{KINDS, Name, STATES, belongs};
pub use outcomes::Outcomes;
pub use told::{Told, ended_by};
pub use tree::TreeDocument;
pub use why::WhyDocument;

/// Something that a person wants to see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// The runs that fit.
    List(list::Query),
    /// Everything about one run.
    Describe(Name),
    /// What happened to a run.
    History(history::Query),
    /// A run and all below it.
    Tree(Name),
    /// The features of a project.
    Graph(RunId),
    /// The run that is meant by a name; of a feature the last one.
    Named(Name),
    /// The project that is meant: by its id, or the beginning of that.
    Project(String),
    /// Why a run or a feature does not go on. The list as it is now counts for a project that nobody runs.
    Why { name: Name, list: Option<Vec<Feature>> },
}

/// What there is to see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Document {
    List(ListDocument),
    Describe(Box<DescribeDocument>),
    History(HistoryPage),
    Tree(TreeDocument),
    Graph(GraphDocument),
    Why(WhyDocument),
    Named(RunId),
    /// No run is named so.
    Unknown(Unknown),
    /// The history of a run is not there any more.
    Gone(String),
}

/// A name that fits no run, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// What was said.
    pub name: String,
    pub why: Nameless,
    /// Those that may be meant.
    pub meant: Vec<String>,
}

/// Why a name is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nameless {
    /// Nothing is called so.
    Nothing,
    /// Several are.
    Several,
    /// A feature that has had no run yet.
    NoRun,
    /// No project is called so.
    NoProject,
}

/// A log, as it is looked at.
pub struct View<'a> {
    pub store: &'a dyn EventStore,
    /// The runs that cannot go on in the process that runs them.
    pub stuck: &'a BTreeMap<RunId, Stop>,
    /// Whether a process runs this log.
    pub is_running: bool,
}

impl View<'_> {
    /// Answers.
    pub async fn answer(&self, question: Question) -> Result<Document, StoreError> {
        Ok(match question {
            Question::List(query) => Document::List(self.list(&query).await?),
            Question::Graph(project) => Document::Graph(self.graph(&project).await?),
            Question::Named(name) => self.run_of(&name).await?.map_or_else(Document::Unknown, Document::Named),
            Question::Project(text) => self.project(&text).await?.map_or_else(Document::Unknown, Document::Named),
            Question::Describe(name) => match self.run_of(&name).await? {
                Ok(run) => Document::Describe(Box::new(self.describe(&run).await?)),
                Err(unknown) => Document::Unknown(unknown),
            },
            Question::History(query) => match self.run_of(&query.name).await? {
                Ok(run) => self.history(&run, &query).await?.map_or_else(Document::Gone, Document::History),
                Err(unknown) => Document::Unknown(unknown),
            },
            Question::Tree(name) => match self.run_of(&name).await? {
                Ok(run) => Document::Tree(self.tree(&run).await?),
                Err(unknown) => Document::Unknown(unknown),
            },
            Question::Why { name, list } => match self.find(&name).await? {
                Ok(Found::Run(run)) => Document::Why(self.why_run(&run).await?),
                Ok(Found::Feature { project, feature }) => {
                    let list = list.filter(|_| !self.is_running && name.project.as_ref() == Some(&project));
                    Document::Why(self.why_feature(&project, &feature, list).await?)
                }
                Err(unknown) => Document::Unknown(unknown),
            },
        })
    }
}

/// A value that a run has published, if it is there and readable.
fn published<T: serde::de::DeserializeOwned>(published: &BTreeMap<String, Payload>, key: &str) -> Option<T> {
    published.get(key).and_then(|value| value.read().ok())
}
