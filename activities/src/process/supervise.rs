//! The supervisor: a small process between us and a program, which ends the whole tree of the program when the program
//! ends, when we ask for it, and when we are gone.
//!
//! Its standard input is a pipe that the owner holds: anything that comes out of it, its end too, means *stop*. Its
//! standard output is the output of the program. Its standard error carries one line, the verdict.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{self, Pid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::Instant;

use super::tree;
use super::verdict::{Ending, Verdict};

/// How long processes are given to go after SIGKILL: one that hangs in the kernel may never.
const LAST_RESORT: Duration = Duration::from_secs(10);
/// How often the tree is looked at while it is being ended.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// The arguments of a supervisor: `--grace-ms N [--input FILE] -- PROGRAM ARG…`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) grace: Duration,
    pub(super) input: Option<PathBuf>,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
}

impl Order {
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args = vec!["--grace-ms".into(), self.grace.as_millis().to_string().into()];
        if let Some(input) = &self.input {
            args.extend(["--input".into(), input.into()]);
        }
        args.extend(["--".into(), self.program.clone()]);
        args.extend(self.args.iter().cloned());
        args
    }

    fn from_args(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let (mut grace, mut input) = (None, None);
        loop {
            match args.next()?.to_str()? {
                "--grace-ms" => grace = Some(Duration::from_millis(args.next()?.to_str()?.parse().ok()?)),
                "--input" => input = Some(args.next()?.into()),
                "--" => break,
                _ => return None,
            }
        }
        Some(Self { grace: grace?, input, program: args.next()?, args: args.collect() })
    }
}

/// What the hidden command `supervise-process` does, given the arguments after it. To be called before the process has
/// any other thread or an asynchronous runtime.
pub fn supervise_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let complain = |text: &str| {
        // Whoever reads this may be gone.
        let _ = writeln!(io::stderr(), "longhaul supervise-process: {text}");
        ExitCode::from(2)
    };
    let Some(order) = Order::from_args(args) else {
        return complain("not for people: Longhaul starts this itself, around every agent and every check");
    };
    // Refused to the leader of a process group, which has its own group already.
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

async fn supervise(order: &Order) -> io::Result<Verdict> {
    let mut children = signal(SignalKind::child())?;
    let mut stop = Stop::new()?;
    let pid = match start(order) {
        Ok(pid) => pid,
        Err(error) => {
            let ending = Ending::NotStarted { errno: error.raw_os_error(), error: error.to_string() };
            return Ok(Verdict { ending, stopped: false, left: Vec::new() });
        }
    };
    let mut program = Program { pid, ending: None };
    loop {
        program.reap();
        if program.ending.is_some() {
            break;
        }
        tokio::select! {
            _ = children.recv() => {}
            () = stop.asked() => break,
        }
    }
    program.reap();
    let stopped = program.ending.is_none();
    let left = end_tree(&mut program, &mut children, &mut stop, order.grace).await;
    let ending = program.ending.unwrap_or(Ending::Signalled { signal: Signal::SIGKILL as i32 });
    Ok(Verdict { ending, stopped, left })
}

fn start(order: &Order) -> io::Result<Pid> {
    let input = order.input.as_ref().map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
    let output = || io::stdout().as_fd().try_clone_to_owned();
    let mut command = Command::new(&order.program);
    command.args(&order.args).stdin(input).stdout(output()?).stderr(output()?).process_group(0);
    // Reaped by number, together with the lost children.
    let child = command.spawn()?;
    Ok(Pid::from_raw(child.id().cast_signed()))
}

/// The ways in which a supervisor is told to stop.
struct Stop {
    control: pipe::Receiver,
    signals: [SignalStream; 3],
}

impl Stop {
    fn new() -> io::Result<Self> {
        let control = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let [terminate, interrupt, hangup] = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        Ok(Self { control, signals: [signal(terminate)?, signal(interrupt)?, signal(hangup)?] })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.control.read_u8() => {}
            () = signalled(&mut self.signals) => {}
        }
    }

    /// Once it stops, a signal means that there is no time for grace.
    async fn urged(&mut self) {
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

struct Program {
    pid: Pid,
    ending: Option<Ending>,
}

impl Program {
    /// Takes leave of every child that has ended, the lost ones that became ours too.
    fn reap(&mut self) {
        loop {
            let (pid, ending) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Ending::Exited { code }),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Ending::Signalled { signal: signal as i32 }),
                // A child is gone by a signal that nix has no name for (SIGRTMIN…), and nobody says which.
                Err(Errno::EINVAL) if signal::kill(self.pid, None).is_err() => {
                    (self.pid, Ending::Signalled { signal: 0 })
                }
                Err(Errno::EINVAL | Errno::EINTR) => continue,
                _ => return,
            };
            if pid == self.pid && self.ending.is_none() {
                self.ending = Some(ending);
            }
        }
    }
}

/// Ends all that the program left, and the program. Returns what could not be ended.
async fn end_tree(program: &mut Program, children: &mut SignalStream, stop: &mut Stop, grace: Duration) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let mut kill_at = Instant::now() + grace;
    let give_up_at = kill_at + LAST_RESORT;
    let (mut told, mut has_killed) = (HashSet::new(), false);
    loop {
        let left = tree::descendants(own, program.pid.as_raw());
        // After the look: what the look saw as ended is reaped for certain.
        program.reap();
        let now = Instant::now();
        // We may have been held up ourselves: nobody is given up who was not killed.
        if (left.is_empty() && program.ending.is_some()) || (now >= give_up_at && has_killed) {
            return left;
        }
        has_killed = now >= kill_at;
        for pid in left {
            if has_killed {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
            } else if told.insert(pid) {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGTERM);
                // One that is stopped would not hear the other.
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        }
        tokio::select! {
            _ = children.recv() => {}
            () = stop.urged() => kill_at = Instant::now(),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_the_command_line() {
        let order = Order {
            grace: Duration::from_millis(1500),
            input: Some("/a b".into()),
            program: "sh".into(),
            args: vec!["--".into(), "--input".into(), "x".into()],
        };
        assert_eq!(Order::from_args(order.to_args()), Some(order));
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for args in [&["--help"][..], &[], &["--grace-ms", "x", "--", "sh"], &["--grace-ms", "1", "--"], &["--", "sh"]]
        {
            assert_eq!(Order::from_args(args.iter().map(OsString::from)), None, "{args:?}");
        }
    }
}
