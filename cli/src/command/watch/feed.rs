//! Supplies the screen with data: subscriptions to the process that runs the log, or one reading of
//! a log at rest, which other commands can use meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use longhaul_engine::RunId;
use longhaul_server::RunKind;
use longhaul_server::status::{self, StatusDocument};
use longhaul_server::views::ListRuns;
use longhaul_server::views::activity::output_file;
use longhaul_server::views::history::ShowHistory;
use longhaul_server::views::list::RunLine;
use longhaul_server::views::session::transcript::Transcript;
use longhaul_server::views::{Describe, Graph, GraphDocument, Name, Why};
use longhaul_server::{Client, Error, Notify, ProjectStatus, RewindPoint};
use longhaul_workflows::contracts::LoadedBacklog;
use longhaul_workflows::projection::ProjectView;
use longhaul_workflows::settings::Driver;
use tokio::sync::{mpsc, watch};

use crate::command::look::{SessionOutput, transcript, why};
use crate::command::terminal::{self, Terminal};
use crate::command::{call, explained, no_log};
use crate::term;

/// A selection is stable for this time before its data is requested.
const STABLE: Duration = Duration::from_millis(80);
/// The interval between two looks for an owner, or for output: neither announces itself.
const AGAIN: Duration = Duration::from_millis(500);
/// The most projects that are listed.
const MOST: usize = 500;

/// The data that the screen needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenQuery {
    pub(super) epoch: u64,
    pub(super) project: Option<RunId>,
    /// The checkout of the project, if it was given on the command line.
    pub(super) root: Option<PathBuf>,
    pub(super) feature: Option<String>,
    pub(super) run: Option<RunId>,
    pub(super) pane: Pane,
}

/// New data for the screen.
pub(super) enum Update {
    Projects(Vec<RunLine>),
    Status(Box<StatusDocument>),
    Graph(GraphDocument),
    /// Lines of the pane, for the selection of an epoch; the first ones replace those before.
    Lines {
        epoch: u64,
        is_first: bool,
        lines: Vec<String>,
    },
    /// The steps from which a run can be forked.
    Steps(RunId, Vec<RewindPoint>),
    Message(String),
}

/// Ignores a notice about a wait.
pub(super) fn quiet(_: &str) {}

/// Connects to an existing log.
pub(super) async fn reach(data_dir: &Path, notify: Notify) -> Result<Client> {
    Client::reach(data_dir, notify).await?.ok_or_else(|| no_log(data_dir))
}

