//! The built-in agent, on a scripted model.

mod failures;
mod faults;
mod hooks;
mod limits;
mod mcp;
mod once;
mod providers;
mod steered;

use std::path::Path;
use std::time::Duration;

use longhaul_model_server::{Answer, ModelServer, Options, Outcome, Paid, Part, Reply, Request};
use longhaul_tests::dice::Dice;
use longhaul_tests::project::{Plan, plain};
use serde_json::{Value, json};

use crate::world::World;

/// A project whose built-in agent speaks to a scripted model.
pub(super) struct Hosted {
    pub(super) world: World,
    pub(super) server: ModelServer,
}

impl Hosted {
    pub(super) fn new(
        plans: &[Plan],
        settings: &str,
        options: Options,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let server = ModelServer::start(options, script).unwrap();
        let world = World::new(plans, 0.0);
        let hosted = Self { world, server };
        hosted.configure(settings);
        hosted
    }

    /// Writes the settings, with the URL of the server.
    fn configure(&self, settings: &str) {
        let project = &self.world.project;
        let url = self.server.url();
        project.write(
            "longhaul.toml",
            &format!(
                "[agent]\ndriver = \"api\"\nmodel = \"scripted\"\nsandbox = \"off\"\n\
                 [agent.api]\nurl = \"{url}\"\n{settings}"
            ),
        );
        project.commit("The built-in agent");
    }

    pub(super) fn id(&self) -> String {
        crate::world::id_of(&self.world.project)
    }

    /// Checks in the log that the sessions of a run of a feature never worked at the same time: the
    /// calls of one end before those of the next begin.
    #[track_caller]
    fn check_owners(&self, feature_run: &str) {
        let mut last = (String::new(), String::new());
        let mut sessions = 0;
        loop {
            let session = format!("{feature_run}/{}", sessions + 1);
            let history = self.world.call(&format!("history {session} -o jsonl"));
            if history.code() != 0 {
                break;
            }
            sessions += 1;
            let events = history.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
            let calls: Vec<Value> = events.filter(is_work).collect();
            let times = |event: &Value| event["at"].as_str().unwrap_or_default().to_owned();
            let (Some(first), Some(end)) = (calls.first(), calls.last()) else { continue };
            assert!(times(first) > last.1, "{session} worked beside {}", last.0);
            last = (session, times(end));
        }
        assert!(sessions > 0, "{feature_run} has no session");
    }
}

/// Whether an event is a call of a model or of a tool, which only the owner of the work makes.
fn is_work(event: &Value) -> bool {
    let names = ["call_model", "use_tool"];
    event["name"].as_str().is_some_and(|name| names.contains(&name))
}

/// The number of results in a conversation, and so of the calls made.
pub(super) fn results(request: &Request) -> usize {
    request.parts().filter(|part| matches!(part, Part::Result(_))).count()
}

/// The feature of a conversation.
pub(super) fn feature(request: &Request) -> String {
    let prompt = request.parts().find_map(|part| match part {
        Part::Text(text) => text.split('`').nth(1).map(str::to_owned),
        _ => None,
    });
    prompt.unwrap_or_default()
}

/// Writes the file that the check wants, in three steps.
pub(super) fn works(request: &Request) -> Reply {
    let file = format!("{}.txt", feature(request));
    match results(request) {
        0 => Answer::text("I look first.").and_call("list", "{}").into(),
        1 => Answer::call("write", &json!({ "path": file, "content": "begun\n" })).into(),
        2 => {
            Answer::call("shell", &json!({ "command": format!("echo finished >> {file}") })).into()
        }
        _ => Answer::call("finish", &json!({ "summary": "It is written." })).into(),
    }
}

const PLANS: [Plan; 2] = [plain("parser", &[], 1), plain("table", &["parser"], 1)];

#[test]
fn the_built_in_agent_works_through_a_backlog() {
    let hosted = Hosted::new(&PLANS, "", Options::default(), works);
    hosted.world.run().exits(0).says("2 of 2 features pass");
    assert_eq!(hosted.server.count(Outcome::Answered), 8);
    assert_eq!(hosted.server.repeated(), Vec::<String>::new());
    assert_eq!(hosted.world.project.git(&["show", "main:table.txt"]), "begun\nfinished");

    let session = format!("{}/parser/1/1", hosted.id());
    let history = hosted.world.call(&format!("history {session}"));
    history.exits(0).says("scripted answered").says("write parser.txt");
    hosted.world.call(&format!("describe {session}")).exits(0);
    hosted.world.call("replay --all").exits(0).says("0 diverged");
    hosted.world.call("check").exits(0).says("no damage found");
}

/// Works in many steps, each with much output; counts them in a file of the tree, so that a fresh
/// session knows how far the work is.
pub(super) fn works_long(request: &Request) -> Reply {
    if let Some(Part::Text(last)) = request.turns.last().and_then(|turn| turn.parts.last())
        && last.starts_with("The context window is nearly full")
    {
        let summary =
            json!({ "objective": "Count to two hundred.", "next_steps": ["Go on counting."] });
        return Answer::call("summary", &summary).into();
    }
    let file = format!("{}.txt", feature(request));
    let step = format!(
        "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; echo step $n of 200; \
         head -c 2000 /dev/zero | tr '\\0' x; test $n -lt 200 || echo finished > {file}"
    );
    match request.parts().last() {
        Some(Part::Result(result)) if counted(result) >= 200 => {
            Answer::call("finish", &json!({ "summary": "Counted." })).into()
        }
        _ => Answer::call("shell", &json!({ "command": step })).into(),
    }
}

