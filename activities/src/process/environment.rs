//! The environment of agents, set-up scripts and checks: an allow-list, never the whole of
//! Longhaul's own.
//!
//! | variable | given to | meaning |
//! |---|---|---|
//! | `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `TZ`, `TMPDIR` | all | inherited |
//! | `LANG`, `LANGUAGE`, `LC_*` | all | inherited |
//! | `CARGO_HOME`, `RUSTUP_HOME`, `RUSTUP_TOOLCHAIN` | all | inherited |
//! | `XDG_CACHE_HOME`, `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `XDG_STATE_HOME` | all | inherited |
//! | `SSL_CERT_FILE`, `SSL_CERT_DIR` | all | inherited |
//! | `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`, also in upper case | all | inherited |
//! | names in `pass_env` | all | inherited; for agents from `[agent]`, else from `[project]` |
//! | names in `[agent] env` | agents | the values at the start of the session |
//! | `LONGHAUL_OWNER`, `LONGHAUL_SESSION_KEY` | all | marks of Longhaul's processes; keep them |
//! | `LONGHAUL_FEATURE_ID` | all | the id of the feature |
//! | `LONGHAUL_COMMIT` | checks | the commit under test |
//! | `LONGHAUL_PROMPT_FILE` | agents | the prompt; it is on standard input too |
//! | `LONGHAUL_FEATURE_FILE` | agents | the feature as JSON |
//! | `LONGHAUL_NOTES_FILE` | agents | the file for notes to the next session; 64 KiB are read |
//! | `LONGHAUL_CONTEXT_FULL_FILE` | agents | create it when the context is full |
//! | `LONGHAUL_RUN_ID` | agents | the id of the run |
//! | `LONGHAUL_SESSION` | agents | the number of the session in the run, from 1 |
//! | `LONGHAUL_REASON` | agents | the reason of the session, see below |
//!
//! A later row overrides an earlier one. The reason is one of `start`, `continue`, `retry`,
//! `repair`, `gates_failed` and `conflict`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const PASSED_ON: [&str; 19] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
const PASSED_ON_IN_BOTH_CASES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];
const PATH_WHEN_WE_HAVE_NONE: &str = "/usr/local/bin:/usr/bin:/bin";

/// The whole environment of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The usual variables of Longhaul's own environment, and those named in `pass_env`.
    pub fn chosen(pass_env: &[String]) -> Self {
        Self::chosen_from(std::env::vars_os(), pass_env)
    }

    /// As [`Environment::chosen`], from the given variables.
    pub fn chosen_from(
        source: impl IntoIterator<Item = (OsString, OsString)>,
        pass_env: &[String],
    ) -> Self {
        let wanted = |name: &OsStr| {
            name.to_str().is_some_and(|name| is_usual(name) || pass_env.iter().any(|n| n == name))
        };
        let mut chosen: BTreeMap<_, _> =
            source.into_iter().filter(|(name, _)| wanted(name)).collect();
        chosen.entry("PATH".into()).or_insert_with(|| PATH_WHEN_WE_HAVE_NONE.into());
        Self(chosen)
    }

    /// Sets a variable, replacing an old value.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Sets variables, replacing old values.
    #[must_use]
    pub(crate) fn with_all<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        self.0.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The first variable that no system accepts.
    pub(super) fn first_invalid(&self) -> Option<String> {
        let impossible = |name: &OsStr, value: &OsStr| {
            let name = name.as_encoded_bytes();
            let value = value.as_encoded_bytes();
            name.is_empty() || name.contains(&b'=') || name.contains(&0) || value.contains(&0)
        };
        self.iter()
            .find(|(name, value)| impossible(name, value))
            .map(|(name, _)| name.to_string_lossy().into_owned())
    }
}

fn is_usual(name: &str) -> bool {
    PASSED_ON.contains(&name)
        || name.starts_with("LC_")
        || PASSED_ON_IN_BOTH_CASES
            .iter()
            .any(|usual| name == *usual || name == usual.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &[(&str, &str)], pass_env: &[&str], expected: &str) {
        let source = source.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let pass_env: Vec<_> = pass_env.iter().map(|name| (*name).to_owned()).collect();
        let chosen = Environment::chosen_from(source, &pass_env);
        let text: Vec<_> = chosen
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(text.join(" "), expected);
    }

    #[test]
    fn only_usual_and_named_variables_are_passed_on() {
        let ours = [
            ("PATH", "/bin"),
            ("SECRET_TOKEN", "x"),
            ("LC_ALL", "C"),
            ("HTTPS_PROXY", "p"),
            ("LONGHAUL_OWNER", "o"),
        ];
        check(&ours, &[], "HTTPS_PROXY=p LC_ALL=C PATH=/bin");
        check(
            &ours,
            &["SECRET_TOKEN", "NOT_SET"],
            "HTTPS_PROXY=p LC_ALL=C PATH=/bin SECRET_TOKEN=x",
        );
    }

    #[test]
    fn there_is_always_a_path() {
        check(&[], &[], "PATH=/usr/local/bin:/usr/bin:/bin");
    }

    #[test]
    fn what_no_system_can_set_is_found() {
        let fine = Environment::chosen_from([], &[]).with("A", "b=c");
        assert_eq!(fine.first_invalid(), None);
        assert_eq!(fine.clone().with("A=B", "").first_invalid(), Some("A=B".into()));
        assert_eq!(fine.with("A", "\0").first_invalid(), Some("A".into()));
    }
}
