//! `longhaul run`: owns the log, or joins the process that does, until every project has come to rest.

mod differs;
mod progress;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{Output, Run};
use crate::document::{self, Titled};
use crate::exit::{self, Exit, failed, operational, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::settled;
use longhaul_server::status::StatusDocument;
use longhaul_server::{self, Client, Limits, Listener, LockState, Service};

pub(super) use progress::Progress;
pub(super) use watch::Others;
use watch::{LOOK, begin, watch};

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
    let documents = until_settled(data_dir, arguments, &projects).await?;
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

/// Runs until all projects have settled; `None` if somebody interrupted it.
async fn until_settled(data_dir: &Path, arguments: &Run, projects: &[Project]) -> Result<Option<Vec<StatusDocument>>> {
    loop {
        match become_owner(data_dir, limits(arguments.max_agents, arguments.max_checks)).await? {
            Some(service) => return as_owner(data_dir, service, projects, arguments.take_over).await,
            None => {
                if let Some(documents) = as_guest(data_dir, projects, arguments.take_over).await? {
                    return Ok(documents);
                }
            }
        }
    }
}

/// The limits on the command line.
pub(super) fn limits(agents: u32, checks: Option<u32>) -> Limits {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    Limits { agents: agents as usize, checks: checks.map_or(processors, |checks| checks as usize) }
}

/// Opens the log; `None` if another process owns it.
pub(super) async fn become_owner(data_dir: &Path, limits: Limits) -> Result<Option<Arc<Service>>> {
    match longhaul_server::open(data_dir, limits).await {
        Ok(service) => Ok(Some(service)),
        Err(error) if error.is_owned() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn as_owner(
    data_dir: &Path,
    service: Arc<Service>,
    projects: &[Project],
    take_over: bool,
) -> Result<Option<Vec<StatusDocument>>> {
    let server = Listener::start(data_dir, Arc::clone(&service))?;
    let access = Client::Local(Arc::clone(&service));
    let work = async {
        let watched = begin(&access, projects, take_over).await?;
        watch(&access, watched, Some(&service)).await
    };
    let documents = tokio::select! {
        documents = work => documents.map(Some),
        () = interrupted() => {
            stop_on_request(data_dir, &service).await;
            Ok(None)
        }
    };
    service.stop().await;
    drop(server);
    documents
}

/// Joins the process that owns the log; `None` if that one ended before our projects settled.
async fn as_guest(
    data_dir: &Path,
    projects: &[Project],
    take_over: bool,
) -> Result<Option<Option<Vec<StatusDocument>>>> {
    let Some(access) = Client::reach_owner(data_dir, term::notice).await? else { return Ok(None) };
    let work = async {
        let watched = begin(&access, projects, take_over).await?;
        term::say("another Longhaul runs this log: joined it");
        watch(&access, watched, None).await
    };
    tokio::select! {
        documents = work => match documents {
            Ok(documents) => Ok(Some(Some(documents))),
            Err(error) if exit::is_complaint(&error) => Err(error),
            // The owner goes away: the work is for us then.
            Err(_) => {
                tokio::time::sleep(LOOK).await;
                Ok(None)
            }
        },
        () = interrupted() => {
            term::say("the other Longhaul goes on with it");
            Ok(Some(None))
        }
    }
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

/// Stops because somebody wants that; who wants it once more has no time for the grace that agents are given.
pub(super) async fn stop_on_request(data_dir: &Path, service: &Service) {
    // Before it is offered: who takes it up at once is heard.
    let mut interrupts = Interrupts::listen();
    term::say("stopping: agents that are at work are ended; once more, and they are killed");
    let hurry = async {
        loop {
            interrupts.next().await;
            term::say("killing the agents that are at work");
            longhaul_activities::process::hurry(data_dir);
        }
    };
    tokio::select! {
        () = service.stop() => {}
        () = hurry => {}
    }
}

/// Resolves when somebody wants this process to end.
pub(super) async fn interrupted() {
    Interrupts::listen().next().await;
}

/// The signals by which somebody wants this process to end.
struct Interrupts([std::io::Result<Signal>; 3]);

impl Interrupts {
    /// Listens from now on.
    fn listen() -> Self {
        Self([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal))
    }

    /// The next of them; none, if the system lets us hear none.
    async fn next(&mut self) {
        let [Ok(interrupt), Ok(terminate), Ok(hangup)] = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
