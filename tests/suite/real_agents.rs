//! Known agents as they are published, on the scripted model: `tests/real-agents` installs them and
//! runs these tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul_model_server::{
    Answer, Fault, ModelServer, Options, Outcome, Overflow, Part, Protocol, Reply, Request,
};
use longhaul_tests::project::{Plan, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::World;

/// The directory with the programs.
const PROGRAMS: &str = "LONGHAUL_REAL_AGENTS";
/// An address where no proxy is: a program that looks for another server finds none.
const NO_PROXY: &str = "http://127.0.0.1:9";
const PLANS: [Plan; 2] = [plain("parser", &[], 1), plain("table", &["parser"], 1)];

/// An agent and its settings for the scripted model at a URL.
struct Agent {
    name: &'static str,
    settings: fn(url: &str) -> String,
    /// Its directories in the home directory.
    state: &'static [&'static str],
}

const CLAUDE: Agent = Agent {
    name: "claude",
    settings: |url| {
        format!(
            "model = \"claude-sonnet-4-5\"\n[agent.env]\nANTHROPIC_API_KEY = \"dummy\"\n\
             ANTHROPIC_BASE_URL = \"{url}\"\nCLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\"\n"
        )
    },
    state: &[".claude"],
};

const CODEX: Agent = Agent {
    name: "codex",
    settings: |url| {
        format!(
            "model = \"scripted\"\nsandbox = \"off\"\nargs = [\"-c\", \"model_provider=scripted\", \
             \"-c\", '''model_providers.scripted={{name=\"scripted\", base_url=\"{url}/v1\", \
             env_key=\"SCRIPTED_KEY\", wire_api=\"responses\"}}''']\n\
             [agent.env]\nSCRIPTED_KEY = \"dummy\"\n"
        )
    },
    state: &[".codex"],
};

/// Codex without its own sandbox, in that of Longhaul.
const CONFINED_CODEX: Agent = Agent {
    settings: |url| {
        let own = "sandbox = \"off\"\nargs = [";
        let settings = (CODEX.settings)(url);
        assert!(settings.contains(own), "{settings}");
        settings.replace(own, "args = [\"--sandbox\", \"danger-full-access\", ")
    },
    ..CODEX
};

const OPENCODE: Agent = Agent {
    name: "opencode",
    settings: |url| {
        let model = json!({ "limit": { "context": 128_000, "output": 8192 } });
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": "dummy" },
            "models": { "scripted": model },
        });
        let config = json!({
            "share": "disabled", "compaction": { "auto": false }, "provider": { "local": provider },
        });
        format!(
            "model = \"local/scripted\"\n[agent.env]\nOPENCODE_CONFIG_CONTENT = '''{config}'''\n\
             OPENCODE_DISABLE_MODELS_FETCH = \"1\"\nOPENCODE_DISABLE_LSP_DOWNLOAD = \"1\"\n\
             OPENCODE_DISABLE_DEFAULT_PLUGINS = \"1\"\n"
        )
    },
    state: &[".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache"],
};

/// opencode, by the Agent Client Protocol.
const ACP: Agent = Agent {
    name: "acp",
    settings: |url| {
        let command = r#"["opencode", "acp", "--print-logs", "--log-level", "ERROR"]"#;
        format!("command = {command}\n{}", (OPENCODE.settings)(url))
    },
    state: OPENCODE.state,
};

/// Claude Code, by its adapter for the Agent Client Protocol.
const CLAUDE_ACP: Agent = Agent {
    name: "acp",
    settings: |url| {
        let settings = (CLAUDE.settings)(url).replace("model = \"claude-sonnet-4-5\"\n", "");
        format!("command = [\"claude-agent-acp\"]\n{settings}")
    },
    ..CLAUDE
};

