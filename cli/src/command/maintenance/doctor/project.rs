//! The project in a directory: its settings, its agent, and lock files of killed git processes.

use std::path::Path;
use std::time::Duration;

use longhaul_activities::git::{self, LockFile, MissingObjects};
use longhaul_activities::mcp;
use longhaul_activities::process::Holder;
use longhaul_activities::session::{Obstacle, preflight, settings_problem};
use longhaul_workflows::settings::{AgentSettings, Driver};

use super::Finding;
use crate::place::Project;
use crate::term;
use longhaul_server::{Client, LockState, ProjectStatus, is_copy};

/// A younger lock may belong to a running git.
const FRESH: Duration = Duration::from_mins(2);
/// A running git rarely holds a lock for longer than this.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(super) async fn look(data_dir: &Path, dir: &Path, fix: bool) -> Vec<Finding> {
    let project = match Project::at(dir).await {
        Ok(project) => project,
        Err(error) if dir.join(".git").exists() => {
            return vec![Finding::problem(
                "project",
                format!("{error:#}"),
                "see what git says there",
            )];
        }
        Err(error) => {
            return vec![Finding::ok("project", format!("none was looked at: {error:#}"))];
        }
    };
    let mut findings = vec![place(data_dir, &project).await];
    findings.extend(settings(&project.root).await);
    let obstacle = longhaul_activities::files::progress_file_obstacle(&project.root);
    findings.extend(obstacle.map(|obstacle| {
        Finding::warning("progress file", obstacle, "its entries are kept and appended then")
    }));
    if let Some(pipe) = git::pipe_for_git(&project.root) {
        let what = format!("{} is a named pipe: git waits at it for ever", pipe.display());
        findings.push(Finding::problem("checkout", what, "remove it"));
        return findings;
    }
    findings.extend(checkout(&project.root).await);
    findings.extend(partial_clone(&project.root).await);
    findings.extend(locks(data_dir, &project.root, fix).await);
    findings
}

/// Objects that a run fetches before it begins.
async fn partial_clone(root: &Path) -> Option<Finding> {
    let target = longhaul_activities::project::load(root).await.ok()?.target;
    let MissingObjects { count, remote } = git::missing_objects(root, &target).await.ok()??;
    let what = format!("{count} objects of the files of `{target}` are not in this partial clone");
    let advice = format!("`longhaul run` fetches them from `{remote}`, which must be reachable");
    Some(Finding::warning("partial clone", what, advice))
}

/// The place of the project, compared with the log.
async fn place(data_dir: &Path, project: &Project) -> Finding {
    let what = format!("{} at {}", project.id, project.root.display());
    let Some(known) =
        known_root(data_dir, project).await.filter(|known| Path::new(known) != project.root)
    else {
        return Finding::ok("project", what);
    };
    if git::carries_id(Path::new(&known), project.id.as_str()).await {
        let advice = "do that; if the other one is the copy, do it there";
        return Finding::problem("project", is_copy(&project.reference(), &known).await, advice);
    }
    Finding::ok(
        "project",
        format!(
            "{what}; it was moved there from {known}, and the next run continues in the new place"
        ),
    )
}

/// Its place according to the log; `None` if the log is unreadable, which another check reports.
async fn known_root(data_dir: &Path, project: &Project) -> Option<String> {
    let access = Client::reach(data_dir, term::notice).await.ok()??;
    let status =
        access.call(ProjectStatus { project: project.id.clone(), list: None }).await.ok()??;
    (!status.root.is_empty()).then_some(status.root)
}

/// Files that agents do not see, and obstacles to landing. Other checks report settings
/// that cannot be read, and a git that fails.
async fn checkout(root: &Path) -> Vec<Finding> {
    let Ok(loaded) = longhaul_activities::project::load(root).await else { return Vec::new() };
    let notes = git::preflight(root, &loaded).await.unwrap_or_default();
    let finding = |note: Obstacle| Finding::warning("checkout", note.problem, note.advice);
    notes.into_iter().map(finding).collect()
}

