//! Access of a project's programs to places, and the resulting sandbox.
//!
//! | place | sessions | set-up and checks |
//! |---|---|---|
//! | the program's own tree | write | write |
//! | `[agent] write`, by default state of agents and package caches | write | write; held-out checks: read |
//! | the user's checkout | read | read |
//! | the project's git directory | hidden, but for its objects | hidden, but for its objects |
//! | the data directory with all other trees, the log and the socket | hidden | hidden |
//! | held-out checks of all projects | hidden | hidden, but for the own ones to these checks |
//! | everything else | read | read |

mod defaults;
mod git_dirs;
pub(crate) mod held_out;

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;
use longhaul_workflows::settings::{Confinement, NetworkAccess, SandboxMode};

use crate::process::{Available, Environment, Level, Network, Sandbox, available};

use git_dirs::GitDirs;

/// Directories that a sandbox replaces, so that needed paths in them must be named.
const REPLACED: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];
/// The name for running without a sandbox.
pub(crate) const NONE: &str = "none";

/// The directory of a program, and the directories around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfinedPaths<'a> {
    /// The user's checkout.
    pub(crate) root: &'a Path,
    /// The work tree that it runs in.
    pub(crate) tree: &'a Path,
    /// The data directory.
    pub(crate) data_dir: &'a Path,
    /// Whether it is a held-out check.
    pub(crate) sees_held_out: bool,
}

/// The level for a value of `[agent] sandbox`; `None`: no sandbox. Fails if one is required and
/// none works.
pub fn level(mode: SandboxMode) -> Result<Option<Level>, Failure> {
    level_of(mode, available())
}

/// The name of that level for display, with the reason why stricter levels are missing.
pub fn in_force(mode: SandboxMode) -> Result<String, Failure> {
    let level = level(mode)?;
    let name = level.map_or(NONE, Level::name);
    let lacks = available().lacks();
    Ok(match mode {
        SandboxMode::Off => format!("{name}: it is off in longhaul.toml"),
        _ if lacks.is_empty() => name.to_owned(),
        _ => format!("{name}: {lacks}"),
    })
}

fn level_of(mode: SandboxMode, available: &Available) -> Result<Option<Level>, Failure> {
    match (mode, available.best()) {
        (SandboxMode::Off, _) | (SandboxMode::Auto, None) => Ok(None),
        (_, Some(level)) => Ok(Some(level)),
        (SandboxMode::Required, None) => Err(Failure::terminal(format!(
            "`[agent] sandbox` is \"required\" in longhaul.toml, but this machine offers none: {}. \
             Install bubblewrap and allow unprivileged user namespaces, or set \
             `sandbox = \"auto\"`",
            available.lacks()
        ))),
    }
}

/// The sandbox of a program; `None`: it runs without one.
pub(crate) fn sandbox(
    places: &ConfinedPaths<'_>,
    program: Option<&Path>,
    env: &Environment,
    confinement: &Confinement,
) -> Result<Option<Sandbox>, Failure> {
    let Some(level) = level(confinement.sandbox)? else { return Ok(None) };
    let home = env.get("HOME").map(PathBuf::from);
    let mut sandbox = Sandbox {
        level,
        writable: vec![places.tree.to_owned()],
        readable: vec![places.root.to_owned()],
        hidden: hidden_places(places),
        network: match confinement.network {
            NetworkAccess::On => Network::On,
            NetworkAccess::Loopback => Network::Loopback,
            NetworkAccess::Off => Network::Off,
        },
        private: places.sees_held_out,
    };
    match (&confinement.write, &home) {
        (Some(write), home) => {
            sandbox
                .writable
                .extend(write.iter().map(|path| named(path, places.root, home.as_deref())));
        }
        (None, Some(home)) => defaults::add(home, env, &mut sandbox),
        (None, None) => {}
    }
    if places.sees_held_out {
        // The code under test could leave the held-out files there for a later session.
        let shared = sandbox.writable.split_off(1);
        sandbox.readable.extend(shared);
    }
    add_git(places, &mut sandbox);
    let own = confinement.held_out.as_ref().map(|named| places.root.join(named));
    let own = own.map(|own| own.canonicalize().unwrap_or(own));
    let others = held_out::all(places.data_dir, places.root).into_iter();
    sandbox.hidden.extend(others.filter(|directory| Some(directory) != own.as_ref()));
    if let Some(own) = own {
        let list = if places.sees_held_out { &mut sandbox.readable } else { &mut sandbox.hidden };
        list.push(own);
    }
    if level == Level::Bubblewrap {
        sandbox.readable.extend(
            program
                .and_then(Path::parent)
                .filter(|directory| is_replaced(directory))
                .map(Path::to_owned),
        );
        let known = [&sandbox.writable[..], &sandbox.readable, &sandbox.hidden].concat();
        let is_new = |path: &PathBuf| !known.iter().any(|place| path.starts_with(place));
        sandbox.readable.extend(named_by(env).filter(is_new));
    }
    match sandbox.not_enforced() {
        Some(lack) if confinement.sandbox == SandboxMode::Required => {
            Err(Failure::terminal(format!(
                "`network = \"{}\"` in longhaul.toml cannot be enforced: {lack}. \
                 Install bubblewrap",
                confinement.network.as_str()
            )))
        }
        _ => Ok(Some(sandbox)),
    }
}

