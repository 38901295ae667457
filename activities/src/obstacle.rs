//! Reasons why no session of an agent can succeed, and programs that cannot be started.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A condition with which no session of an agent can succeed, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {advice}")]
pub struct Obstacle {
    /// The missing or wrong part.
    pub problem: String,
    /// The remedy.
    pub advice: String,
}

impl Obstacle {
    pub(crate) fn new(problem: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { problem: problem.into(), advice: advice.into() }
    }
}

/// Why a program cannot be started. A name with a slash is relative to the project, any other is
/// searched in `PATH`.
pub fn why_not(root: &Path, program: &str) -> Option<&'static str> {
    if !program.contains('/') {
        return find(program).is_none().then_some("is not there");
    }
    match root.join(program) {
        file if is_program(&file) => None,
        file if file.is_file() => {
            Some("is no program: its file may not be executed (`chmod +x` makes it one)")
        }
        _ => Some("is not there"),
    }
}

fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| is_program(file))
}
