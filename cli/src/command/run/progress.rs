//! Progress on standard error: a line for each change, and a live display on a terminal.

use std::collections::{BTreeMap, BTreeSet};

use crate::live::Live;
use crate::status_text::{first_line, sessions_paused};
use crate::term;
use crate::terminal::safe;
use longhaul_server::Client;
use longhaul_server::status::{FeatureLine, StatusDocument};
use longhaul_workflows::projection::State;

/// The last shown state of each feature of each project.
pub(in crate::command) struct Progress {
    live: Option<Live>,
    shown: BTreeMap<(String, String), String>,
    /// Why no session of a project starts.
    paused: BTreeMap<String, String>,
    /// The projects seen so far.
    begun: BTreeSet<String>,
}

impl Progress {
    /// Progress of a number of projects.
    pub(in crate::command) fn new(projects: usize) -> Self {
        Self {
            live: Live::open(projects),
            shown: BTreeMap::new(),
            paused: BTreeMap::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Shows the changes of a project.
    pub(in crate::command) fn show(&mut self, document: &StatusDocument) {
        if let Some(live) = &mut self.live {
            live.show(document);
        }
        // Without --verbose, the features that passed earlier are only counted.
        let is_first = self.begun.insert(document.project.clone()) && !term::is_verbose();
        let passed = document.features.iter().filter(|line| is_first && line.passes).count();
        if passed > 0 {
            let total = document.counts.total;
            plain(&document.project, &format!("{passed} of {total} features passed already"));
        }
        self.show_pause(document);
        for line in &document.features {
            let key = (document.project.clone(), line.id.clone());
            let now = sentence(line);
            let before = self.shown.get(&key);
            if before == Some(&now) || (before.is_none() && is_untouched(line)) {
                continue;
            }
            self.shown.insert(key, now.clone());
            // The display shows the current steps.
            let is_current = self.live.is_some() && line.step.is_some() && !line.needs_person;
            if (is_first && line.passes) || is_current {
                continue;
            }
            plain(&document.project, &format!("{}  {now}", line.id));
        }
    }

    /// Draws the live display, if it is due.
    pub(in crate::command) async fn tick(&mut self, client: &Client) {
        if let Some(live) = &mut self.live {
            live.tick(client).await;
        }
    }

    /// Shows once per wait why no session starts.
    fn show_pause(&mut self, document: &StatusDocument) {
        let Some(paused) =
            document.sessions_paused.as_ref().filter(|paused| paused.until.is_some())
        else {
            return;
        };
        let advice =
            if paused.needs_person { "; is the agent installed and logged in?" } else { "" };
        let now = format!("{}{advice}", safe(&sessions_paused(paused)));
        if self.paused.get(&document.project) != Some(&now) {
            plain(&document.project, &now);
            self.paused.insert(document.project.clone(), now);
        }
    }

    /// Removes the live display.
    pub(in crate::command) fn finish(&mut self) {
        self.live = None;
    }
}

fn is_untouched(line: &FeatureLine) -> bool {
    line.run.is_none() && line.reason.is_none()
}

fn sentence(line: &FeatureLine) -> String {
    let detail = if line.passes { None } else { line.remark().or_else(|| line.step.clone()) };
    match detail {
        // The sentence says it already.
        Some(detail) if line.status == State::Waiting && line.tells_wait => {
            safe(&first_line(&detail))
        }
        Some(detail) => format!("{}: {}", line.status, safe(&first_line(&detail))),
        None => line.status.to_string(),
    }
}

fn plain(project: &str, sentence: &str) {
    let time = chrono::Local::now().format("%H:%M:%S");
    term::say(format!("{time} {project} {sentence}"));
}
