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
/// The configuration directories of agents: where they are in the home directory, the variable that
/// moves them, and the settings in them. Those are not writable, because commands in them also run
/// outside of the sandbox. A name that ends with a slash is a directory.
const SETTINGS: [(&str, Option<&str>, &[&str]); 3] = [
    (
        ".claude",
        Some("CLAUDE_CONFIG_DIR"),
        &[
            "settings.json",
            "settings.local.json",
            "CLAUDE.md",
            "hooks/",
            "commands/",
            "agents/",
            "skills/",
            "plugins/",
            "rules/",
        ],
    ),
    (
        ".codex",
        Some("CODEX_HOME"),
        &["config.toml", "AGENTS.md", "hooks.json", "prompts/", "rules/", "skills/"],
    ),
    (
        ".gemini",
        None,
        &[
            "settings.json",
            "GEMINI.md",
            ".env",
            "commands/",
            "extensions/",
            "skills/",
            "hooks/",
            "policies/",
        ],
    ),
];
/// Caches that variables move.
const WRITTEN_BY_VARIABLE: [(&str, &str); 4] = [
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", ".package-cache"),
    ("XDG_CACHE_HOME", ""),
];

pub(super) fn add(home: &Path, env: &Environment, sandbox: &mut Sandbox) {
    let moved =
        |name: &str| env.get(name).map(PathBuf::from).filter(|directory| directory.is_absolute());
    sandbox.writable.extend(WRITTEN.iter().map(|path| home.join(path)));
    sandbox.writable.extend(
        WRITTEN_BY_VARIABLE.iter().filter_map(|(name, path)| Some(moved(name)?.join(path))),
    );
    for (usual, variable, settings) in SETTINGS {
        let moved = variable.and_then(moved);
        sandbox.writable.extend(moved.clone());
        for directory in [Some(home.join(usual)), moved].into_iter().flatten() {
            for name in settings {
                let path = directory.join(name.trim_end_matches('/'));
                if directory.is_dir() && path.symlink_metadata().is_err() {
                    create_empty(&path, name);
                }
                sandbox.readable.push(path);
            }
        }
    }
}

/// Creates a file or directory of settings without content: only one that is there can be mounted
/// read-only, and an agent could create a missing one.
fn create_empty(path: &Path, name: &str) {
    let created = match name {
        name if name.ends_with('/') => std::fs::create_dir(path),
        _ if path.extension().is_some_and(|end| end == "json") => std::fs::write(path, "{}\n"),
        _ => std::fs::write(path, ""),
    };
    if let Err(error) = created {
        tracing::warn!(path = %path.display(), "an agent can create this file: {error}");
    }
}
