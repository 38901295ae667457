//! Damage in a project's repository, caused by a power cut before git had synced its files.

use std::path::Path;

use longhaul_activities::git::{
    Damage, find_damage, is_replaceable, lost_objects, repair, restore_objects,
};
use longhaul_engine::Failure;

use super::{Finding, counted};

/// How many empty or missing objects are listed.
const NAMED: usize = 3;

/// The first names of many, and how many more there are.
fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

pub(super) async fn look(root: &Path, fix: bool) -> Vec<Finding> {
    let found = match find_damage(root).await {
        Ok(found) => found,
        Err(failure) => {
            return vec![Finding::problem("repository", failure.message, "run `git fsck` there")];
        }
    };
    if found.is_empty() {
        return vec![of_lost(root, fix).await];
    }
    let (objects, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|damage| matches!(damage, Damage::EmptyObject(_)));
    let mut findings = Vec::new();
    // Objects first: a ref can be repaired only if its commit is readable.
    if !objects.is_empty() {
        findings.push(of_objects(root, &objects, fix).await);
    }
    for damage in &others {
        findings.push(of(root, damage, fix).await);
    }
    let hid_others = |damage: &Damage| match damage {
        Damage::NoRefs(path) => path.is_dir(),
        Damage::PackIndex(pack) => pack.with_extension("idx").exists(),
        _ => false,
    };
    if fix && !findings.iter().any(Finding::is_problem) && others.iter().any(hid_others) {
        // Only now git sees all of the repository.
        findings.extend(Box::pin(look(root, fix)).await);
    } else if fix && !findings.iter().any(Finding::is_problem) {
        // An empty object that was removed is a missing one now.
        let lost = of_lost(root, fix).await;
        findings.extend(Some(lost).filter(Finding::is_notable));
    }
    findings
}

/// Objects that are missing altogether.
async fn of_lost(root: &Path, fix: bool) -> Finding {
    let advice = "fetch them from another clone of this repository, or restore .git from a backup";
    let found = async {
        let lost = lost_objects(root).await?;
        if !fix || lost.is_empty() {
            return Ok((lost, false));
        }
        restore_objects(root, &lost).await?;
        let left = lost_objects(root).await?;
        Ok::<_, Failure>(if left.is_empty() { (lost, true) } else { (left, false) })
    };
    match found.await {
        Ok((lost, _)) if lost.is_empty() => {
            Finding::ok("repository", "no object, ref or index is empty or missing")
        }
        Ok((lost, is_restored)) => {
            let what = format!("objects of git are missing: {}", named(lost));
            let finding = Finding::problem("repository", what, advice);
            if fix && !is_restored { finding } else { finding.or_fix(fix, || Ok(())) }
        }
        Err(failure) => Finding::problem("repository", failure.message, "run `git fsck` there"),
    }
}

async fn of_objects(root: &Path, objects: &[Damage], fix: bool) -> Finding {
    let files = objects.iter().map(|damage| damage.file().display().to_string());
    let what = format!(
        "objects of git are empty, as a power cut leaves them, or no files: {}",
        named(files.collect())
    );
    let advice =
        "remove them, then run `git fsck` and fetch the missing objects from another clone";
    let mut outcome = Ok(());
    if fix {
        for damage in objects {
            outcome = outcome.and(repair(root, damage).await.map_err(std::io::Error::other));
        }
    }
    Finding::problem("repository", what, advice).or_fix(fix, || outcome)
}

/// The problem with another checkout of the user, and the remedy.
fn of_linked(root: &Path, file: &Path, checkout: Option<&Path>) -> (String, String) {
    let of = checkout
        .map_or_else(|| "another checkout".to_owned(), |checkout| checkout.display().to_string());
    let what = format!("{} is damaged: git cannot use {of}", file.display());
    let advice = match file.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => format!("echo ../.. > '{}'", file.display()),
        Some("HEAD") => {
            format!("echo ref: refs/heads/BRANCH > '{}', with the branch of {of}", file.display())
        }
        Some(".git") => format!("git -C '{}' worktree repair", root.display()),
        _ => {
            let place = checkout.map_or_else(
                || "CHECKOUT".to_owned(),
                |checkout| format!("'{}'", checkout.display()),
            );
            format!("git -C '{}' worktree repair {place}", root.display())
        }
    };
    (what, advice)
}

