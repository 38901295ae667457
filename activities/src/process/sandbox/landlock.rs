//! Landlock rules of the kernel for this process and its children.
//!
//! Landlock only grants, and a grant on a directory covers everything in it. So around a stricter
//! place within a granted directory, each sibling is granted separately. Entries created there
//! later are not granted.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::{Access, Confined, KEPT_BY_ROOT, Network};

/// The newest interface version that is used.
const NEWEST: ABI = ABI::V7;
/// Devices that programs write to.
const WRITTEN_BY_ALL: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// Directories for temporary files, shared among all programs.
const SHARED: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// The interface version of this kernel; `None`: it has none.
pub(super) fn version() -> Option<u32> {
    let versions = [ABI::V1, ABI::V2, ABI::V3, ABI::V4, ABI::V5, ABI::V6, ABI::V7];
    let newest = versions.into_iter().rev().find(|abi| has(*abi).is_ok())?;
    Some(newest as u32)
}

fn has(abi: ABI) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset = ruleset.handle_access(<AccessFs as landlock::Access>::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(<AccessNet as landlock::Access>::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(<Scope as landlock::Access>::from_all(abi))?;
    }
    ruleset.create().map(drop)
}

/// Restricts this process and all that it starts from now on.
pub(super) fn restrict(confined: &Confined) -> Result<(), String> {
    drop_capabilities().map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
    enforce(confined).map_err(|error| error.to_string())
}

/// Drops the capabilities with which the superuser could read the memory and the environment of
/// other processes, or change mounts.
fn drop_capabilities() -> std::io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let mut kept = CapabilitySet::empty();
    for (_, number) in KEPT_BY_ROOT {
        kept |= CapabilitySet::from_bits_retain(1 << number);
    }
    // Landlock needs `no_new_privs`, so that no program gets them back.
    let mut sets = capabilities(None)?;
    sets.effective &= kept;
    sets.permitted &= kept;
    sets.inheritable &= kept;
    Ok(set_capabilities(None, sets)?)
}

fn enforce(confined: &Confined) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(<AccessFs as landlock::Access>::from_all(NEWEST))?
        .scope(<Scope as landlock::Access>::from_all(NEWEST))?;
    if confined.sandbox.network == Network::Off {
        ruleset = ruleset.handle_access(<AccessNet as landlock::Access>::from_all(NEWEST))?;
    }
    let mut created = ruleset.create()?;
    for (path, access) in grants(confined) {
        // A path that no longer exists needs no rule.
        let Ok(opened) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        if !access.is_empty() {
            created = created.add_rule(PathBeneath::new(opened, access))?;
        }
    }
    created.restrict_self().map(drop)
}

/// The rights to grant, by path.
fn grants(confined: &Confined) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let mut places: Vec<(PathBuf, Access)> = vec![("/".into(), Access::Read)];
    let shared = if confined.sandbox.private { &[][..] } else { &SHARED };
    let by_all =
        WRITTEN_BY_ALL.iter().chain(shared).filter_map(|path| Path::new(path).canonicalize().ok());
    places.extend(by_all.chain([confined.temporary.clone()]).map(|path| (path, Access::Write)));
    places.extend(confined.places());
    let mut grants = Vec::new();
    grant(Path::new("/"), Access::Read, &places, &mut grants);
    grants
}

/// Grants the rights of a directory or file, and separately those of places within it.
fn grant(
    path: &Path,
    inherited: Access,
    places: &[(PathBuf, Access)],
    grants: &mut Vec<(PathBuf, BitFlags<AccessFs>)>,
) {
    let own =
        places.iter().rfind(|(place, _)| place == path).map_or(inherited, |(_, access)| *access);
    let within: Vec<_> =
        places.iter().filter(|(place, _)| place != path && place.starts_with(path)).collect();
    if within.iter().all(|(_, access)| *access <= own) {
        grants.push((path.to_owned(), rights(own)));
        let looser = within.into_iter().filter(|(_, access)| *access < own);
        grants.extend(looser.map(|(place, access)| (place.clone(), rights(*access))));
        return;
    }
    if own != Access::Hidden {
        grants.push((path.to_owned(), AccessFs::ReadDir.into()));
    }
    // Links get no rule: their target has a path of its own.
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    for entry in entries {
        grant(&entry.path(), own, places, grants);
    }
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    match access {
        Access::Write => <AccessFs as landlock::Access>::from_all(NEWEST),
        Access::Read => AccessFs::from_read(NEWEST),
        Access::Hidden => BitFlags::EMPTY,
    }
}
