//! `longhaul tree`.

use std::path::Path;

use anyhow::Result;
use longhaul_activities::git;

use super::terminal::{self, Terminal};
use crate::arguments::look::Tree;
use crate::arguments::{Output, Target};
use crate::document;
use crate::exit::{Exit, failed, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::advice;
use longhaul_server::views::Name;
use longhaul_server::views::tree::Branch;

pub(super) async fn run(data_dir: &Path, arguments: &Tree) -> Result<Exit> {
    let Target { target, scope } = &arguments.target;
    let dir = target.as_deref().map_or(scope.dir.as_path(), Path::new);
    let name = if dir.is_dir() {
        let never = || usage(format!("no project in {} has ever run", dir.display()));
        git::Checkout::containing(dir)
            .await
            .map_err(|failure| failed(advice::with_remedy(failure, dir)))?;
        let project = Project::known_at(dir).await.ok_or_else(never)?;
        Name { text: project.id.to_string(), project: None, whole: false }
    } else {
        super::name(&dir.to_string_lossy(), &scope.dir).await?
    };
    let document = super::ask(data_dir, longhaul_server::views::Tree(name)).await?;
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => {
            term::print(text(Terminal::here(), &document.runs));
            super::say_if_idle(document.is_running, document.runs.iter().map(|branch| &branch.run));
        }
    }
    Ok(Exit::Ok)
}

fn text(terminal: Terminal, runs: &[Branch]) -> String {
    let depths: Vec<usize> = runs.iter().map(|run| run.depth).collect();
    let lines = runs.iter().zip(lines(&depths)).map(|(run, lead)| {
        let parent = run.run.parent.as_ref().filter(|_| run.depth > 0);
        let id = run.run.header.id();
        let id = parent
            .and_then(|parent| id.strip_prefix(parent.as_str())?.strip_prefix('/'))
            .unwrap_or(id);
        let room = terminal
            .width
            .map_or(usize::MAX, |width| width.saturating_sub(lead.chars().count() + 1));
        let head = format!("{id}  {}", run.run.header.status);
        let step = run
            .step
            .as_deref()
            .map(|step| format!(": {}", terminal::safe(step)))
            .unwrap_or_default();
        let superseded = run.run.superseded_by.as_ref().map(|_| " (superseded)");
        let step = format!("{}{step}", superseded.unwrap_or_default());
        let rest = terminal::short(&step, room.saturating_sub(head.chars().count()).max(2));
        let rest =
            if terminal.is_narrow() && rest.chars().count() < 4 { String::new() } else { rest };
        format!("{lead}{id}  {}{rest}", terminal.state(run.run.header.status))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The line prefixes of the entries of a tree, from their depths.
pub(super) fn lines(depths: &[usize]) -> Vec<String> {
    let mut open: Vec<bool> = Vec::new();
    let mut leads = vec![String::new(); depths.len()];
    // Backwards, because a line depends on later entries of the same depth.
    for (lead, depth) in leads.iter_mut().zip(depths).rev() {
        open.resize(depth + 1, false);
        for is_open in open.iter().take(*depth).skip(1) {
            lead.push_str(if *is_open { "│ " } else { "  " });
        }
        if *depth > 0 {
            lead.push_str(if open[*depth] { "├─" } else { "└─" });
        }
        open[*depth] = true;
    }
    leads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_to_those_that_follow() {
        let drawn = lines(&[0, 1, 2, 2, 1, 2, 0]);
        assert_eq!(drawn, ["", "├─", "│ ├─", "│ └─", "└─", "  └─", ""]);
    }
}
