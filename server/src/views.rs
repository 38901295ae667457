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

use std::path::PathBuf;

use longhaul_activities::prices::Prices;
use longhaul_engine::{RunId, RunReader};
use longhaul_workflows::backlog::Feature;
use serde::{Deserialize, Serialize};

use crate::owner::Owner;
use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::service::Service;

pub use crate::request::{Unknown, Unresolved};
pub use describe::DescribeDocument;
pub use graph::GraphDocument;
pub use header::Header;
pub use history::HistoryPage;
pub use list::{ListDocument, ListRuns};
pub use names::Name;
use names::ResolvedName;
pub(crate) use names::{LatestRuns, project_and_feature};
pub use overview::{Overview, OverviewDocument, ProjectLine};
pub use session::{
    HandoffDocument, SessionDocument, SessionLine, SessionsDocument, ShowHandoff, ShowSession,
    TranscriptDocument,
};
pub use tree::TreeDocument;
pub use usage::UsageDocument;
use usage::UsageSum;
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

request!(ListRuns, "list" -> ListDocument, |self, service| Ok(service.view().list(&self).await?));
request!(Graph, "graph" -> GraphDocument, |self, service| {
    Ok(service.view().graph(&self.project, self.list).await?)
});
request!(FindRun, "find_run" -> RunId, |self, service| service.view().run_of(&self.0).await);
request!(FindProject, "find_project" -> RunId, |self, service| {
    service.view().project(&self.0).await
});
request!(Describe, "describe" -> DescribeDocument, |self, service| {
    let view = service.view();
    let run = view.run_of(&self.0).await?;
    let mut document = view.describe(&run).await?;
    if document.run.workflow != RunKind::Project {
        // A wrong price list is reported by `longhaul usage`; here the cost is then unknown.
        let prices = Prices::load(service.log.directory()).ok();
        let usage = view.used_by(&run, prices.as_ref().unwrap_or(&Prices::default())).await?;
        let with_cost = |usage: UsageSum| UsageSum {
            cost_usd: usage.cost_usd.filter(|_| prices.is_some()),
            ..usage
        };
        document.cost.usage = usage.map(with_cost);
    }
    Ok(document)
});
request!(history::ShowHistory, "history" -> HistoryPage, |self, service| {
    let view = service.view();
    let run = view.run_of(&self.name).await?;
    view.history(&run, &self).await
});
request!(Tree, "tree" -> TreeDocument, |self, service| {
    let view = service.view();
    let run = view.run_of(&self.0).await?;
    Ok(view.tree(&run).await?)
});
request!(Why, "why" -> WhyDocument, |self, service| service.view().why(self.name, self.list).await);
request!(session::list::ListSessions, "list_sessions" -> SessionsDocument, |self, service| {
    service.view().sessions(&self).await
});
request!(ShowSession, "show_session" -> SessionDocument, |self, service| {
    let view = service.view();
    let session = view.session(&self.0).await?;
    Ok(view.session_record(&session).await?)
});
request!(ShowHandoff, "show_handoff" -> HandoffDocument, |self, service| {
    View::handoff(service.view().session(&self.0).await?)
});
request!(session::transcript::Transcript, "transcript" -> TranscriptDocument, |self, service| {
    let view = service.view();
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
            ResolvedName::Run(run) => self.why_run(&run).await?,
            ResolvedName::Feature { project, feature } => {
                let list = list
                    .filter(|_| !self.owner.is_running && name.project.as_ref() == Some(&project));
                self.why_feature(&project, &feature, list).await?
            }
        })
    }
}

/// A read view of a log.
pub struct View<'a> {
    /// The log.
    pub store: &'a dyn RunReader,
    /// The process that runs it.
    pub owner: Owner,
    /// The data directory.
    pub directory: PathBuf,
}

impl View<'_> {
    /// The path of a recorded file of output; `None` if there is none.
    fn output_file(&self, log: &str) -> Option<String> {
        (!log.is_empty()).then(|| self.directory.join(log).to_string_lossy().into_owned())
    }
}

impl Service {
    /// The read view of the log.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            store: &*self.store,
            owner: self.owner(),
            directory: self.log.directory().to_owned(),
        }
    }
}
