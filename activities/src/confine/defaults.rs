//! Default write access in the home directory, where `[agent] write` is not set.

use std::path::{Path, PathBuf};

use crate::process::{Environment, Sandbox};

/// State of agents, and caches of package managers, relative to the home directory. Installed
/// programs are excluded: later they run outside of the sandbox.
const WRITTEN: [&str; 25] = [
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".local/share/opencode",
    ".local/state/opencode",
    ".cache",
    ".npm",
    ".pnpm-store",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    "go/pkg/mod",
    "go/pkg/sumdb",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/daemon",
    ".m2/repository",
    ".nuget/packages",
    ".ivy2/cache",
    ".hex",
];
/// Exceptions: settings of agents, because commands in them also run outside of the sandbox.
const READ: [&str; 12] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/CLAUDE.md",
    ".claude/hooks",
    ".claude/commands",
    ".claude/agents",
    ".claude/skills",
    ".claude/plugins",
    ".codex/config.toml",
    ".codex/AGENTS.md",
    ".codex/prompts",
    ".gemini/settings.json",
];
/// The same directories, relocated by variables.
const WRITTEN_BY_VARIABLE: [(&str, &str); 6] = [
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", ".package-cache"),
    ("XDG_CACHE_HOME", ""),
    ("CLAUDE_CONFIG_DIR", ""),
    ("CODEX_HOME", ""),
];

pub(super) fn add(home: &Path, env: &Environment, sandbox: &mut Sandbox) {
    sandbox.writable.extend(WRITTEN.iter().map(|path| home.join(path)));
    sandbox.readable.extend(READ.iter().map(|path| home.join(path)));
    let elsewhere = WRITTEN_BY_VARIABLE.iter().filter_map(|(name, path)| {
        let directory =
            env.get(name).map(PathBuf::from).filter(|directory| directory.is_absolute())?;
        Some(if path.is_empty() { directory } else { directory.join(path) })
    });
    sandbox.writable.extend(elsewhere);
}
