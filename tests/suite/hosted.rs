//! The built-in agent, on a scripted model.

use longhaul_model_server::{Answer, ModelServer, Options, Outcome, Part, Reply, Request};
use longhaul_tests::project::{Plan, plain};
use serde_json::json;

use crate::world::World;

/// A project whose built-in agent speaks to a scripted model.
struct Hosted {
    world: World,
    server: ModelServer,
}

impl Hosted {
    fn new(
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

    fn id(&self) -> String {
        crate::world::id_of(&self.world.project)
    }
}

/// The number of results in a conversation, and so of the calls made.
fn results(request: &Request) -> usize {
    request.parts().filter(|part| matches!(part, Part::Result(_))).count()
}

/// The feature of a conversation.
fn feature(request: &Request) -> String {
    let prompt = request.parts().find_map(|part| match part {
        Part::Text(text) => text.split('`').nth(1).map(str::to_owned),
        _ => None,
    });
    prompt.unwrap_or_default()
}

/// Writes the file that the check wants, in three steps.
fn works(request: &Request) -> Reply {
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
    hosted.world.call("check").exits(0).says("whole");
}

/// Works in many steps, each with much output; counts them in a file of the tree, so that a fresh
/// session knows how far the work is.
fn works_long(request: &Request) -> Reply {
    if let Some(Part::Text(last)) = request.turns.last().and_then(|turn| turn.parts.last())
        && last.starts_with("The context window is nearly full")
    {
        let summary = json!({ "objective": "Count to two hundred.", "next_steps": ["Go on counting."] });
        return Answer::call("summary", &summary).into();
    }
    let file = format!("{}.txt", feature(request));
    let step = format!(
        "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; echo step $n of 200; \
         head -c 2000 /dev/zero | tr '\\0' x; test $n -lt 200 || echo finished > {file}"
    );
    match request.parts().last() {
        Some(Part::Result(result)) if result.starts_with("step 40 of 200") => {
            Answer::call("finish", &json!({ "summary": "Counted." })).into()
        }
        _ => Answer::call("shell", &json!({ "command": step })).into(),
    }
}

const SMALL: &str = "[agent.context]\nwindow = 8000\ncompactions = 1\n";

#[test]
fn a_small_window_costs_summaries_and_handoffs_and_loses_no_step() {
    let options = Options { window: Some(8000), ..Options::default() };
    let hosted = Hosted::new(&PLANS[..1], SMALL, options, works_long);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:count"]), "200");
    let history = hosted.world.call(&format!("history {}/parser/1", hosted.id()));
    let handoffs = history.exits(0).out.matches("handoff_prepared").count();
    assert!(handoffs > 10, "{handoffs} handoffs");
    assert_eq!(hosted.server.repeated(), Vec::<String>::new());
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}
