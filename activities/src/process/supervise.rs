//! The supervisor: a small process between Longhaul and a program. It ends the whole tree of the
//! program when the program ends, on request, and when Longhaul is gone.
//!
//! Its standard input is a pipe from the owner: any byte, or its end, means *stop*. Its standard
//! output is the output of the program. Its standard error carries one line, the verdict.
//!
//! With a sandbox, the program is a grandchild at best: the child is `bwrap`, or this binary again,
//! which restricts itself and becomes the program. Reports from inside are read from the standard
//! error of that child.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::Instant;

use super::outcome;
use super::program::{self, Program};
use super::sandbox::{Confined, INSIDE, inside_main};
#[cfg(target_os = "linux")]
use super::sandbox::{RESTRICTED, restricted_main};
use super::verdict::{Ending, Verdict};

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

    fn from_args(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
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

/// The entry point of the hidden command `supervise-process`, given the arguments after it. Must be
/// called before the process has other threads or an asynchronous runtime.
pub fn supervise_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    if args.next_if(|first| first == INSIDE).is_some() {
        return inside_main(args);
    }
    #[cfg(target_os = "linux")]
    if args.next_if(|first| first == RESTRICTED).is_some() {
        return match SpawnRequest::from_args(args) {
            Some(SpawnRequest { confined: Some(confined), program, args, .. }) => {
                restricted_main(&confined, program, args)
            }
            _ => ExitCode::from(2),
        };
    }
    let complain = |text: &str| {
        // The reader may be gone.
        let _ = writeln!(io::stderr(), "longhaul supervise-process: {text}");
        ExitCode::from(2)
    };
    let Some(order) = SpawnRequest::from_args(args) else {
        return complain(
            "internal: Longhaul starts this itself, around every agent and every check",
        );
    };
    // Fails for the leader of a process group, which already has its own group.
    let _ = unistd::setsid();
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        return complain(&format!("cannot become the parent of lost children: {error}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(supervise(&order))) {
        Ok(verdict) => {
            let line = serde_json::to_string(&verdict).expect("a verdict has a JSON form");
            let _ = writeln!(io::stderr(), "{line}");
            ExitCode::SUCCESS
        }
        Err(error) => complain(&error.to_string()),
    }
}

async fn supervise(order: &SpawnRequest) -> io::Result<Verdict> {
    let mut children = signal(SignalKind::child())?;
    let mut stop = Stop::new()?;
    let begun = Instant::now();
    let mut program = match Program::start(order) {
        Ok(program) => program,
        Err(error) => {
            return Ok(Verdict {
                ending: Ending::not_started(&error),
                stopped: false,
                left: Vec::new(),
            });
        }
    };
    loop {
        program.reap();
        if program.has_ended() {
            break;
        }
        tokio::select! {
            _ = children.recv() => {}
            () = program.reported() => {}
            () = stop.asked() => break,
        }
    }
    program.reap();
    // Takes a pending report.
    let _ = tokio::time::timeout(Duration::ZERO, program.reported()).await;
    let stopped = !program.has_ended();
    if let (Some(file), Some(ending)) = (&order.outcome, program.ended()) {
        outcome::keep(file, ending, begun.elapsed());
    }
    let left = program::end_tree(&mut program, &mut children, &mut stop, order.grace).await;
    let ending = program.ending().unwrap_or(Ending::Signalled { signal: Signal::SIGKILL as i32 });
    Ok(Verdict { ending, stopped, left })
}

/// The ways to ask a supervisor to stop.
pub(super) struct Stop {
    control: pipe::Receiver,
    signals: [SignalStream; 3],
}

impl Stop {
    fn new() -> io::Result<Self> {
        let control = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let [terminate, interrupt, hangup] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        Ok(Self { control, signals: [signal(terminate)?, signal(interrupt)?, signal(hangup)?] })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.control.read_u8() => {}
            () = signalled(&mut self.signals) => {}
        }
    }

    /// While it stops, a signal ends the grace period.
    pub(super) async fn asked_again(&mut self) {
        signalled(&mut self.signals).await;
    }
}

async fn signalled([terminate, interrupt, hangup]: &mut [SignalStream; 3]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
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
