//! The command line of a supervisor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::sandbox::Confined;

/// The arguments of a supervisor:
/// `--grace-ms N [--input FILE] [--outcome FILE] [SANDBOX] -- PROGRAM ARG…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpawnRequest {
    pub(super) grace: Duration,
    pub(super) input: Option<PathBuf>,
    /// The file in which the outcome is kept.
    pub(super) outcome: Option<PathBuf>,
    pub(super) confined: Option<Confined>,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
}

impl SpawnRequest {
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args = vec!["--grace-ms".into(), self.grace.as_millis().to_string().into()];
        if let Some(input) = &self.input {
            args.extend(["--input".into(), input.into()]);
        }
        if let Some(outcome) = &self.outcome {
            args.extend(["--outcome".into(), outcome.into()]);
        }
        args.extend(self.confined.iter().flat_map(Confined::to_args));
        args.extend(["--".into(), self.program.clone()]);
        args.extend(self.args.iter().cloned());
        args
    }

    pub(super) fn from_args(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let mut grace = None;
        let mut input = None;
        let mut outcome = None;
        let mut confined = None;
        loop {
            match args.next()?.to_str()? {
                "--grace-ms" => {
                    grace = Some(Duration::from_millis(args.next()?.to_str()?.parse().ok()?));
                }
                "--input" => input = Some(args.next()?.into()),
                "--outcome" => outcome = Some(args.next()?.into()),
                "--" => break,
                option => Confined::take(&mut confined, option, args.next()?)?,
            }
        }
        let grace = grace?;
        let program = args.next()?;
        Some(Self { grace, input, outcome, confined, program, args: args.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sandbox::{Level, Network, Sandbox};
    use super::*;

    #[test]
    fn an_order_survives_the_command_line() {
        let order = SpawnRequest {
            grace: Duration::from_millis(1500),
            input: Some("/a b".into()),
            outcome: Some("/an outcome".into()),
            confined: Some(Confined {
                sandbox: Sandbox {
                    level: Level::Bubblewrap,
                    writable: vec!["/a tree".into()],
                    readable: vec!["/b".into(), "/c".into()],
                    hidden: vec!["/d".into()],
                    network: Network::Loopback,
                    private: true,
                },
                temporary: "/data/tmp/x".into(),
                bwrap: "/usr/bin/bwrap".into(),
            }),
            program: "sh".into(),
            args: vec!["--".into(), "--input".into(), "x".into()],
        };
        assert_eq!(SpawnRequest::from_args(order.to_args()), Some(order.clone()));
        let order = SpawnRequest { confined: None, ..order };
        assert_eq!(SpawnRequest::from_args(order.to_args()), Some(order));
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for args in [
            &["--help"][..],
            &[],
            &["--grace-ms", "x", "--", "sh"],
            &["--grace-ms", "1", "--"],
            &["--", "sh"],
        ] {
            assert_eq!(SpawnRequest::from_args(args.iter().map(OsString::from)), None, "{args:?}");
        }
    }
}
