//! Damage in a project's repository: what a power cut left of files that git had not synced.

use std::path::Path;

use longhaul_activities::git::{Damage, find_damage, repair};

use super::Finding;

/// How many empty objects are named one by one.
const NAMED: usize = 3;

pub(super) async fn look(root: &Path, fix: bool) -> Vec<Finding> {
    let found = match find_damage(root).await {
        Ok(found) => found,
        Err(failure) => return vec![Finding::problem("repository", failure.message, "run `git fsck` there")],
    };
    if found.is_empty() {
        return vec![Finding::ok("repository", "no object, ref or index is empty")];
    }
    let (objects, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|damage| matches!(damage, Damage::EmptyObject(_)));
    let mut findings = Vec::new();
    // Objects first: a ref can be put right only to a commit that can be read.
    if !objects.is_empty() {
        findings.push(of_objects(root, &objects, fix).await);
    }
    for damage in &others {
        findings.push(of(root, damage, fix).await);
    }
    findings
}

async fn of_objects(root: &Path, objects: &[Damage], fix: bool) -> Finding {
    let shown: Vec<_> = objects.iter().take(NAMED).map(|damage| damage.file().display().to_string()).collect();
    let more = objects.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = format!("objects of git are empty, as a power cut leaves them: {}{more}", shown.join(", "));
    let advice = "remove them, then run `git fsck` and fetch what is missing from another clone";
    let mut outcome = Ok(());
    if fix {
        for damage in objects {
            outcome = outcome.and(repair(root, damage).await.map_err(std::io::Error::other));
        }
    }
    Finding::problem("repository", what, advice).or_fix(fix, || outcome)
}

async fn of(root: &Path, damage: &Damage, fix: bool) -> Finding {
    let file = damage.file().display();
    let (what, advice) = match damage {
        Damage::Ref { name, last: Some(commit), .. } => {
            let what = format!("{name} is damaged: {file} names no commit; its reflog ends at {commit}");
            (what, format!("rm '{file}' && git update-ref {name} {commit}"))
        }
        Damage::Ref { name, .. } => {
            let what = format!("{name} is damaged: {file} names no commit, and its reflog knows none that can be read");
            (what, format!("choose a commit with `git fsck --lost-found`, then: git update-ref {name} COMMIT"))
        }
        _ => (format!("git cannot read the index {file}"), format!("rm '{file}' && git reset")),
    };
    let finding = Finding::problem("repository", what, advice);
    let can_be_fixed = !matches!(damage, Damage::Ref { name, last: None, .. } if !name.starts_with("refs/longhaul/"));
    if !can_be_fixed {
        return finding;
    }
    let outcome = if fix { repair(root, damage).await.map_err(std::io::Error::other) } else { Ok(()) };
    finding.or_fix(fix, || outcome)
}
