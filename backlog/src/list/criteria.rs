//! Acceptance criteria and checks that are written in one key: objects with a command, and texts
//! that are either a command or a sentence.

use serde_json::Value;

/// Keys whose texts are commands or sentences.
pub(super) const MIXED_KEYS: [&str; 3] = ["verification", "verification_script", "tests"];

/// Keys of a criterion with its text.
const TEXT_KEYS: [&str; 7] =
    ["text", "description", "criterion", "criteria", "title", "name", "scenario"];
/// Keys of a criterion with its command.
const COMMAND_KEYS: [&str; 8] = [
    "testCommand",
    "test_command",
    "command",
    "cmd",
    "run",
    "verify_command",
    "verification_command",
    "verify",
];

/// The text of a criterion: a text, an object with one, or one with only a command.
pub(super) fn text_of(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let text = TEXT_KEYS.iter().find_map(|key| filled(value, key)).map(str::to_owned);
    text.or_else(|| command_of(value).map(|command| format!("`{command}` succeeds")))
}

/// The command of a criterion that is an object.
pub(super) fn command_of(value: &Value) -> Option<&str> {
    COMMAND_KEYS.iter().find_map(|key| filled(value, key))
}

fn filled<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The criteria and the commands under a key that may hold both.
pub(super) fn mixed(key: &str, value: &Value) -> (Vec<String>, Vec<String>) {
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let mut criteria = Vec::new();
    let mut commands = Vec::new();
    for value in values {
        let command = command_of(value).or_else(|| value.as_str().filter(|text| is_command(text)));
        if let Some(command) = command {
            commands.push(command.trim().to_owned());
        }
        match text_of(value).filter(|text| !text.trim().is_empty()) {
            Some(text) if Some(text.as_str()) == command => {}
            Some(text) if key == "tests" && is_path(&text) => {
                criteria.push(format!("The tests in `{}` pass", text.trim()));
            }
            Some(text) => criteria.push(text),
            None => {}
        }
    }
    (criteria, commands)
}

/// Whether a key that may hold commands and sentences holds nothing else.
pub(super) fn is_plain(value: &Value) -> bool {
    value.is_string() || value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
}

fn is_path(text: &str) -> bool {
    let text = text.trim();
    !text.contains(char::is_whitespace) && (text.contains('/') || text.contains('.'))
}

/// Whether a text is a shell command: one line that begins with a usual program or a script.
pub(super) fn is_command(text: &str) -> bool {
    const PROGRAMS: [&str; 64] = [
        "bash",
        "bats",
        "bin",
        "bun",
        "bundle",
        "bunx",
        "cargo",
        "cat",
        "cd",
        "cmake",
        "composer",
        "ctest",
        "curl",
        "dart",
        "deno",
        "diff",
        "docker",
        "docker-compose",
        "dotnet",
        "env",
        "eslint",
        "flutter",
        "git",
        "go",
        "gradle",
        "grep",
        "hatch",
        "helm",
        "jest",
        "jq",
        "just",
        "kubectl",
        "ls",
        "make",
        "mix",
        "mvn",
        "mypy",
        "nix",
        "node",
        "nox",
        "npm",
        "npx",
        "php",
        "phpunit",
        "playwright",
        "pnpm",
        "poetry",
        "psql",
        "pytest",
        "python",
        "python3",
        "rake",
        "rg",
        "rspec",
        "ruby",
        "ruff",
        "sbt",
        "sh",
        "swift",
        "task",
        "test",
        "tox",
        "uv",
        "yarn",
    ];
    const OTHERS: [&str; 12] = [
        "vitest",
        "tsc",
        "tsx",
        "terraform",
        "xcodebuild",
        "zig",
        "timeout",
        "time",
        "!",
        "[",
        "true",
        "false",
    ];
    let text = text.trim();
    // `npm run build + preview by hand` and `make check, then look at it` are sentences.
    if text.contains('\n')
        || [" + ", ", then ", " (manual", "manual"].iter().any(|part| text.contains(part))
    {
        return false;
    }
    let is_assignment = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    let Some(first) = text.split_whitespace().find(|word| !is_assignment(word)) else {
        return false;
    };
    let is_script = ["./", "../"].iter().any(|start| first.starts_with(start))
        || first.contains('/') && first.rsplit_once('.').is_some_and(|(_, end)| end == "sh");
    PROGRAMS.contains(&first) || OTHERS.contains(&first) || is_script
}