/// How far a result says that the work is.
fn counted(result: &str) -> u32 {
    result.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

pub(super) const SMALL: &str = "[agent.context]\nwindow = 8000\ncompactions = 1\n";

#[test]
fn a_small_window_costs_summaries_and_handoffs_and_loses_no_step() {
    let options = Options { window: Some(8000), ..Options::default() };
    let hosted = Hosted::new(&PLANS[..1], SMALL, options, works_long);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    let count = hosted.world.project.git(&["show", "main:count"]);
    assert!(
        ["200", "201"].contains(&count.as_str()),
        "{count}: a summary may take the last result"
    );
    let history = hosted.world.call(&format!("history {}/parser/1", hosted.id()));
    let handoffs = history.exits(0).stdout.matches("handoff_prepared").count();
    assert!(handoffs > 10, "{handoffs} handoffs");
    hosted.check_owners(&format!("{}/parser/1", hosted.id()));
    assert_eq!(hosted.server.repeated(), Vec::<String>::new());
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

/// Kills that are enough, unless `LONGHAUL_TEST_KILLS` asks for more.
const KILLS: usize = 30;

#[test]
fn kill_minus_9_costs_at_most_the_call_in_flight() {
    let wanted = std::env::var("LONGHAUL_TEST_KILLS").ok().and_then(|text| text.parse().ok());
    let wanted = wanted.unwrap_or(KILLS);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let whole = Killed::run(&mut |_| None);
    let mut total = Killed::default();
    while total.kills < wanted {
        let mut after = |kills| {
            assert!(kills < wanted + 500, "no end after {kills} kills");
            Some(Duration::from_millis(100 + dice.roll(900 + 20 * kills) as u64))
        };
        let killed = Killed::run(&mut after);
        assert_eq!(killed.files, whole.files, "the repositories are equal");
        total.kills += killed.kills;
        total.repeated += killed.repeated;
        total.tools += killed.tools;
        total.paid.tokens += killed.paid.tokens;
        total.paid.twice += killed.paid.twice;
        total.projects += 1;
    }
    let Killed { projects, kills, repeated, tools, paid, .. } = total;
    println!(
        "{kills} kills in {projects} projects: {repeated} answers requested again, each in flight \
         at a kill; {tools} tool calls, none twice; {} tokens paid, {} of them twice; equal \
         repositories",
        paid.tokens, paid.twice
    );
}

/// What a project with killed processes came to.
#[derive(Default)]
struct Killed {
    projects: usize,
    kills: usize,
    /// Answers that the server gave twice.
    repeated: usize,
    /// Tool calls that ran.
    tools: usize,
    paid: Paid,
    /// The files of the target branch, with their digests.
    files: String,
}

impl Killed {
    /// Runs a project to its end. Each process is killed after the time that `after` gives for the
    /// number of kills so far.
    fn run(after: &mut dyn FnMut(usize) -> Option<Duration>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let journal = place.path().join("journal");
        let written = journal.clone();
        let script = move |request: &Request| works_and_writes_down(request, &written);
        let options = Options { window: Some(8000), ..Options::default() };
        let hosted = Hosted::new(&PLANS, SMALL, options, script);
        let mut kills = 0;
        loop {
            let mut life = hosted.world.begin();
            let time = after(kills).unwrap_or(longhaul_tests::wait::PATIENCE);
            if let Some(status) = life.wait_for(time) {
                assert_eq!(status.code(), Some(0), "{}", life.output());
                break;
            }
            kills += usize::from(life.kill());
        }
        let runs = std::fs::read_to_string(&journal).unwrap();
        let mut runs: Vec<&str> = runs.lines().collect();
        let tools = runs.len();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(tools, runs.len(), "a tool call ran twice");
        let repeated = hosted.server.repeated().len();
        assert!(repeated <= kills, "{repeated} answers requested again after {kills} kills");
        hosted.world.call("replay --all").exits(0).says("0 diverged");
        hosted.world.call("check").exits(0).says("no damage found");
        let project = &hosted.world.project;
        assert_eq!(project.landed("main"), ["table", "parser"]);
        for feature in ["parser", "table"] {
            hosted.check_owners(&format!("{}/{feature}/1", hosted.id()));
        }
        let work = ["parser.txt", "table.txt", "parser.steps", "table.steps"];
        let files = project.git(&[&["ls-tree", "-r", "main", "--"][..], &work].concat());
        Self { projects: 1, kills, repeated, tools, paid: hosted.server.paid(), files }
    }
}

/// As [`works_long`], in fewer steps, each of which makes a file; each tool run appends the number
/// of its request to the journal.
fn works_and_writes_down(request: &Request, journal: &Path) -> Reply {
    if let Some(Part::Text(last)) = request.turns.last().and_then(|turn| turn.parts.last())
        && last.starts_with("The context window is nearly full")
    {
        return Answer::call("summary", &json!({ "objective": "Count to forty." })).into();
    }
    let file = format!("{}.txt", feature(request));
    let steps = format!("{}.steps", feature(request));
    let step = format!(
        "echo {} >> {}; mkdir -p {steps}; n=$(ls {steps} | wc -l); n=$((n+1)); \
         test $n -gt 40 || echo $n > {steps}/$n; echo step $n of 40; \
         head -c 1500 /dev/zero | tr '\\0' x; test $n -lt 40 || echo finished > {file}",
        request.number,
        journal.display(),
    );
    match request.parts().last() {
        Some(Part::Result(result)) if counted(result) >= 40 => {
            Answer::call("finish", &json!({ "summary": "Counted." })).into()
        }
        _ => Answer::call("shell", &json!({ "command": step })).into(),
    }
}