/// Codex, by its adapter for the Agent Client Protocol, in the sandbox of Longhaul.
const CODEX_ACP: Agent = Agent {
    name: "acp",
    settings: |url| {
        let provider = json!({
            "name": "scripted", "base_url": format!("{url}/v1"), "env_key": "SCRIPTED_KEY",
            "wire_api": "responses",
        });
        let config = json!({ "model": "scripted", "model_providers": { "scripted": provider } });
        format!(
            "command = [\"codex-acp\"]\n[agent.env]\nSCRIPTED_KEY = \"dummy\"\n\
             MODEL_PROVIDER = \"scripted\"\nINITIAL_AGENT_MODE = \"agent-full-access\"\n\
             CODEX_CONFIG = '''{config}'''\n"
        )
    },
    ..CODEX
};

/// A project whose agent speaks to the scripted model, with a home directory of its own.
struct Real {
    world: World,
    server: ModelServer,
    _home: TempDir,
}

impl Real {
    fn new(
        agent: &Agent,
        plans: &[Plan],
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let programs = std::env::var(PROGRAMS)
            .unwrap_or_else(|_| panic!("{PROGRAMS} is not set: run tests/real-agents"));
        let server = ModelServer::start(Options::default(), script).unwrap();
        let mut world = World::new(plans, 0.0);
        // Codex starts no sandbox with a home among temporary files.
        let place = Path::new(&programs).ancestors().nth(2).unwrap();
        let person = tempfile::tempdir_in(place).unwrap();
        let home = person.path();
        for directory in agent.state {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        fs::write(home.join(".claude.json"), "{}").unwrap();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let variables = [
            ("PATH", path.as_str()),
            ("HOME", home.to_str().unwrap()),
            ("HTTP_PROXY", NO_PROXY),
            ("HTTPS_PROXY", NO_PROXY),
            ("NO_PROXY", "127.0.0.1,localhost"),
        ];
        for (name, value) in variables {
            world.longhaul = world.longhaul.with(name, value);
        }
        let settings = (agent.settings)(&server.url());
        let driver = agent.name;
        world
            .project
            .write("longhaul.toml", &format!("[agent]\ndriver = \"{driver}\"\n{settings}"));
        world.project.commit("A known agent");
        Self { world, server, _home: person }
    }

    /// The sessions of the feature `parser`, the first one first.
    fn sessions(&self) -> Vec<Value> {
        let list = self.world.json("session list parser");
        list["sessions"].as_array().unwrap().clone()
    }

    /// The place of a file in the work tree of `parser`, once it is there.
    fn in_tree(&self, file: &str) -> Option<PathBuf> {
        let trees = fs::read_dir(self.world.project.home().join("worktrees")).ok()?;
        let files = trees.flatten().map(|tree| tree.path().join("parser").join(file));
        files.into_iter().find(|file| file.exists())
    }

    /// The project has passed, and its log is whole.
    #[track_caller]
    fn passes(&self, features: usize) {
        let passed = format!("{features} of {features} features pass");
        self.world.run().exits(0).says(&passed);
        let text = self.world.project.git(&["show", "main:parser.txt"]);
        assert!(text.ends_with("finished"), "{text}");
        self.world.call("replay --all").exits(0).says("0 diverged");
        assert_eq!(self.world.longhaul.left_over(), Vec::<String>::new());
    }

    /// One session did all the work, in one conversation that was resumed.
    #[track_caller]
    fn has_one_conversation(&self) {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:#?}");
        self.world.project.git(&["cat-file", "-e", "main:resumed"]);
    }
}

/// Whether a text is a prompt of Longhaul.
fn is_prompt(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.contains("one feature of this project")
        || text.contains("# Session resumed"))
}

/// The results of tools since the last prompt.
fn step(request: &Request) -> usize {
    let parts: Vec<&Part> = request.parts().collect();
    let prompt = parts.iter().rposition(|part| is_prompt(part)).unwrap_or_default();
    parts[prompt..].iter().filter(|part| matches!(part, Part::Result(_))).count()
}

