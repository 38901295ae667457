//! `longhaul agent run`, `orchestrate`, `checkpoint` and `sessions`: the verbs of one agent, over
//! those of runs.

use std::path::Path;

use anyhow::Result;
use longhaul_engine::RequestedBy;
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::projection::State;

use crate::arguments::ListOutput;
use crate::arguments::agent::{Agent, AgentCommand, AgentRun, AgentSessions, Orchestrate};
use crate::arguments::{Output, Prune, Run, user};
use crate::exit::{Exit, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::views::ShowSession;
use longhaul_server::{Client, Fork, ForkPoint, Order, ProjectStatus, Steer};

pub(super) async fn run(data_dir: &Path, agent: Agent) -> Result<Exit> {
    match agent.command {
        AgentCommand::Run(arguments) => run_agent(data_dir, arguments).await,
        AgentCommand::Orchestrate(Orchestrate { feature, dir, limits, output }) => {
            let feature = Some(feature);
            let run = AgentRun { dir, feature, resume: true, session: None, limits, output };
            run_agent(data_dir, run).await
        }
        AgentCommand::Checkpoint(arguments) => super::rewind::checkpoint(data_dir, arguments).await,
        AgentCommand::Sessions(arguments) => sessions(data_dir, arguments).await,
    }
}

async fn run_agent(data_dir: &Path, arguments: AgentRun) -> Result<Exit> {
    let AgentRun { dir, mut feature, resume, session, limits, output } = arguments;
    if let Some(feature) = feature.as_ref().filter(|_| resume) {
        continue_feature(data_dir, &dir, feature).await?;
    }
    if let Some(session) = session {
        feature = Some(continue_from(data_dir, &dir, &session).await?);
    }
    let run =
        Run { dirs: vec![dir], take_over: false, once: false, max_time: None, limits, output };
    super::run::run(data_dir, &run, feature.as_ref()).await
}

fn request() -> RequestedBy {
    RequestedBy { by: user(), why: String::new() }
}

/// Resumes a feature that does not continue by itself.
async fn continue_feature(data_dir: &Path, dir: &Path, feature: &FeatureId) -> Result<()> {
    let Some(client) = Client::reach(data_dir, term::notice).await? else { return Ok(()) };
    let project = Project::at(dir).await?.id;
    let status = super::call(&client, ProjectStatus { project, list: None }).await?;
    let Some(status) = status else { return Ok(()) };
    let is_closed = status.is_over;
    let features = status.features;
    let line = features.into_iter().find(|line| line.id == feature.as_str());
    // A closed project begins again, with all features that are not blocked.
    let halted: &[State] = if is_closed {
        &[State::Blocked]
    } else {
        &[State::Blocked, State::Failed, State::Cancelled, State::Paused]
    };
    if let Some(target) =
        line.filter(|line| halted.contains(&line.status)).and_then(|line| line.run)
    {
        let order = Order::Resume;
        super::call(&client, Steer { target, order, request: request(), dry_run: false }).await?;
    }
    Ok(())
}

/// Forks the run of a session after the commit of that session; returns its feature.
async fn continue_from(data_dir: &Path, dir: &Path, session: &str) -> Result<FeatureId> {
    let client = super::reach(data_dir).await?;
    let name = super::named::name(session, dir).await?;
    let found = super::call(&client, ShowSession(name)).await?;
    let project = Project::at(dir).await?.id;
    let feature = found.session.feature.and_then(|feature| FeatureId::new(feature).ok());
    let feature = feature.filter(|_| found.session.project.as_deref() == Some(project.as_str()));
    let Some(feature) = feature else {
        let id = found.session.id;
        let dir = dir.display();
        return Err(usage(format!("session {id} is not one of the project in {dir}")));
    };
    let run = super::named::run(&client, &found.run, dir).await?;
    let from = ForkPoint::Session(found.number);
    let fork = Fork { run, from, note: None, set: Vec::new(), request: request(), dry_run: false };
    let forked = super::call(&client, fork).await?;
    term::say(format!("{} continues from {}@{}", forked.run, forked.origin, forked.position));
    Ok(feature)
}

async fn sessions(data_dir: &Path, arguments: AgentSessions) -> Result<Exit> {
    let AgentSessions { list, prune, older_than, status, dry_run, yes } = arguments;
    if !prune {
        return super::look::sessions(data_dir, &list).await;
    }
    let output = match list.output {
        ListOutput::Table => Output::Table,
        ListOutput::Json => Output::Json,
        ListOutput::Jsonl | ListOutput::Ids => {
            return Err(usage("--prune reports as a table or with `-o json`"));
        }
    };
    let prune = Prune {
        older_than,
        status,
        project: Some(list.target.unwrap_or_else(|| here(&list.scope.dir))),
        dry_run,
        yes,
        output,
    };
    super::maintenance::prune(data_dir, &prune).await
}

fn here(dir: &Path) -> String {
    dir.to_string_lossy().into_owned()
}
