//! The project in a directory: its settings, its agent, and what a git that was killed left.

use std::path::Path;
use std::time::Duration;

use longhaul_activities::git::{self, LockFile};

use super::Finding;
use crate::command::run::why_not;
use crate::owner::Standing;
use crate::place::Project;

/// A lock that is younger may be of a git that works.
const FRESH: Duration = Duration::from_mins(2);

pub(super) async fn look(data_dir: &Path, dir: &Path, fix: bool) -> Vec<Finding> {
    let project = match Project::at(dir).await {
        Ok(project) => project,
        Err(error) => return vec![Finding::ok("project", format!("none was looked at: {error:#}"))],
    };
    let mut findings = vec![Finding::ok("project", format!("{} at {}", project.id, project.root.display()))];
    findings.push(settings(&project.root).await);
    findings.extend(locks(data_dir, &project.root, fix).await);
    findings
}

async fn settings(root: &Path) -> Finding {
    let loaded = match longhaul_activities::project::load(root).await {
        Ok(loaded) => loaded,
        Err(failure) => return Finding::problem("settings", failure.message, "correct the file that is named"),
    };
    match loaded.settings.agent.command.first().filter(|program| !program.is_empty()) {
        Some(program) => match why_not(root, program) {
            None => Finding::ok("agent", format!("`{program}` is there")),
            Some(problem) => {
                let advice = "install it, or correct `command` under [agent] in longhaul.toml";
                Finding::problem("agent", format!("`{program}` {problem}"), advice)
            }
        },
        None => Finding::problem("agent", "none is set", "set `command` under [agent] in longhaul.toml"),
    }
}

async fn locks(data_dir: &Path, root: &Path, fix: bool) -> Vec<Finding> {
    let locks = match git::lock_files(root).await {
        Ok(locks) => locks,
        Err(failure) => return vec![Finding::problem("git locks", failure.message, "see what git says there")],
    };
    let is_old = |lock: &LockFile| lock.age.is_none_or(|age| age > FRESH);
    let mut old = locks.into_iter().filter(is_old).peekable();
    if old.peek().is_none() {
        return vec![Finding::ok("git locks", "none was left")];
    }
    let standing = Standing::of(data_dir).await;
    let is_at_rest = matches!(standing, Ok(Standing::AtRest { .. } | Standing::Nothing));
    let ours = data_dir.join("worktrees");
    old.map(|lock| {
        let shown = lock.path.display();
        let minutes =
            lock.age.map_or_else(|| "an unknown time".to_owned(), |age| format!("{} min", age.as_secs() / 60));
        let what = format!("{shown} has been there for {minutes}: git refuses what it guards");
        let finding = Finding::warning("git locks", what, format!("if no git is at work there: rm {shown}"));
        // In our own work trees nobody works while nobody runs the log; elsewhere it may be the user, in an editor.
        let is_ours = lock.worktree.as_ref().is_some_and(|tree| tree.starts_with(&ours));
        if is_ours && is_at_rest { finding.or_fix(fix, || std::fs::remove_file(&lock.path)) } else { finding }
    })
    .collect()
}
