//! Filters that select runs for orders.

use std::str::FromStr;

use longhaul_engine::{RunId, Summary};
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::ProjectWorkflow;
use longhaul_workflows::projection::State;
use serde::{Deserialize, Serialize};

use crate::status;
use crate::views::states::Projects;
use crate::views::{KINDS, Latest};

use crate::request::{RequestError, request};
use crate::service::Service;

/// One condition on runs: `project=shop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    key: Key,
    value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Project,
    Status,
    Kind,
    Feature,
    Label(String),
}

/// A selected run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    /// The run.
    pub run: RunId,
    /// The name of its workflow.
    pub kind: String,
    /// Its state.
    pub status: State,
    /// Whether it waits for the approval of a person.
    pub awaits_approval: bool,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
        let key = match key {
            "project" => Key::Project,
            "status" => Key::Status,
            "kind" => Key::Kind,
            "feature" => Key::Feature,
            _ => match key.strip_prefix("label.") {
                Some(label) if !label.is_empty() => Key::Label(label.to_owned()),
                _ => {
                    return Err(format!(
                        "`{key}` is none of project, status, kind, feature, label.NAME"
                    ));
                }
            },
        };
        match key {
            Key::Status => drop(value.parse::<State>()?),
            Key::Kind if !KINDS.contains(&value) => {
                return Err(format!("`{value}` is none of {}", KINDS.join(", ")));
            }
            _ => {}
        }
        Ok(Self { key, value: value.to_owned() })
    }
}

impl Filter {
    /// Whether a run in this state matches.
    fn allows(&self, state: State) -> bool {
        self.key != Key::Status || self.value.parse() == Ok(state)
    }

    /// Whether a run matches, by its summary. The state is checked last because it costs the most.
    fn matches(&self, run: &RunId, summary: &Summary, root: Option<&str>) -> bool {
        let mut parts = run.as_str().split('/');
        let project = parts.next();
        let feature = parts.next();
        let value = self.value.as_str();
        match &self.key {
            Key::Project => {
                project == Some(value)
                    || root
                        .is_some_and(|root| root == value || root.ends_with(&format!("/{value}")))
            }
            Key::Status => true,
            Key::Kind => summary.workflow == value,
            Key::Feature => summary.workflow == FeatureWorkflow::NAME && feature == Some(value),
            Key::Label(label) => summary.labels.get(label).is_some_and(|known| known == value),
        }
    }
}

/// The runs that match all filters: closed runs only if a filter names a status, and no run that a
/// later run of its feature superseded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SelectRuns {
    /// The filters, all of which must match.
    pub filters: Vec<Filter>,
}

request!(SelectRuns, "select_runs" -> Vec<Selected>, |self, service| self.run(&service).await);

impl SelectRuns {
    async fn run(self, service: &Service) -> Result<Vec<Selected>, RequestError> {
        let filters = self.filters;
        let any_status = filters.iter().any(|filter| filter.key == Key::Status);
        let (mut selected, mut projects) = (Vec::new(), Projects::default());
        let mut root: (String, Option<String>) = Default::default();
        let runs = service.store.runs("").await?;
        let latest = Latest::of(&runs);
        for (run, summary) in runs {
            let is_closed = summary.status.is_terminal();
            if is_closed && !any_status || latest.after(&run, &summary).is_some() {
                continue;
            }
            let project = run.root();
            if root.0 != project {
                let known = match RunId::new(project) {
                    Ok(project) => status::known_root(&*service.store, &project).await?,
                    Err(_) => None,
                };
                root = (project.to_owned(), known);
            }
            if !filters.iter().all(|filter| filter.matches(&run, &summary, root.1.as_deref())) {
                continue;
            }
            let state = service.view().standing(&run, &summary, &mut projects).await?.state;
            if filters.iter().all(|filter| filter.allows(state)) {
                let awaits_approval = !summary.status.is_terminal()
                    && summary.workflow == FeatureWorkflow::NAME
                    && service.awaited(&run).await?.is_some();
                selected.push(Selected {
                    run,
                    kind: summary.workflow,
                    status: state,
                    awaits_approval,
                });
            }
        }
        Ok(selected)
    }
}

/// Drops runs whose project is selected too: its order reaches them anyway.
pub fn without_covered(runs: Vec<Selected>) -> Vec<Selected> {
    let projects: Vec<RunId> = runs
        .iter()
        .filter(|run| run.kind == ProjectWorkflow::NAME)
        .map(|run| run.run.clone())
        .collect();
    let is_covered = |run: &RunId| {
        projects.iter().any(|project| run != project && run.is_within(project.as_str()))
    };
    runs.into_iter().filter(|selected| !is_covered(&selected.run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_or_refused_with_the_keys_that_there_are() {
        let label = "label.team=web".parse::<Filter>().unwrap();
        assert_eq!(label, Filter { key: Key::Label("team".into()), value: "web".into() });
        let wrong = [
            ("project", "KEY=VALUE"),
            ("colour=red", "label.NAME"),
            ("label.=x", "label.NAME"),
            ("status=asleep", "`asleep` is none of pending, running"),
            ("kind=run", "`run` is none of project, feature, session, batch"),
        ];
        for (wrong, expected) in wrong {
            let refused = wrong.parse::<Filter>().unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