async fn of(root: &Path, damage: &Damage, fix: bool) -> Finding {
    let (what, advice) = describe(root, damage);
    let finding = Finding::problem("repository", what, advice);
    let must_be_done_by_hand = match damage {
        Damage::Ref { name, last: None, .. } => !is_replaceable(name),
        Damage::Head { content, .. } => content.is_none(),
        Damage::Linked { .. }
        | Damage::Config(_)
        | Damage::Pack(_)
        | Damage::NoObjects(_)
        | Damage::Shallow(_)
        | Damage::Alternate { .. } => true,
        _ => false,
    };
    if must_be_done_by_hand {
        return finding;
    }
    let outcome =
        if fix { repair(root, damage).await.map_err(std::io::Error::other) } else { Ok(()) };
    finding.or_fix(fix, || outcome)
}

/// The problem and the remedy.
fn describe(root: &Path, damage: &Damage) -> (String, String) {
    let file = damage.file().display();
    match damage {
        Damage::Config(_) => (
            format!("git cannot read {file}, and so refuses every command"),
            format!(
                "correct it; or: mv '{file}' '{file}.damaged' && git -C '{}' init, then set \
                 remotes and settings again",
                root.display()
            ),
        ),
        Damage::Ref { name, last: Some(commit), .. } if !damage.file().exists() => (
            format!("{name} is missing; its reflog ends at {commit}"),
            format!("git update-ref {name} {commit}"),
        ),
        Damage::Ref { name, last: Some(commit), .. } => {
            let what =
                format!("{name} is damaged: {file} names no commit; its reflog ends at {commit}");
            (what, format!("rm '{file}' && git update-ref {name} {commit}"))
        }
        Damage::Ref { name, .. } => {
            let what = format!(
                "{name} is damaged: {file} names no commit or is missing, and its reflog knows \
                 none that can be read"
            );
            (
                what,
                format!(
                    "choose a commit with `git fsck --lost-found`, then: git update-ref {name} \
                     COMMIT"
                ),
            )
        }
        Damage::Head { content: Some(content), .. } => (
            format!("git cannot read {file}, and so sees no repository"),
            format!("echo '{content}' > '{file}'"),
        ),
        Damage::Head { content: None, .. } => (
            format!(
                "git cannot read {file}, and so sees no repository; the branch that was checked \
                 out is not known"
            ),
            format!("echo ref: refs/heads/BRANCH > '{file}'"),
        ),
        Damage::PackedRefs { lost, .. } => (
            match counted(lost.len() as u64, "ref") {
                _ if lost.is_empty() => format!("{file} has lines that git cannot read"),
                refs => {
                    format!("{file} is damaged, and with it {refs} that have no file of their own")
                }
            },
            "move it away, then restore each branch from .git/logs: git update-ref NAME COMMIT"
                .to_owned(),
        ),
        Damage::NoRefs(_) => (
            format!("the directory {file} is missing, and so git sees no repository"),
            format!("mkdir '{file}', then this command again: the refs are in the reflogs"),
        ),
        Damage::PackIndex(_) => (
            format!("the index of {file} is missing or damaged, so its objects seem to be lost"),
            format!("git index-pack '{file}'"),
        ),
        Damage::Pack(_) => (
            format!("{file} is shortened or damaged, so its objects cannot be read"),
            "restore it from another clone or a backup".to_owned(),
        ),
        Damage::NoObjects(_) => (
            format!("the directory {file} is missing, and with it all commits"),
            "restore .git from a backup or another clone; do not run `git init`".to_owned(),
        ),
        Damage::Shallow(_) => (
            format!("git cannot read {file}, and so refuses every command"),
            format!(
                "if this is no shallow clone: rm '{file}'; otherwise restore it from a backup, or \
                 clone again"
            ),
        ),
        Damage::Alternate { missing, .. } => (
            format!("{file} names {}, which is not there", missing.display()),
            "bring it back, for example mount its disk; or correct that line".to_owned(),
        ),
        Damage::Linked { checkout, .. } => of_linked(root, damage.file(), checkout.as_deref()),
        Damage::Index(index) if !index.exists() => (
            format!("the index {file} is missing: git takes all files as deleted"),
            "git reset".to_owned(),
        ),
        Damage::EmptyObject(_) | Damage::Index(_) => (
            format!("git cannot read the index {file}"),
            format!("mv '{file}' '{file}.damaged' && git reset"),
        ),
    }
}
