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
