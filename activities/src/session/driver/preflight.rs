//! Checks of an agent that cost nothing: its program, its version, its login. No model is called,
//! and no key is read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use longhaul_workflows::settings::{AgentSettings, Driver};
use tokio::process::Command;

use crate::confine;
use crate::obstacle::{Obstacle, find, why_not};
use crate::process::Environment;

use super::environment::{AgentEnvironment, environment};
use super::handshake::handshake;
use super::{AgentDriver, codex, of};

/// How long a program may take to print its version.
const LONGEST: Duration = Duration::from_secs(20);
/// The longest version, in characters.
const SHOWN: usize = 60;

/// The findings about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preflight {
    /// The program; `None`: no agent is set.
    pub program: Option<String>,
    /// Why the program cannot be started: `is not there`.
    pub problem: Option<&'static str>,
    /// The version of a known agent.
    pub version: Option<String>,
    /// The missing login.
    pub login: Option<Obstacle>,
}

/// Checks the agent of a project at `root`.
pub async fn preflight(root: &Path, agent: &AgentSettings) -> Preflight {
    let driver = of(agent.driver);
    let named = agent.command.first().filter(|program| !program.is_empty());
    let Some(program) = named.cloned().or_else(|| Some(driver?.name().to_owned())) else {
        return Preflight::default();
    };
    let problem = why_not(root, &program);
    let mut found = Preflight { program: Some(program), problem, ..Preflight::default() };
    if let (Some(driver), None) = (driver, problem) {
        let env = environment(driver, agent);
        if driver.abilities().has_version {
            found.version = version(driver, agent, root, &env).await;
        } else {
            match handshake(driver, agent, root, &env).await {
                Ok(version) => found.version = version,
                Err(problem) => found.problem = Some(problem),
            }
        }
        let given = AgentEnvironment { agent, env };
        let first_start = driver.first_start(&given);
        if !first_start.is_empty()
            && let Some(file) = program_file(driver, agent, root)
        {
            // It says itself what fails, in its session.
            let _ = output_of(&file, first_start, root, &given.env).await;
        }
        found.login = (driver.is_logged_in(&given) == Some(false))
            .then(|| Obstacle::new(format!("{}: not logged in", driver.name()), driver.login()));
    }
    found
}

/// A setting without which no session of the agent can succeed.
pub fn settings_problem(agent: &AgentSettings) -> Option<Obstacle> {
    match agent.driver {
        Driver::Api => {
            let name = agent.api.key_name();
            let has_key = agent.env.contains_key(name)
                || std::env::var_os(name).is_some_and(|value| !value.is_empty());
            if agent.model.as_deref().is_none_or(str::is_empty) {
                let problem = "the driver `api` needs a model";
                return Some(Obstacle::new(problem, "set `model` under [agent]"));
            }
            (agent.api.url.is_none() && !has_key).then(|| {
                Obstacle::new(
                    format!("the variable {name} with the key of the model is not set"),
                    "export it, or set `url` under [agent.api] for a server without a key",
                )
            })
        }
        Driver::Acp if agent.command.first().is_none_or(String::is_empty) => {
            let problem = "the driver `acp` needs the command of an agent";
            let advice = "set it under [agent], for example command = [\"opencode\", \"acp\"]";
            Some(Obstacle::new(problem, advice))
        }
        // codex starts its own sandbox for each command, which fails inside another one: it would
        // end its paid session without a single command.
        Driver::Codex
            if !codex::has_no_sandbox(&agent.args)
                && confine::level(agent.sandbox).is_ok_and(|level| level.is_some()) =>
        {
            Some(Obstacle::new(
                "codex cannot start its own sandbox inside the sandbox of Longhaul",
                "choose one: `sandbox = \"off\"` under [agent] keeps that of codex, \
                 `args = [\"--sandbox\", \"danger-full-access\"]` keeps that of Longhaul",
            ))
        }
        _ => None,
    }
}

/// Known versions, by program and the time of its last change.
static VERSIONS: LazyLock<Mutex<Versions>> = LazyLock::new(Mutex::default);

type Versions = BTreeMap<(PathBuf, Option<SystemTime>), String>;

/// The version of a known agent, asked from its program once.
pub(in crate::session) async fn version(
    driver: &dyn AgentDriver,
    agent: &AgentSettings,
    root: &Path,
    env: &Environment,
) -> Option<String> {
    if !driver.abilities().has_version {
        return None;
    }
    let file = program_file(driver, agent, root)?;
    let changed = fs::metadata(&file.path).and_then(|data| data.modified()).ok();
    let key = (file.path.clone(), changed);
    let versions = || VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = versions().get(&key) {
        return Some(known.clone());
    }
    let text = output_of(&file, &["--version"], root, env).await?;
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
    let found = line.split_whitespace().find(is_number)?;
    let found: String = found.chars().take(SHOWN).collect();
    versions().insert(key, found.clone());
    Some(found)
}

/// The file of a program, and the arguments before those of its driver.
struct ProgramFile {
    path: PathBuf,
    args: Vec<OsString>,
}

fn program_file(
    driver: &dyn AgentDriver,
    agent: &AgentSettings,
    root: &Path,
) -> Option<ProgramFile> {
    let (program, args) = super::program(driver, agent, root).ok()?;
    let path = if program.as_encoded_bytes().contains(&b'/') {
        PathBuf::from(&program)
    } else {
        find(program.to_str()?)?
    };
    Some(ProgramFile { path, args })
}

/// The output of a program that ends by itself.
async fn output_of(
    program: &ProgramFile,
    args: &[&str],
    root: &Path,
    env: &Environment,
) -> Option<String> {
    let output = Command::new(&program.path)
        .args(&program.args)
        .args(args)
        .current_dir(root)
        .env_clear()
        .envs(env.iter())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LONGEST, output).await.ok()?.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
