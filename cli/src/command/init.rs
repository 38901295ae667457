//! `longhaul init`: writes the first files of a project.

mod known;
mod shell_words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_activities::git;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Init, Output};
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::advice;

const SETTINGS: &str = include_str!("init/longhaul.toml");
const SETUP: &str = include_str!("init/init.sh");

/// The result of an init.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct InitDocument {
    /// The project.
    dir: PathBuf,
    /// Whether a git repository was created.
    made_repository: bool,
    /// The files that were written.
    written: Vec<&'static str>,
    /// The existing files, which were left unchanged.
    kept: Vec<&'static str>,
    /// Whether the files were committed.
    committed: bool,
}

pub(super) async fn run(arguments: &Init) -> Result<Exit> {
    let dir = &arguments.dir;
    let agent = arguments.agent.as_deref().map(shell_words::of).transpose().map_err(usage)?;
    let known = agent.as_deref().map(known::of).transpose().map_err(usage)?.flatten();
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("cannot use {}", dir.display()))?;
    let made_repository = git::make_repository(&dir).await.map_err(usage)?;
    if made_repository {
        term::say(format!("made a git repository in {}", dir.display()));
    }
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let list =
        serde_json::to_string_pretty(&serde_json::json!({ "project_name": name, "features": [] }))?;
    let files = [
        ("longhaul.toml", settings(agent.as_deref(), known)?, false),
        ("feature_list.json", list + "\n", false),
        ("init.sh", SETUP.to_owned(), true),
    ];
    let mut written = Vec::new();
    let mut kept = Vec::new();
    let mut is_agent_named = agent.is_some();
    for (file, text, is_program) in files {
        if write_new(&dir.join(file), &text, is_program)? {
            term::say(format!("wrote {file}"));
            written.push(file);
        } else {
            term::say(format!("{file} is there already: left as it is"));
            kept.push(file);
            is_agent_named &= file != "longhaul.toml";
        }
    }
    let is_first = !git::has_commit(&dir).await.map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let committed = !written.is_empty() && !arguments.no_commit;
    if committed {
        let subject = "Set up Longhaul";
        git::commit_files(&dir, &written, subject)
            .await
            .map_err(|failure| anyhow::anyhow!("{failure}"))?;
        term::say(format!("committed {} as \"{subject}\"", written.join(", ")));
    } else if is_first {
        term::say("this repository has no commit yet: make one before it can run");
    }
    let name_it = match &agent {
        None => "name your agent in longhaul.toml, ".to_owned(),
        Some(_) if is_agent_named => String::new(),
        Some(agent) => {
            let line = match known {
                Some(known) => known.settings(agent).replace('\n', "` and `"),
                None => format!("command = {}", serde_json::to_string(agent)?),
            };
            format!("write `{line}` below [agent] in longhaul.toml, ")
        }
    };
    let add = ["feature", "add", "ID", "NAME", "--check", "COMMAND", "--dir"];
    let add = advice::command(add.into_iter().chain([&*dir.to_string_lossy()]));
    term::say(format!("next: {name_it}add features with {add}, then {}", advice::run(&dir)));
    if arguments.output == Output::Json {
        document::print(InitDocument { dir, made_repository, written, kept, committed })?;
    }
    Ok(Exit::Ok)
}

/// The settings, with the agent if it was given.
fn settings(agent: Option<&[String]>, known: Option<known::Known>) -> Result<String> {
    let Some(agent) = agent else { return Ok(SETTINGS.to_owned()) };
    let Some(known) = known else {
        let command = serde_json::to_string(agent)?;
        return Ok(SETTINGS.replace("command = []", &format!("command = {command}")));
    };
    let settings = SETTINGS.replace("command = []", &known.settings(agent));
    if known.key_variables.is_empty() {
        return Ok(settings);
    }
    let names = serde_json::to_string(known.key_variables)?;
    Ok(settings.replace("# pass_env = [\"ANTHROPIC_API_KEY\"]", &format!("pass_env = {names}")))
}

/// Writes a file unless it exists.
fn write_new(path: &Path, text: &str, is_program: bool) -> Result<bool> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if is_program { 0o755 } else { 0o644 };
    let mut file = match fs::File::options().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
    };
    std::io::Write::write_all(&mut file, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}
