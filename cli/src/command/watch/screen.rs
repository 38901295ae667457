//! The state of the screen, and the effects of keys on it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_engine::RunId;
use longhaul_server::status::{FeatureLine, StatusDocument};
use longhaul_server::views::GraphDocument;
use longhaul_server::views::list::RunLine;
use longhaul_server::{ForkPoint, Order, RewindPoint};

use super::feed::{Pane, ScreenQuery, Update};
use crate::command::look::{DagRow, dag_rows};
use crate::place::Project;

/// The most lines of a pane that are kept.
const LINES: usize = 5000;

/// A request of a person.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Quit,
    Steer(RunId, Order),
    /// Lists the steps from which a run can be forked.
    ListSteps(RunId),
    Fork(RunId, ForkPoint),
}

/// A window over the screen.
pub(super) enum Popup {
    Help,
    /// A list from which one entry is chosen.
    Choice {
        of: Choice,
        entries: Vec<(String, String)>,
        selected: usize,
    },
}

/// The subject of a choice.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    /// A step from which this run is forked.
    Step(RunId),
    /// The shown project.
    Project,
}

pub(super) struct Screen {
    /// The project runs of the log.
    pub(super) projects: Vec<RunLine>,
    /// The shown project.
    pub(super) project: Option<RunId>,
    /// The project of the command line.
    given: Option<Project>,
    pub(super) status: StatusDocument,
    pub(super) graph: GraphDocument,
    pub(super) rows: Vec<DagRow>,
    /// The row of the selected feature.
    pub(super) selected: usize,
    pub(super) pane: Pane,
    pub(super) lines: Vec<String>,
    /// How many lines the pane is scrolled up from its end.
    pub(super) scrolled: usize,
    pub(super) popup: Option<Popup>,
    pub(super) message: String,
    /// Counts the changes of the selection; updates of an earlier selection are dropped.
    epoch: u64,
}

impl Screen {
    pub(super) fn new(project: Option<Project>) -> Self {
        Self {
            projects: Vec::new(),
            project: project.as_ref().map(|project| project.id.clone()),
            given: project,
            status: StatusDocument::default(),
            graph: GraphDocument::default(),
            rows: Vec::new(),
            selected: 0,
            pane: Pane::default(),
            lines: Vec::new(),
            scrolled: 0,
            popup: None,
            message: String::new(),
            epoch: 0,
        }
    }

    /// The data that the screen needs.
    pub(super) fn wish(&self) -> ScreenQuery {
        let line = self.line();
        ScreenQuery {
            epoch: self.epoch,
            project: self.project.clone(),
            root: self
                .given
                .as_ref()
                .filter(|given| Some(&given.id) == self.project.as_ref())
                .map(|given| given.root.clone()),
            feature: self.feature().map(str::to_owned),
            run: line.and_then(|line| line.run.clone()),
            pane: self.pane,
        }
    }

    /// The id of the selected feature.
    pub(super) fn feature(&self) -> Option<&str> {
        let row = self.rows.get(self.selected)?;
        Some(&self.graph.features.get(row.index)?.id)
    }

    /// The status of the selected feature.
    pub(super) fn line(&self) -> Option<&FeatureLine> {
        let id = self.feature()?;
        self.status.features.iter().find(|line| line.id == id)
    }

    /// Takes an update.
    pub(super) fn take(&mut self, update: Update) {
        match update {
            Update::Projects(projects) => {
                if self.project.is_none() {
                    self.project = projects.first().and_then(|line| line.header.run.clone());
                }
                self.projects = projects;
            }
            Update::Status(status) if self.is_shown(&status.project) => {
                let before = self.line().and_then(|line| line.run.clone());
                self.status = *status;
                if before != self.line().and_then(|line| line.run.clone()) {
                    self.restart();
                }
            }
            Update::Graph(graph) if self.is_shown(&graph.project) => {
                let selected = self.feature().map(str::to_owned);
                self.rows = dag_rows(&graph);
                self.graph = graph;
                let same =
                    |row: &DagRow| Some(&self.graph.features[row.index].id) == selected.as_ref();
                self.selected = self.rows.iter().position(same).unwrap_or_default();
            }
            Update::Status(_) | Update::Graph(_) => {}
            Update::Lines { epoch, is_first, lines } => {
                if epoch == self.epoch {
                    self.extend(is_first, lines);
                }
            }
            Update::Steps(run, rows) => self.offer(run, rows),
            Update::Message(message) => self.message = message,
        }
    }

    fn is_shown(&self, project: &str) -> bool {
        self.project.as_ref().is_some_and(|shown| shown.as_str() == project)
    }

    fn extend(&mut self, is_first: bool, lines: Vec<String>) {
        if is_first {
            self.lines.clear();
        }
        if self.scrolled > 0 {
            // The shown lines stay.
            self.scrolled += lines.len();
        }
        self.lines.extend(lines);
        let excess = self.lines.len().saturating_sub(LINES);
        self.lines.drain(..excess);
    }