/// The data directory, the targets of links in it, and the directory of the trees.
fn hidden_places(places: &ConfinedPaths<'_>) -> Vec<PathBuf> {
    let mut hidden = vec![places.data_dir.to_owned()];
    let entries = std::fs::read_dir(places.data_dir).into_iter().flatten().flatten();
    hidden.extend(entries.map(|entry| entry.path()).filter(|path| path.is_symlink()));
    // The directory of the project in `worktrees` can be a link, too.
    let trees = places.tree.parent().map(Path::to_owned);
    let data_dir = places.data_dir.canonicalize().unwrap_or_else(|_| places.data_dir.to_owned());
    hidden.extend(trees.filter(|trees| {
        trees.starts_with(places.data_dir)
            && trees.canonicalize().is_ok_and(|trees| !trees.starts_with(data_dir))
    }));
    hidden
}

/// A sandbox for display: its level, and the part that is not enforced.
pub(crate) fn describe(sandbox: Option<&Sandbox>) -> String {
    let Some(sandbox) = sandbox else { return NONE.into() };
    let lack = sandbox.not_enforced().map(|lack| format!(" ({lack})"));
    format!("{}{}", sandbox.level.name(), lack.unwrap_or_default())
}

/// A path of `[agent] write`.
fn named(path: &str, root: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => root.join(path),
    }
}

fn is_replaced(path: &Path) -> bool {
    REPLACED.iter().any(|directory| path.starts_with(directory) && path != Path::new(directory))
}

/// Paths in replaced directories that variables name.
fn named_by(env: &Environment) -> impl Iterator<Item = PathBuf> {
    let values = env.iter().filter(|(name, _)| *name != "TMPDIR").map(|(_, value)| value);
    values.flat_map(std::env::split_paths).filter(|path| is_replaced(path))
}

/// The repository in a tree borrows the objects of the project; the rest of the project's git
/// directory stays hidden.
fn add_git(places: &ConfinedPaths<'_>, sandbox: &mut Sandbox) {
    if let Some(project) = GitDirs::of(places.root) {
        sandbox.readable.push(project.common.join("objects"));
        sandbox.hidden.extend([project.own, project.common]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(bubblewrap: bool, landlock: bool) -> Available {
        Available {
            bubblewrap: if bubblewrap {
                Ok("/usr/bin/bwrap".into())
            } else {
                Err("bubblewrap is not installed".into())
            },
            landlock: if landlock { Ok(7) } else { Err("the kernel has no Landlock".into()) },
        }
    }

    #[test]
    fn the_strictest_level_is_used() {
        for (mode, bubblewrap, landlock, expected) in [
            (SandboxMode::Auto, true, true, Some(Level::Bubblewrap)),
            (SandboxMode::Auto, false, true, Some(Level::Landlock)),
            (SandboxMode::Auto, false, false, None),
            (SandboxMode::Required, false, true, Some(Level::Landlock)),
            (SandboxMode::Off, true, true, None),
        ] {
            assert_eq!(
                level_of(mode, &machine(bubblewrap, landlock)).unwrap(),
                expected,
                "{mode:?}"
            );
        }
    }

    #[test]
    fn a_required_sandbox_that_is_not_there_is_refused() {
        let failure = level_of(SandboxMode::Required, &machine(false, false)).unwrap_err();
        let wanted =
            "this machine offers none: bubblewrap is not installed; the kernel has no Landlock";
        assert!(failure.message.contains(wanted), "{failure}");
    }
}
