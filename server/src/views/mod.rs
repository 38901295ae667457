//! The read side: requests that only look at runs, and the documents they return, computed from the
//! log alone.

pub mod activity;
pub mod describe;
pub mod graph;
mod header;
pub mod history;
pub mod list;
mod names;
mod overview;
mod scope;
pub mod session;
pub(crate) mod states;
mod suggest;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod usage;
pub mod why;

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_engine::{RunId, RunReader, Stop};
use longhaul_workflows::backlog::Feature;
use serde::{Deserialize, Serialize};

use crate::request::{self, RequestError};
use crate::service::Service;

pub use describe::DescribeDocument;
pub use graph::GraphDocument;
pub use header::Header;
pub use history::HistoryPage;
pub use list::ListDocument;
use names::Found;
pub(crate) use names::Latest;
pub use names::{KINDS, Name, project_and_feature};
pub use overview::{Overview, OverviewDocument, ProjectLine};
pub use session::{
    HandoffDocument, SessionDocument, SessionLine, SessionsDocument, ShowHandoff, ShowSession,
    TranscriptDocument,
};
pub use tree::TreeDocument;
pub use usage::UsageDocument;
pub use why::WhyDocument;

/// Everything about one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Describe(pub Name);

/// A run and all below it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tree(pub Name);

/// The features of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Graph {
    /// The run of the project.
    pub project: RunId,
    /// The current list; absent: the list that the project read last. Not sent to another process:
    /// one that runs the project has read it.
    #[serde(skip)]
    pub list: Option<Vec<Feature>>,
}

/// Resolves a name to a run; a feature means its last run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindRun(pub Name);

/// Resolves a project by its id or a prefix of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindProject(pub String);

/// Why a run or a feature makes no progress.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Why {
    /// A run or a feature.
    pub name: Name,
    /// The current list, used if no process runs the project.
    #[serde(skip)]
    pub list: Option<Vec<Feature>>,
}

/// Implements a read request.
macro_rules! reads {
    ($request:ty, $name:literal, $response:ty, |$self:ident, $view:ident| $perform:expr) => {
        impl request::Request for $request {
            const NAME: &'static str = $name;
            type Response = $response;

            async fn perform($self, service: Arc<Service>) -> Result<$response, RequestError> {
                let $view = service.view();
                $perform
            }
        }
    };
}

reads!(list::Query, "list", ListDocument, |self, view| Ok(view.list(&self).await?));
reads!(Graph, "graph", GraphDocument, |self, view| Ok(view
    .graph(&self.project, self.list)
    .await?));
reads!(FindRun, "find_run", RunId, |self, view| view.run_of(&self.0).await);
reads!(FindProject, "find_project", RunId, |self, view| view.project(&self.0).await);
reads!(Describe, "describe", DescribeDocument, |self, view| {
    let run = view.run_of(&self.0).await?;
    Ok(view.describe(&run).await?)
});
reads!(history::Query, "history", HistoryPage, |self, view| {
    let run = view.run_of(&self.name).await?;
    view.history(&run, &self).await?.map_err(RequestError::refused)
});
reads!(Tree, "tree", TreeDocument, |self, view| {
    let run = view.run_of(&self.0).await?;
    Ok(view.tree(&run).await?)
});
reads!(Why, "why", WhyDocument, |self, view| view.why(self.name, self.list).await);

reads!(session::list::ListSessions, "list_sessions", SessionsDocument, |self, view| {
    view.sessions(&self).await
});
reads!(ShowSession, "show_session", SessionDocument, |self, view| {
    let session = view.session(&self.0).await?;
    Ok(view.session_record(&session).await?)
});
reads!(ShowHandoff, "show_handoff", HandoffDocument, |self, view| {
    View::handoff(view.session(&self.0).await?)
});
reads!(session::transcript::Transcript, "transcript", TranscriptDocument, |self, view| {
    let session = view.session(&self.name).await?;
    Ok(view.transcript(&session, self.from))
});

impl View<'_> {
    async fn why(
        &self,
        name: Name,
        list: Option<Vec<Feature>>,
    ) -> Result<WhyDocument, RequestError> {
        Ok(match self.find(&name).await? {
            Found::Run(run) => self.why_run(&run).await?,
            Found::Feature { project, feature } => {
                let list =
                    list.filter(|_| !self.is_running && name.project.as_ref() == Some(&project));
                self.why_feature(&project, &feature, list).await?
            }
        })
    }
}

/// A name that matches no run, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The name as given.
    pub name: String,
    /// Why it does not resolve.
    pub why: Nameless,
    /// The candidates.
    pub meant: Vec<String>,
}

/// Why a name does not resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nameless {
    /// There is no match.
    Nothing,
    /// There are several matches.
    Several,
    /// The feature has no run yet.
    NoRun,
    /// There is no such project.
    NoProject,
}

/// A read view of a log.
pub struct View<'a> {
    /// The log.
    pub store: &'a dyn RunReader,
    /// The stuck runs of the process that runs it.
    pub stuck: BTreeMap<RunId, Stop>,
    /// The runs of that process with an activity that waits for a slot of a pool, and the pool.
    pub queued: BTreeMap<RunId, String>,
    /// Whether a process runs this log.
    pub is_running: bool,
}
