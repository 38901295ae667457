//! A project with a scripted agent that speaks a protocol, and writes down the lines that it gets.

use std::fs;
use std::path::PathBuf;

use longhaul_tests::project::{Plan, plain};
use serde_json::Value;

use crate::world::World;

pub(crate) const PLANS: [Plan; 1] = [plain("parser", &[], 1)];

/// A project of which the agent plays a scenario.
pub(crate) struct Played {
    pub(crate) world: World,
    pub(crate) directory: PathBuf,
}

impl Played {
    /// A project with the program of an agent, and further settings of `[agent]`.
    pub(crate) fn new(driver: &str, agent: &str, scenario: &str, settings: &str) -> Self {
        let world = World::new(&PLANS, 0.0);
        let directory = world.project.place().join("agent");
        fs::create_dir(&directory).unwrap();
        let place = directory.display();
        world.project.write(
            "longhaul.toml",
            &format!(
                "[agent]\ndriver = \"{driver}\"\ncommand = ['{agent}', '{place}', '{scenario}']\n\
                 write = ['{place}']\n{settings}\n[limits]\nfailed_sessions = 1\n"
            ),
        );
        world.project.commit("An agent");
        Self { world, directory }
    }

    /// The lines that the agent got.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.directory.join("requests")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The methods of these lines, but for answers.
    pub(crate) fn methods(&self) -> Vec<String> {
        let requests = self.requests();
        let methods = requests.iter().filter_map(|request| request["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn is_at_work(&self) -> bool {
        let trees = fs::read_dir(self.world.project.home().join("worktrees")).into_iter().flatten();
        trees.flatten().any(|tree| tree.path().join("parser/at-work").exists())
    }

    /// The states of the sessions of the feature.
    pub(crate) fn states(&self) -> Vec<Value> {
        let sessions = self.world.json("session list parser");
        sessions["sessions"].as_array().unwrap().iter().map(|it| it["state"].clone()).collect()
    }

    /// The project has passed, its log is whole, and no process is left.
    #[track_caller]
    pub(crate) fn passes(&self) {
        self.world.run().exits(0).says("1 of 1 features pass");
        self.is_whole();
    }

    #[track_caller]
    pub(crate) fn is_whole(&self) {
        self.world.call("replay --all").exits(0).says("0 diverged");
        assert_eq!(self.world.longhaul.left_over(), Vec::<String>::new());
    }

    /// The feature is blocked, with this reason in its session.
    #[track_caller]
    pub(crate) fn fails(&self, reason: &str) {
        self.world.run().exits(1);
        self.world.call("session show parser").exits(0).says(reason);
        self.is_whole();
    }
}
