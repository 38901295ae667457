//! Whether a process descends from a session, a set-up script or a check.

use std::path::Path;

use super::{CALL_VARIABLE, OWNER_VARIABLE, owner_id, tree};

/// The call, `<run>@<slot>`, in which the owner of a data directory started a process or one of its
/// ancestors; `None`: it did not.
///
/// The supervisor of a program carries the marks, and orphans become its children. So a program
/// escapes neither by clearing its environment nor by leaving its parent.
pub fn call_of(pid: i32, data_dir: &Path) -> Option<String> {
    let owner = format!("{OWNER_VARIABLE}={}", owner_id(data_dir));
    // The outermost is the supervisor, whose marks a program cannot choose.
    tree::ancestors(pid).into_iter().rev().find_map(|ancestor| {
        let variables = tree::variables(ancestor)?;
        let call = variables
            .iter()
            .find_map(|variable| variable.strip_prefix(CALL_VARIABLE)?.strip_prefix('='));
        variables.contains(&owner).then(|| call.unwrap_or("unknown").to_owned())
    })
}