/// A call of the tool that runs a command.
fn shell(request: &Request, command: &str) -> Reply {
    let named = |name: &str| request.tools.iter().find(|tool| *tool == name);
    let described = json!({ "command": command, "description": "a step" });
    let call = match request.protocol {
        Protocol::Responses if named("exec_command").is_none() => {
            // Code that calls a tool.
            let input = json!({ "cmd": command });
            let code =
                format!("const r = await tools.exec_command({input}); text(r.output ?? \"\");");
            Answer::default().and_call("exec", &code)
        }
        Protocol::Responses => Answer::call("exec_command", &json!({ "cmd": command })),
        Protocol::Anthropic => Answer::call("Bash", &described),
        Protocol::OpenAi => Answer::call("bash", &described),
    };
    call.into()
}

/// Makes the file of the feature in two steps.
fn works(request: &Request) -> Reply {
    let is_for =
        |id: &str| request.mentions(&format!("{id}.txt")) || request.mentions(&format!("`{id}`"));
    let file = if is_for("table") { "table.txt" } else { "parser.txt" };
    match (request.tools.is_empty(), step(request)) {
        (true, _) => Answer::text("A title").into(),
        (_, 0) => shell(request, &format!("echo begun > {file}")),
        (_, 1) => shell(request, &format!("echo finished >> {file}")),
        _ => Answer::text("It is written.").into(),
    }
}

/// Tests of a scenario, one for each agent.
macro_rules! with_each_agent {
    ($($scenario:ident),+) => {$(
        mod $scenario {
            #[test]
            #[ignore = "needs published agents: run tests/real-agents"]
            fn claude() {
                super::$scenario(&super::CLAUDE);
            }

            #[test]
            #[ignore = "needs published agents: run tests/real-agents"]
            fn codex() {
                super::$scenario(&super::CODEX);
            }

            #[test]
            #[ignore = "needs published agents: run tests/real-agents"]
            fn opencode() {
                super::$scenario(&super::OPENCODE);
            }

            #[test]
            #[ignore = "needs published agents: run tests/real-agents"]
            fn acp() {
                super::$scenario(&super::ACP);
            }
        }
    )+};
}

with_each_agent!(completes, overflows, waits_for_its_provider, resumes_after_kill, needs_a_login);

fn completes(agent: &Agent) {
    let real = Real::new(agent, &PLANS, works);
    real.world.call("doctor .").exits(0).says("is there, version");
    real.passes(2);
    let sessions = real.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:#?}");
    let session = &sessions[0];
    assert_eq!(
        (&session["driver"], &session["state"]),
        (&agent.name.into(), &"claims_done".into())
    );
    for kind in ["input", "cache_read", "output"] {
        assert!(session["tokens"][kind].as_u64().is_some(), "{session:#}");
    }
    assert!(session["tokens"]["output"].as_u64() > Some(0), "{session:#}");
    let logs = real.world.call("logs parser");
    logs.exits(0).says("echo finished >> parser.txt").says("It is written.");
}

/// A full window ends the session, and a fresh one continues in the work tree.
fn overflows(agent: &Agent) {
    let is_full = AtomicBool::new(true);
    let script = move |request: &Request| {
        let is_refused = step(request) == 1 && is_full.swap(false, Ordering::SeqCst);
        if is_refused { full(request) } else { works(request) }
    };
    let real = Real::new(agent, &PLANS[..1], script);
    real.passes(1);
    let sessions = real.sessions();
    let states: Vec<_> = sessions.iter().map(|session| session["state"].clone()).collect();
    assert_eq!(states, ["context_full", "claims_done"], "{sessions:#?}");
}

#[test]
#[ignore = "needs published agents: run tests/real-agents"]
fn claude_completes_by_acp() {
    completes(&CLAUDE_ACP);
}

#[test]
#[ignore = "needs published agents: run tests/real-agents"]
fn codex_completes_by_acp() {
    completes(&CODEX_ACP);
}

#[test]
#[ignore = "needs published agents: run tests/real-agents"]
fn codex_completes_in_the_sandbox_of_longhaul() {
    completes(&CONFINED_CODEX);
}