    fn offer(&mut self, run: RunId, rows: Vec<RewindPoint>) {
        let mut steps = vec![("start".to_owned(), "before the first step".to_owned())];
        let rows = rows.into_iter().filter(|row| row.fork && row.run == run);
        steps.extend(rows.map(|row| (row.name, row.checkpoint.step.to_string())));
        let selected = steps.len() - 1;
        self.popup = Some(Popup::Choice { of: Choice::Step(run), entries: steps, selected });
    }

    fn offer_projects(&mut self) {
        let entry = |line: &RunLine| (line.header.id().to_owned(), line.header.status.to_string());
        let entries = self.projects.iter().map(entry).collect();
        let shown = self.projects.iter().position(|line| line.header.run == self.project);
        let selected = shown.unwrap_or_default();
        self.popup = Some(Popup::Choice { of: Choice::Project, entries, selected });
    }

    /// Another selection: its lines are requested anew.
    fn restart(&mut self) {
        self.epoch += 1;
        self.lines.clear();
        self.scrolled = 0;
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Action::Quit);
        }
        self.message.clear();
        if self.popup.is_some() {
            return self.press_in_popup(key.code);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Action::Quit),
            KeyCode::Char('?' | 'h') => self.popup = Some(Popup::Help),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Home | KeyCode::Char('g') => self.select(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.select(isize::MAX),
            KeyCode::Char('o') => self.offer_projects(),
            KeyCode::Right | KeyCode::Char(']') => self.change_project(1),
            KeyCode::Left | KeyCode::Char('[') => self.change_project(-1),
            KeyCode::PageUp => self.scrolled = (self.scrolled + 10).min(self.lines.len()),
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::Tab => self.show(match self.pane {
                Pane::Log => Pane::Transcript,
                Pane::Transcript => Pane::Why,
                Pane::Why => Pane::Log,
            }),
            KeyCode::Char('l') => self.show(Pane::Log),
            KeyCode::Char('t') => self.show(Pane::Transcript),
            KeyCode::Char('w') => self.show(Pane::Why),
            KeyCode::Char('p') => return self.steer(Order::Pause),
            KeyCode::Char('r') => return self.steer(Order::Resume),
            KeyCode::Char('a') => return self.steer(Order::Approve),
            KeyCode::Char('P') => return Some(Action::Steer(self.project.clone()?, Order::Pause)),
            KeyCode::Char('R') => return Some(Action::Steer(self.project.clone()?, Order::Resume)),
            KeyCode::Char('f') => return Some(Action::ListSteps(self.run()?)),
            _ => {}
        }
        None
    }

    fn press_in_popup(&mut self, key: KeyCode) -> Option<Action> {
        let Some(Popup::Choice { of, entries, selected }) = &mut self.popup else {
            self.popup = None;
            return None;
        };
        match key {
            KeyCode::Down | KeyCode::Char('j') => {
                *selected = (*selected + 1).min(entries.len().saturating_sub(1));
                return None;
            }
            KeyCode::Up | KeyCode::Char('k') => {
                *selected = selected.saturating_sub(1);
                return None;
            }
            _ => {}
        }
        let chosen = entries.get(*selected).filter(|_| key == KeyCode::Enter).cloned();
        let of = of.clone();
        self.popup = None;
        match (of, chosen?.0) {
            (Choice::Step(run), step) => Some(Action::Fork(run, step.parse().ok()?)),
            (Choice::Project, id) => {
                self.show_project(RunId::new(id).ok()?);
                None
            }
        }
    }

    fn steer(&mut self, order: Order) -> Option<Action> {
        Some(Action::Steer(self.run()?, order))
    }

    /// The run of the selected feature; a message if it has none.
    fn run(&mut self) -> Option<RunId> {
        let run = self.line().and_then(|line| line.run.clone());
        if run.is_none() {
            self.message = "the feature has no run yet".into();
        }
        run
    }

    fn select(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        let selected = self.selected.saturating_add_signed(by).min(last);
        if selected != self.selected {
            self.selected = selected;
            self.restart();
        }
    }

    fn change_project(&mut self, by: isize) {
        let shown = self.projects.iter().position(|line| line.header.run == self.project);
        let next = shown.map_or(0, |shown| shown.saturating_add_signed(by));
        let Some(run) = self.projects.get(next).and_then(|line| line.header.run.clone()) else {
            return;
        };
        self.show_project(run);
    }

    fn show_project(&mut self, run: RunId) {
        if Some(&run) != self.project.as_ref() {
            self.project = Some(run);
            self.status = StatusDocument::default();
            self.graph.features.clear();
            self.rows.clear();
            self.selected = 0;
            self.restart();
        }
    }

    fn show(&mut self, pane: Pane) {
        if pane != self.pane {
            self.pane = pane;
            self.restart();
        }
    }
}