async fn settings(root: &Path) -> Vec<Finding> {
    let loaded = match longhaul_activities::project::load(root).await {
        Ok(loaded) => loaded,
        Err(failure) => {
            let advice = "correct the file that is named";
            return vec![Finding::problem("settings", failure.message, advice)];
        }
    };
    let list = root.join(&loaded.list_file);
    if let Err(error) = longhaul_workflows::backlog::Backlog::new(loaded.features) {
        let what = format!("{}: {error}", list.display());
        return vec![Finding::problem("list", what, "correct it there")];
    }
    agent(root, &loaded.settings.agent).await
}

async fn agent(root: &Path, agent: &AgentSettings) -> Vec<Finding> {
    if let Some(obstacle) = settings_problem(agent).or_else(|| mcp::problem(root, agent)) {
        return vec![Finding::problem("agent", obstacle.problem, obstacle.advice)];
    }
    if agent.driver == Driver::Api {
        return vec![Finding::ok("agent", "the agent of Longhaul")];
    }
    let found = preflight(root, agent).await;
    let Some(program) = found.program else {
        let advice = "set `command` under [agent] in longhaul.toml";
        return vec![Finding::problem("agent", "none is set", advice)];
    };
    if let Some(problem) = found.problem {
        let key = agent.program_key();
        let advice = format!("install it, or correct `{key}` under [agent] in longhaul.toml");
        return vec![Finding::problem("agent", format!("`{program}` {problem}"), advice)];
    }
    let version = found.version.map(|version| format!(", version {version}")).unwrap_or_default();
    let there = Finding::ok("agent", format!("`{program}` is there{version}"));
    let login =
        found.login.map(|login| Finding::problem("agent login", login.problem, login.advice));
    [there].into_iter().chain(login).collect()
}

async fn locks(data_dir: &Path, root: &Path, fix: bool) -> Vec<Finding> {
    let locks = match stale_locks(root).await {
        Ok(locks) => locks,
        Err(failure) => {
            return vec![Finding::problem("git locks", failure.message, "see what git says there")];
        }
    };
    if locks.is_empty() {
        return vec![Finding::ok("git locks", "none was left")];
    }
    let standing = LockState::of(data_dir).await;
    let is_at_rest = matches!(standing, Ok(LockState::AtRest { .. } | LockState::Nothing));
    let ours =
        std::fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned()).join("worktrees");
    let finding = |lock: LockFile| {
        let shown = lock.path.display();
        let age = lock.age.map_or_else(|| "an unknown time".to_owned(), |age| human(age.as_secs()));
        let what = format!("{shown} is {age} old and blocks git");
        if let Holder::Process(pid) = lock.holder {
            let advice =
                format!("wait for process {pid}, which holds it or is a git at work there");
            return Finding::warning("git locks", what, advice);
        }
        let finding =
            Finding::warning("git locks", what, format!("if no git is at work there: rm {shown}"));
        // Without an owner of the log no git works in our own work trees. In other trees the user
        // may run git, for example in an editor.
        let is_in_ours = lock.worktree.as_ref().is_some_and(|tree| tree.starts_with(&ours));
        let is_ours = is_at_rest && (is_in_ours || lock.is_own_ref);
        let is_forgotten = is_old(&lock) && lock.holder == Holder::None;
        if is_ours || is_forgotten {
            finding.or_fix(fix, || std::fs::remove_file(&lock.path))
        } else {
            finding
        }
    };
    locks.into_iter().map(finding).collect()
}

fn is_old(lock: &LockFile) -> bool {
    lock.age.is_none_or(|age| age > FRESH)
}

/// The stale locks: old ones, and those without a holder. A running git holds its locks for an
/// instant, so look twice.
async fn stale_locks(root: &Path) -> Result<Vec<LockFile>, longhaul_engine::Failure> {
    let is_left = |lock: &LockFile| is_old(lock) || lock.holder == Holder::None;
    let first: Vec<_> = git::lock_files(root).await?.into_iter().filter(is_left).collect();
    if first.iter().all(is_old) {
        return Ok(first);
    }
    tokio::time::sleep(LOOK_AGAIN).await;
    let again = git::lock_files(root).await?.into_iter();
    Ok(again
        .filter(|lock| is_left(lock) && first.iter().any(|before| before.path == lock.path))
        .collect())
}

fn human(seconds: u64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}