/// A window that this prompt nearly fills ends the turn between two actions, and a fresh session
/// continues.
fn hands_over(agent: &Agent, tokens: u64) {
    let is_filling = AtomicBool::new(true);
    let script = move |request: &Request| match works(request) {
        Reply::Answer(answer)
            if !request.tools.is_empty() && is_filling.swap(false, Ordering::SeqCst) =>
        {
            answer.of_prompt(tokens).into()
        }
        reply => reply,
    };
    let real = Real::new(agent, &PLANS[..1], script);
    real.passes(1);
    let sessions = real.sessions();
    let states: Vec<_> = sessions.iter().map(|session| session["state"].clone()).collect();
    assert_eq!(states, ["context_full", "claims_done"], "{sessions:#?}");
    assert!(sessions[0]["window_share"].as_f64() > Some(0.9), "{sessions:#?}");
    assert_eq!(real.server.count(Outcome::Refused), 0);
}

#[test]
#[ignore = "needs published agents: run tests/real-agents"]
fn claude_hands_over() {
    hands_over(&CLAUDE, 190_000);
}

#[test]
#[ignore = "needs published agents: run tests/real-agents"]
fn codex_hands_over() {
    hands_over(&CODEX, 240_000);
}

/// The refusal of a conversation that does not fit.
fn full(request: &Request) -> Reply {
    let form = match request.protocol {
        Protocol::Anthropic => Overflow::PromptTooLong,
        Protocol::OpenAi | Protocol::Responses => Overflow::OpenAi,
    };
    Fault::Overflow(form).into()
}

/// A limited rate ends the process of the agent, and the same conversation goes on later.
fn waits_for_its_provider(agent: &Agent) {
    let is_limited = Arc::new(AtomicBool::new(true));
    let limited = Arc::clone(&is_limited);
    let script = move |request: &Request| {
        let is_refused = step(request) == 1 && limited.load(Ordering::SeqCst);
        if is_refused { Fault::RateLimited(None).into() } else { goes_on(request) }
    };
    let real = Real::new(agent, &PLANS[..1], script);
    let output = real.world.call("run --once -o json .");
    assert!(output.exits(3).json()["next_due"].is_string(), "{}", output.stdout);
    real.world.call("why parser").exits(0).says("the provider limits the rate of requests");
    assert_eq!(real.world.longhaul.left_over(), Vec::<String>::new());
    is_limited.store(false, Ordering::SeqCst);
    real.passes(1);
    real.has_one_conversation();
}

/// Works as [`works`]. A conversation that is resumed with its first call does only what is left.
fn goes_on(request: &Request) -> Reply {
    let is_first =
        |part: &Part| matches!(part, Part::Call { input, .. } if input.contains("begun"));
    let is_whole = request.parts().any(is_first);
    match (request.mentions("# Session resumed"), step(request)) {
        (false, _) => works(request),
        (true, 0) if is_whole => shell(request, "echo finished >> parser.txt; touch resumed"),
        (true, _) => Answer::text("It is written.").into(),
    }
}

/// `kill -9` of Longhaul in a tool call: all processes end, and the conversation goes on.
fn resumes_after_kill(agent: &Agent) {
    let script = |request: &Request| {
        if step(request) == 1 && !request.mentions("# Session resumed") {
            return shell(request, "touch hangs; while test -e hangs; do sleep 0.1; done");
        }
        goes_on(request)
    };
    let real = Real::new(agent, &PLANS[..1], script);
    let mut run = real.world.begin();
    until("the tool runs", || real.in_tree("hangs").is_some());
    assert!(run.kill(), "{}", run.output());
    until("all processes have ended", || real.world.longhaul.left_over().is_empty());
    real.passes(1);
    real.has_one_conversation();
}

/// A refused key is reported with its remedy, and no further session is tried at once.
fn needs_a_login(agent: &Agent) {
    let mut real = Real::new(agent, &PLANS[..1], |_| Fault::Unauthorized.into());
    real.world.longhaul = real.world.longhaul.with("LONGHAUL_MACHINE_WAIT", "1");
    real.world.run().exits(4).says("not logged in");
    assert_eq!(real.server.count(Outcome::Answered), 0);
}
