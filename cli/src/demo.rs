//! `longhaul demo`: a small real project with a backlog and a scripted agent.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use longhaul_model_server::{ModelServer, Options};
use longhaul_workflows::settings::{Driver, Settings};

mod model;
mod template;

use template::TEMPLATE;

/// Number of features in the demo project.
pub(crate) const FEATURES: usize = 12;

const SETTINGS: &str = "longhaul.toml";

/// The window of the scripted model in tokens.
const WINDOW: u64 = 4200;

const MARKER: &str = "longhaul.demo";

/// Creates the demo project in `dir` with one commit; leaves an existing one unchanged.
///
/// With the URL of a model, the built-in agent works on it. It is created next to `dir` and renamed
/// when complete, so that `dir` is never partial.
pub(crate) fn create(dir: &Path, url: Option<&str>) -> anyhow::Result<()> {
    needs("git", "it keeps the project and the work on it")?;
    needs("cargo", "the demo project is written in Rust; see https://rustup.rs")?;
    needs("rustc", "the demo project is written in Rust; see https://rustup.rs")?;
    let place = absolute(dir)?;
    if !is_free(&place)? {
        ensure!(
            is_demo(&place),
            "{} is there already and is not a demo project: choose a directory that is new or \
             empty",
            dir.display()
        );
        return Ok(());
    }
    let draft = draft_of(&place)?;
    remove(&draft)?;
    write_files(&draft, url)?;
    commit(&draft)?;
    // The rename also replaces an empty directory.
    fs::rename(&draft, &place)
        .with_context(|| format!("cannot move the demo project to {}", place.display()))
}

/// The settings of the demo project with the built-in agent, whose window is small: one feature
/// takes several sessions.
fn with_model(settings: &str, url: &str) -> String {
    let (before, rest) = settings.split_once("[agent]").unwrap_or((settings, ""));
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    format!(
        "{before}[agent]\n\
         driver = \"api\"                            # Longhaul's own agent\n\
         model = \"scripted\"\n\n\
         [agent.api]\n\
         url = \"{url}\"            # no model is behind it: `longhaul demo` plays one\n\n\
         [agent.context]\n\
         window = {WINDOW}                             # tokens; small, so that sessions \
         hand over\n\
         compact_at = 0.65\nhandoff_at = 0.65\ncompactions = 0\n\n{after}"
    )
}

/// Plays the model of a demo project with the built-in agent, new or begun; `None` if it has the
/// scripted command.
pub(crate) fn model(dir: &Path, is_wanted: bool) -> anyhow::Result<Option<ModelServer>> {
    let known = fs::read_to_string(dir.join(SETTINGS)).ok();
    let settings = known.and_then(|text| toml::from_str::<Settings>(&text).ok());
    let agent = settings.map(|settings| settings.agent);
    let address = match &agent {
        Some(agent) if agent.driver == Driver::Api => {
            let url = agent.api.url.as_deref().unwrap_or_default();
            url.trim_start_matches("http://").to_owned()
        }
        Some(_) if is_wanted => bail!(
            "{} is a demo with the scripted command: choose a directory that is new",
            dir.display()
        ),
        None if is_wanted => "127.0.0.1:0".to_owned(),
        _ => return Ok(None),
    };
    let listener = TcpListener::bind(&address)
        .with_context(|| format!("the model of the demo needs {address}, which is in use"))?;
    let options = Options { window: Some(WINDOW), ..Options::default() };
    Ok(Some(ModelServer::serve(listener, options, model::reply)?))
}

/// Makes a path absolute and creates its parent.
fn absolute(dir: &Path) -> anyhow::Result<PathBuf> {
    let unusable = || format!("cannot make a project in {}", dir.display());
    if let Ok(place) = dir.canonicalize() {
        let here =
            std::env::current_dir().and_then(|here| here.canonicalize()).with_context(unusable)?;
        ensure!(
            place != here || is_demo(&place),
            "the demo project cannot take the place of the current directory: name one to be made"
        );
        return Ok(place);
    }
    let place = std::path::absolute(dir).with_context(unusable)?;
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { bail!(unusable()) };
    fs::create_dir_all(parent).with_context(unusable)?;
    Ok(parent.canonicalize().with_context(unusable)?.join(name))
}

/// Whether the path is free: missing, or an empty directory.
fn is_free(place: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(place) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", place.display())),
    }
}

fn is_demo(place: &Path) -> bool {
    // With this name git does not search parent directories for a repository.
    let repository = format!("--git-dir={}", place.join(".git").display());
    let read =
        git(place).args([&repository, "config", "--local", "--get", "--bool", MARKER]).output();
    read.is_ok_and(|read| read.status.success() && read.stdout.trim_ascii() == b"true")
}

/// The temporary place of the project, in the same directory so that a rename works. An existing
/// one is left from a killed demo.
fn draft_of(place: &Path) -> anyhow::Result<PathBuf> {
    let name = place
        .file_name()
        .with_context(|| format!("cannot make a project in {}", place.display()))?;
    Ok(place.with_file_name(format!(".{}.longhaul-demo", name.to_string_lossy())))
}

fn remove(draft: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", draft.display()))
        }
        _ => Ok(()),
    }
}

fn write_files(draft: &Path, url: Option<&str>) -> anyhow::Result<()> {
    for (path, content) in TEMPLATE {
        let file = draft.join(path);
        let settings = url.filter(|_| *path == SETTINGS).map(|url| with_model(content, url));
        let content = settings.as_deref().unwrap_or(content);
        let written = file
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&file, content));
        let written = written.and_then(|()| {
            if content.starts_with("#!/") { make_executable(&file) } else { Ok(()) }
        });
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_file: &Path) -> std::io::Result<()> {
    Ok(())
}

fn commit(draft: &Path) -> anyhow::Result<()> {
    run_git(draft, &["init", "--quiet", "--initial-branch=main"])?;
    // Disables user settings that would stop a program, or change the files that Longhaul compares.
    let settings = [
        (MARKER, "true"),
        ("commit.gpgSign", "false"),
        ("core.autocrlf", "false"),
        ("core.hooksPath", "/dev/null"),
    ];
    for (setting, value) in settings {
        run_git(draft, &["config", setting, value])?;
    }
    if !knows_who_commits(draft) {
        run_git(draft, &["config", "user.name", "Longhaul Demo"])?;
        run_git(draft, &["config", "user.email", "demo@example.invalid"])?;
    }
    run_git(draft, &["add", "--all", "--force"])?;
    run_git(
        draft,
        &["commit", "--quiet", "--no-verify", "--message", "A calculator with nothing in it yet"],
    )
}

fn knows_who_commits(draft: &Path) -> bool {
    ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"].iter().all(|ident| {
        git(draft).args(["var", ident]).output().is_ok_and(|output| output.status.success())
    })
}

fn run_git(draft: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let shown = || format!("git {}", arguments.join(" "));
    let output =
        git(draft).args(arguments).output().with_context(|| format!("cannot run {}", shown()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", shown(), said.trim());
    Ok(())
}

/// git in a directory, without variables of an outer git (a hook, an alias).
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).stdin(Stdio::null());
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_PREFIX",
    ] {
        command.env_remove(variable);
    }
    command
}

fn needs(program: &str, why: &str) -> anyhow::Result<()> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("`{program}` is not installed: {why}")
        }
        other => other.with_context(|| format!("cannot run `{program}`"))?,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program} --version` failed: {}", said.trim());
    Ok(())
}

#[cfg(test)]
mod tests;
