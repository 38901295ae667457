//! Progress on standard error: bars on a terminal, a line for each change otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::command::status::{first_line, sessions_paused};
use crate::command::terminal::safe;
use crate::term;
use longhaul_server::status::{FeatureLine, StatusDocument};

/// The last shown state of each feature of each project.
pub(in crate::command) struct Progress {
    bars: Option<Bars>,
    shown: BTreeMap<(String, String), String>,
    /// Why no session of a project starts.
    paused: BTreeMap<String, String>,
    /// The projects seen so far.
    begun: BTreeSet<String>,
}

struct Bars {
    all: MultiProgress,
    projects: BTreeMap<String, ProgressBar>,
    features: BTreeMap<(String, String), ProgressBar>,
}

impl Progress {
    pub(in crate::command) fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(|| Bars {
            all: MultiProgress::new(),
            projects: BTreeMap::new(),
            features: BTreeMap::new(),
        });
        Self { bars, shown: BTreeMap::new(), paused: BTreeMap::new(), begun: BTreeSet::new() }
    }

    /// Shows the changes of a project.
    pub(in crate::command) fn show(&mut self, document: &StatusDocument) {
        // Without --verbose, the features that passed earlier are only counted.
        let is_first = self.begun.insert(document.project.clone()) && !term::is_verbose();
        let passed = document.features.iter().filter(|line| is_first && line.passes).count();
        if passed > 0 {
            let sentence = format!("{passed} of {} features passed already", document.counts.total);
            match &self.bars {
                Some(bars) => drop(bars.all.println(format!("  {sentence}"))),
                None => plain(&document.project, &sentence),
            }
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
            if is_first && line.passes {
                continue;
            }
            match &mut self.bars {
                Some(bars) => bars.show_feature(&document.project, line, &now),
                None => plain(&document.project, &format!("{}  {now}", line.id)),
            }
        }
        if let Some(bars) = &mut self.bars {
            bars.show_project(document);
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
        if self.paused.get(&document.project) == Some(&now) {
            return;
        }
        match &self.bars {
            Some(bars) => drop(bars.all.println(format!("  {now}"))),
            None => plain(&document.project, &now),
        }
        self.paused.insert(document.project.clone(), now);
    }

    /// Removes the bars.
    pub(in crate::command) fn finish(&mut self) {
        if let Some(bars) = self.bars.take() {
            for bar in bars.features.values().chain(bars.projects.values()) {
                bar.finish_and_clear();
            }
        }
    }
}

fn is_untouched(line: &FeatureLine) -> bool {
    line.run.is_none() && line.reason.is_none()
}

fn sentence(line: &FeatureLine) -> String {
    let detail = if line.passes { None } else { line.remark().or_else(|| line.step.clone()) };
    match detail {
        Some(detail) => format!("{}: {}", line.status, safe(&first_line(&detail))),
        None => line.status.to_string(),
    }
}

fn plain(project: &str, sentence: &str) {
    let time = chrono::Local::now().format("%H:%M:%S");
    term::say(format!("{time} {project} {sentence}"));
}

impl Bars {
    fn show_project(&mut self, document: &StatusDocument) {
        let bar = self.projects.entry(document.project.clone()).or_insert_with(|| {
            let style = ProgressStyle::with_template(
                "{prefix:.bold} [{bar:30}] {pos}/{len} passed{msg}  {elapsed}",
            );
            // A bar outside of the group would draw a line of its own.
            let bar = self.all.add(ProgressBar::new(document.counts.total as u64));
            bar.set_style(
                style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "),
            );
            bar.set_prefix(document.project.clone());
            bar
        });
        bar.set_length(document.counts.total as u64);
        bar.set_position(document.counts.passed as u64);
        let blocked = document.counts.blocked;
        bar.set_message(if blocked == 0 { String::new() } else { format!(", {blocked} blocked") });
    }

    fn show_feature(&mut self, project: &str, line: &FeatureLine, sentence: &str) {
        let key = (project.to_owned(), line.id.clone());
        if line.step.is_none() {
            if let Some(bar) = self.features.remove(&key) {
                bar.finish_and_clear();
            }
            let _ = self.all.println(format!("  {:<16} {sentence}", line.id));
            return;
        }
        let bar = self.features.entry(key).or_insert_with(|| {
            let style = ProgressStyle::with_template("  {spinner} {prefix:<16} {wide_msg}");
            let bar = self.all.add(ProgressBar::new_spinner());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(line.id.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(sentence.to_owned());
    }
}
