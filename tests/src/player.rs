//! What scripted agents have in common, whatever protocol they speak: their arguments are
//! `DIRECTORY SCENARIO`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

/// A scripted agent.
#[derive(Debug)]
pub struct Player {
    directory: PathBuf,
    scenario: String,
    lines: io::Lines<io::StdinLock<'static>>,
}

impl Player {
    /// The agent of this process.
    pub fn of_this_process() -> Self {
        let mut args = std::env::args().skip(1);
        let directory = PathBuf::from(args.next().unwrap_or_default());
        let scenario = args.next().unwrap_or_default();
        Self { directory, scenario, lines: io::stdin().lines() }
    }

    /// The next line of the input, which is also written to DIRECTORY/requests; `None` at its end.
    pub fn hear(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        let requests = self.file("requests");
        let mut file = OpenOptions::new().create(true).append(true).open(requests).ok()?;
        writeln!(file, "{line}").ok()?;
        serde_json::from_str(&line).ok()
    }

    /// The scenario.
    pub fn scenario(&self) -> &str {
        &self.scenario
    }

    /// A file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Whether this session fills its window: the first one in the scenario `full`.
    pub fn is_to_fill(&self) -> bool {
        let was_full = self.file("was-full");
        let is = self.scenario == "full" && !was_full.exists();
        if is {
            fs::write(was_full, "").expect("it can be written");
        }
        is
    }

    /// Does the work of the feature, once DIRECTORY/held does not exist.
    pub fn work(&self) {
        fs::write("at-work", "").expect("the tree can be written");
        while self.file("held").exists() {
            sleep(Duration::from_millis(20));
        }
        let feature = std::env::var("LONGHAUL_FEATURE_ID").unwrap_or_default();
        fs::write(format!("{feature}.txt"), "finished\n").expect("the tree can be written");
    }
}
