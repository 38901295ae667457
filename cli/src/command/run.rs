//! `longhaul run`: owns the log, or joins the process that does, until every project has come to rest.

mod differs;
mod owner;
mod progress;
mod watch;

use std::path::{Path, PathBuf};

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Output, Run};
use crate::document::{self, Titled};
use crate::exit::{self, Exit, failed, operational, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::settled;
use longhaul_server::status::StatusDocument;
use longhaul_server::{Limits, LockState};

pub(super) use owner::own_or_join;
pub(super) use progress::Progress;
pub(super) use watch::{LOOK, Others};
use watch::{begin, watch};

/// Where projects stand that have come to rest.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunDocument<'a> {
    /// In the order of the command line.
    projects: Vec<Titled<&'a StatusDocument>>,
}

pub(super) async fn run(data_dir: &Path, arguments: &Run) -> Result<Exit> {
    put_back(data_dir, &arguments.dirs).await;
    let (projects, refused) = projects(&arguments.dirs).await;
    let mut exits: Vec<Exit> = refused.iter().map(exit::of).collect();
    for refusal in &refused {
        term::say(format!("longhaul: {refusal:#}"));
    }
    if projects.is_empty() {
        return Ok(Exit::of_all(exits));
    }
    let limits = limits(arguments.max_agents, arguments.max_checks);
    let documents = own_or_join(data_dir, limits, async |access, service| {
        let watched = begin(access, &projects, arguments.take_over).await?;
        if service.is_none() {
            term::say("another Longhaul runs this log: joined it");
        }
        watch(access, watched, service).await
    });
    let documents = documents.await?;
    let Some(documents) = documents else {
        term::say("stopped; nothing is lost: the same command goes on where this one was");
        return Ok(Exit::Suspended);
    };
    exits.extend(documents.iter().map(|document| Exit::from(settled::verdict(document))));
    for document in &documents {
        if let Some((what, cause)) = document.vain_wait() {
            let (project, waited) = (&document.project, settled::machine_wait().as_secs());
            let cause = super::page::safe(&super::status::first_line(cause));
            let advice = "mend that, and the same command goes on; LONGHAUL_MACHINE_WAIT=SECONDS waits longer";
            term::say(format!("{project}: stopped after waiting {waited} s for the {what}: {cause}; {advice}"));
        }
    }
    report(arguments.output, &documents)?;
    Ok(Exit::of_all(exits))
}

/// What a Longhaul that was killed had aside in a checkout is put back before anybody looks for it there.
pub(super) async fn put_back(data_dir: &Path, dirs: &[PathBuf]) {
    // Held until all of it is done: nobody else begins meanwhile.
    let standing = LockState::of(data_dir).await;
    if !matches!(standing, Ok(LockState::AtRest { .. })) {
        return;
    }
    let git = longhaul_activities::git::GitHandlers::new(data_dir);
    for dir in dirs {
        if let Some(project) = Project::known_at(dir).await
            && let Err(failure) = git.put_back(&project.reference()).await
        {
            tracing::warn!("{failure}");
        }
    }
}

/// The projects on the command line, each once, and what is wrong with the others.
async fn projects(dirs: &[PathBuf]) -> (Vec<Project>, Vec<anyhow::Error>) {
    let mut projects: Vec<Project> = Vec::new();
    let mut refused = Vec::new();
    for dir in dirs {
        match checked(dir).await {
            Ok(project) if projects.iter().all(|known| known.root != project.root) => projects.push(project),
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    (projects, refused)
}

/// A project whose settings and list can be read, and whose features can be ordered.
pub(super) async fn checked(dir: &Path) -> Result<Project> {
    let project = Project::at(dir).await?;
    let loaded = longhaul_activities::project::load(&project.root).await.map_err(failed)?;
    let settings = project.root.join("longhaul.toml");
    longhaul_activities::confine::in_force(loaded.settings.agent.sandbox).map_err(operational)?;
    match loaded.settings.agent.command.first().filter(|program| !program.is_empty()) {
        None => return Err(usage(format!("{}: no agent; set `command` under [agent]", settings.display()))),
        Some(program) => {
            if let Some(problem) = why_not(&project.root, program) {
                let advice = "install it, or correct `command` under [agent]";
                return Err(usage(format!("{}: the agent `{program}` {problem}; {advice}", settings.display())));
            }
        }
    }
    if loaded.settings.project.target.is_some()
        && !longhaul_activities::git::has_branch(&project.root, &loaded.target).await.map_err(failed)?
    {
        let (settings, target) = (settings.display(), &loaded.target);
        let advice = "correct `target` under [project], or make the branch";
        return Err(usage(format!("{settings}: there is no branch `{target}`; {advice}")));
    }
    let list = project.root.join(&loaded.list_file);
    if loaded.features.is_empty() {
        return Err(usage(format!("{} has no features yet: add one with `longhaul feature add`", list.display())));
    }
    longhaul_workflows::backlog::Backlog::new(loaded.features)
        .map_err(|error| usage(format!("{}: {error}", list.display())))?;
    longhaul_activities::git::exclude_own_files(&project.root).await.map_err(failed)?;
    for note in loaded.notes {
        term::say(format!("{}: {note}", list.display()));
    }
    Ok(project)
}

/// What keeps a program from being started; in the project if it is a path, else in one of the directories of `PATH`.
pub(super) fn why_not(root: &Path, program: &str) -> Option<&'static str> {
    let is_program = |file: &Path| file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok();
    if !program.contains('/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return std::env::split_paths(&path).all(|dir| !is_program(&dir.join(program))).then_some("is not there");
    }
    match root.join(program) {
        file if is_program(&file) => None,
        file if file.is_file() => Some("is no program: its file may not be executed (`chmod +x` makes it one)"),
        _ => Some("is not there"),
    }
}

/// The limits on the command line.
pub(super) fn limits(agents: u32, checks: Option<u32>) -> Limits {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    Limits { agents: agents as usize, checks: checks.map_or(processors, |checks| checks as usize) }
}

fn report(output: Output, documents: &[StatusDocument]) -> Result<()> {
    match output {
        Output::Json => {
            let projects = documents.iter().map(Titled::of).collect();
            document::print(RunDocument { projects })?;
        }
        Output::Table => {
            for document in documents {
                super::page::print(super::status::headline(document));
                term::print(super::status::table(document));
            }
        }
    }
    Ok(())
}