/// Supplies data until the screen is closed.
pub(super) async fn run(
    data_dir: PathBuf,
    mut wishes: watch::Receiver<ScreenQuery>,
    updates: mpsc::Sender<Update>,
) {
    loop {
        let wish = wishes.borrow_and_update().clone();
        let feed = Feed { data_dir: &data_dir, wish: &wish, updates: &updates };
        let served = tokio::select! {
            served = feed.serve() => served,
            changed = wishes.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Err(error) = served else { continue };
        // The owner has exited: the next one is looked for.
        if !matches!(error.downcast_ref(), Some(Error::Gone(_)))
            && updates.send(Update::Message(format!("{error:#}"))).await.is_err()
        {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

struct Feed<'a> {
    data_dir: &'a Path,
    wish: &'a ScreenQuery,
    updates: &'a mpsc::Sender<Update>,
}

impl Feed<'_> {
    async fn serve(&self) -> Result<()> {
        tokio::time::sleep(STABLE).await;
        let client = Client::reach(self.data_dir, quiet).await?;
        if let Some(client) = client.filter(|client| matches!(client, Client::Remote(_))) {
            tokio::try_join!(
                self.follow_projects(&client),
                self.status(&client),
                self.graph(&client),
                self.pane(&client)
            )?;
            Ok(())
        } else {
            self.at_rest().await?;
            while Client::at_owner(self.data_dir, quiet).await.is_none() {
                tokio::time::sleep(AGAIN).await;
            }
            Ok(())
        }
    }

    /// Reads a log at rest and closes it.
    async fn at_rest(&self) -> Result<()> {
        let Some(client) = Client::reach(self.data_dir, quiet).await? else {
            return self.files().await;
        };
        self.send(Update::Projects(call(&client, all_projects()).await?.runs)).await;
        self.status(&client).await?;
        self.graph(&client).await?;
        self.pane(&client).await
    }

    /// A project without a log: its list.
    async fn files(&self) -> Result<()> {
        let (Some(project), Some(root)) = (&self.wish.project, &self.wish.root) else {
            return Err(no_log(self.data_dir));
        };
        let loaded = self.list().await;
        let shown = root.to_string_lossy();
        let document = status::of_files(project, &shown, loaded.clone());
        self.send(Update::Status(Box::new(document))).await;
        let features = loaded.map(|loaded| loaded.features).unwrap_or_default();
        let view = ProjectView::default().with_list(features);
        self.send(Update::Graph(GraphDocument::of(project, &view))).await;
        Ok(())
    }

    /// The current list of the project.
    async fn list(&self) -> Option<LoadedBacklog> {
        longhaul_activities::project::load(self.wish.root.as_ref()?).await.ok()
    }

    async fn send(&self, update: Update) {
        // A closed screen aborts this task.
        let _ = self.updates.send(update).await;
    }

    async fn lines(&self, is_first: bool, lines: Vec<String>) {
        self.send(Update::Lines { epoch: self.wish.epoch, is_first, lines }).await;
    }

    async fn follow_projects(&self, client: &Client) -> Result<()> {
        let mut watch = client.watch(all_projects()).await?;
        while let Some(document) = watch.next().await.map_err(explained)? {
            self.send(Update::Projects(document.runs)).await;
        }
        Ok(())
    }

    async fn status(&self, client: &Client) -> Result<()> {
        let Some(project) = self.wish.project.clone() else { return Ok(()) };
        let list = if matches!(client, Client::Local(_)) { self.list().await } else { None };
        let mut watch = client.watch(ProjectStatus { project, list }).await?;
        while let Some(document) = watch.next().await.map_err(explained)? {
            match document.filter(|document| !document.root.is_empty()) {
                Some(document) => self.send(Update::Status(Box::new(document))).await,
                None if self.wish.root.is_some() => self.files().await?,
                None => {}
            }
        }
        Ok(())
    }

    async fn graph(&self, client: &Client) -> Result<()> {
        let Some(project) = self.wish.project.clone() else { return Ok(()) };
        let list = if matches!(client, Client::Local(_)) { self.list().await } else { None };
        let list = list.map(|loaded| loaded.features);
        let mut watch = client.watch(Graph { project, list }).await?;
        loop {
            match watch.next().await {
                Ok(Some(document)) => self.send(Update::Graph(document)).await,
                // If the project is not in the log yet, the status shows its list.
                Ok(None) | Err(Error::Request(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn pane(&self, client: &Client) -> Result<()> {
        let Some(feature) = &self.wish.feature else { return Ok(()) };
        if self.wish.pane == Pane::Why {
            return self.why(client, feature).await;
        }
        let Some(run) = &self.wish.run else {
            self.lines(true, vec!["no run yet: `w` shows why".into()]).await;
            return Ok(());
        };
        let name = Name { text: run.to_string(), project: None, whole: true };
        match self.wish.pane {
            Pane::Log => self.log(client, name).await,
            _ => self.transcript(client, name).await,
        }
    }

    async fn log(&self, client: &Client, name: Name) -> Result<()> {
        let mut from = 0;
        loop {
            let query = ShowHistory { name: name.clone(), from, lines: false };
            let mut watch = client.watch(query).await?;
            let page = loop {
                match watch.next().await.map_err(explained)? {
                    Some(page) if page.events.is_empty() && page.is_running && !page.is_over => {}
                    Some(page) => break page,
                    None => return Ok(()),
                }
            };
            let line = |at: chrono::DateTime<chrono::Utc>, words: &str| {
                format!("{}  {}", at.format("%H:%M:%S"), terminal::safe(words))
            };
            let shown = page.events.iter().filter(|event| !event.words.is_empty());
            let lines = shown.map(|event| line(event.at, &event.words)).collect();
            self.lines(from == 0, lines).await;
            from = page.events.last().map_or(from, |event| event.position + 1);
            if !page.more && (page.is_over || !page.is_running) {
                return Ok(());
            }
        }
    }

    async fn why(&self, client: &Client, feature: &str) -> Result<()> {
        let name = Name { text: feature.into(), project: self.wish.project.clone(), whole: true };
        let list = if matches!(client, Client::Local(_)) { self.list().await } else { None };
        let why = Why { name, list: list.map(|loaded| loaded.features) };
        let mut watch = client.watch(why).await?;
        while let Some(document) = watch.next().await.map_err(explained)? {
            let plain = Terminal { width: None, is_coloured: false };
            let text = why::text(plain, &document);
            self.lines(true, text.lines().map(str::to_owned).collect()).await;
        }
        Ok(())
    }

    /// The output of the last session of a run, followed while the log is run.
    async fn transcript(&self, client: &Client, name: Name) -> Result<()> {
        let mut shown = None;
        let mut output = SessionOutput::default();
        let mut from = 0;
        loop {
            let document = call(client, Describe(name.clone())).await?;
            let Some(session) = document.sessions.last() else {
                self.lines(true, vec!["no session yet".into()]).await;
                return Ok(());
            };
            let is_first = shown != Some(session.number);
            if is_first {
                shown = Some(session.number);
                output = SessionOutput::default();
                from = 0;
            }
            let Some(run) = session.run() else { return Ok(()) };
            let text = if session.driver == Driver::Api {
                let name = Name { text: session.run.clone(), project: None, whole: true };
                let page = call(client, Transcript { name, from }).await?;
                from += page.entries.len();
                page.entries.iter().map(transcript::line).collect()
            } else {
                output.open(output_file(self.data_dir, &run));
                output.read_all()?
            };
            if is_first || !text.is_empty() {
                let text = term::clean(&text);
                self.lines(is_first, text.lines().map(str::to_owned).collect()).await;
            }
            if matches!(client, Client::Local(_)) || document.run.ended_at.is_some() {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn all_projects() -> ListRuns {
    let kind = Some(RunKind::Project);
    ListRuns { kind, limit: MOST, ..ListRuns::default() }
}

/// The view of the selected feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Pane {
    /// The history of its run.
    #[default]
    Log,
    /// The output or the conversation of its last session.
    Transcript,
    /// Why it makes no progress.
    Why,
}
