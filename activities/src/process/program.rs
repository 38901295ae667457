//! The program of a supervisor: started, plain or in a sandbox, its children taken leave of, its
//! whole tree ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::Signal as SignalStream;
use tokio::time::Instant;

use super::sandbox::{Confined, INSIDE, Level, RESTRICTED, Report, command_of};
use super::supervise::{Order, Stop};
use super::tree;
use super::verdict::Ending;

/// How long processes are given to go after SIGKILL: one that hangs in the kernel may never.
const LAST_RESORT: Duration = Duration::from_secs(10);
/// How often the tree is looked at while it is being ended.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A program at work.
pub(super) struct Program {
    /// The child: the program itself, or what it is wrapped in.
    pid: Pid,
    /// How the child ended.
    ending: Option<Ending>,
    inside: Option<Inside>,
}

/// What is known of a program in a sandbox.
struct Inside {
    /// Whether a process of ours stays inside, between the wrapper and the program.
    has_init: bool,
    reports: Option<pipe::Receiver>,
    /// What was read of an unfinished line, or was no report.
    said: Vec<u8>,
    is_ready: bool,
    ending: Option<Ending>,
}

impl Program {
    /// Starts what a supervisor is told to start.
    pub(super) fn start(order: &Order) -> io::Result<Self> {
        let input = order
            .input
            .as_ref()
            .map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
        let output = || io::stdout().as_fd().try_clone_to_owned();
        // Reaped by number, together with the lost children.
        let Some(confined) = &order.confined else {
            let mut command = Command::new(&order.program);
            command
                .args(&order.args)
                .stdin(input)
                .stdout(output()?)
                .stderr(output()?)
                .process_group(0);
            let child = command.spawn()?;
            return Ok(Self {
                pid: Pid::from_raw(child.id().cast_signed()),
                ending: None,
                inside: None,
            });
        };
        let (reports, theirs) = io::pipe()?;
        // The file that this process runs, whatever stands at its path now. It stays open in what
        // is started.
        let own = File::open("/proc/self/exe")?;
        fcntl(&own, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut command =
            confine(order, confined, format!("/proc/self/fd/{}", own.as_raw_fd()).into())?;
        let child =
            command.stdin(input).stdout(output()?).stderr(theirs).process_group(0).spawn()?;
        let inside = Inside {
            has_init: confined.sandbox.level == Level::Bubblewrap,
            reports: Some(pipe::Receiver::from_owned_fd(reports.into())?),
            said: Vec::new(),
            is_ready: false,
            ending: None,
        };
        Ok(Self {
            pid: Pid::from_raw(child.id().cast_signed()),
            ending: None,
            inside: Some(inside),
        })
    }

    /// Whether the program has ended, although what it is wrapped in may not have.
    pub(super) fn is_over(&self) -> bool {
        self.ending.is_some() || self.inside.as_ref().is_some_and(|inside| inside.ending.is_some())
    }

    /// How it ended, once everything of it is over.
    pub(super) fn ending(self) -> Option<Ending> {
        let Some(inside) = self.inside else { return self.ending };
        if inside.ending.is_some() {
            return inside.ending;
        }
        match self.ending {
            Some(Ending::Exited { .. }) if !inside.is_ready => {
                let said = String::from_utf8_lossy(&inside.said).trim().to_owned();
                let error =
                    if said.is_empty() { "it ended without a word".to_owned() } else { said };
                Some(Ending::NotConfined { error })
            }
            // With the first process in its namespace, everything inside was killed.
            Some(Ending::Exited { code: 129.. }) if inside.has_init => {
                Some(Ending::Signalled { signal: Signal::SIGKILL as i32 })
            }
            ending => ending,
        }
    }

    /// Takes the next report from within a sandbox; never returns when there is none to come.
    pub(super) async fn reported(&mut self) {
        let Some(inside) = &mut self.inside else { return std::future::pending().await };
        let Some(reports) = &mut inside.reports else { return std::future::pending().await };
        let mut piece = [0; 4096];
        match reports.read(&mut piece).await {
            Ok(length @ 1..) => inside.take(&piece[..length]),
            _ => inside.reports = None,
        }
    }

    /// Takes leave of every child that has ended, the lost ones that became ours too.
    pub(super) fn reap(&mut self) {
        loop {
            let (pid, ending) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Ending::Exited { code }),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    (pid, Ending::Signalled { signal: signal as i32 })
                }
                // A child is gone by a signal that nix has no name for (SIGRTMIN…), and nobody says
                // which.
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

    /// Whether a process only holds the sandbox: it ends when the sandbox is empty, and SIGTERM
    /// would end it before.
    fn is_holder(&self, pid: i32) -> bool {
        pid == self.pid.as_raw() && self.inside.as_ref().is_some_and(|inside| inside.has_init)
    }

    /// Takes the reports that are left when everything has ended.
    async fn last_reports(&mut self) {
        let is_open =
            |program: &Self| program.inside.as_ref().is_some_and(|inside| inside.reports.is_some());
        while is_open(self) {
            self.reported().await;
        }
    }
}

impl Inside {
    fn take(&mut self, piece: &[u8]) {
        self.said.extend_from_slice(piece);
        while let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
            let Ok(report) = serde_json::from_slice(&self.said[..end]) else { return };
            self.said.drain(..=end);
            match report {
                Report::Ready => self.is_ready = true,
                Report::Ended(ending) => self.ending = Some(ending),
            }
        }
    }
}

/// The command that runs an order's program in its sandbox, given the file of this program.
fn confine(order: &Order, confined: &Confined, own: OsString) -> io::Result<Command> {
    let mut inside = vec![own];
    inside.extend(leading_args(order));
    let mut command = match confined.sandbox.level {
        Level::Bubblewrap => {
            inside.push(INSIDE.into());
            inside.extend([&order.program].into_iter().chain(&order.args).cloned());
            let mut command = Command::new(&confined.bwrap);
            command.args(command_of(confined, &std::env::current_dir()?, inside));
            command
        }
        Level::Landlock => {
            inside.push(RESTRICTED.into());
            inside.extend(order.to_args());
            let mut command = Command::new(&inside[0]);
            command.args(&inside[1..]);
            command
        }
    };
    command.env("TMPDIR", confined.temporary_inside());
    Ok(command)
}

/// The arguments of this process before its order: what makes it a supervisor.
fn leading_args(order: &Order) -> Vec<OsString> {
    let mut args: Vec<_> = std::env::args_os().skip(1).collect();
    args.truncate(args.len().saturating_sub(order.to_args().len()));
    args
}

/// Ends all that the program left, and the program. Returns what could not be ended.
pub(super) async fn end_tree(
    program: &mut Program,
    children: &mut SignalStream,
    stop: &mut Stop,
    grace: Duration,
) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let mut kill_at = Instant::now() + grace;
    let give_up_at = kill_at + LAST_RESORT;
    let (mut told, mut has_killed) = (HashSet::new(), false);
    loop {
        let left = tree::descendants(own, program.pid.as_raw());
        // After the look: what the look saw as ended is reaped for certain.
        program.reap();
        let now = Instant::now();
        if left.is_empty() && program.ending.is_some() {
            program.last_reports().await;
            return left;
        }
        // We may have been held up ourselves: nobody is given up who was not killed.
        if now >= give_up_at && has_killed {
            return left;
        }
        has_killed = now >= kill_at;
        for pid in left {
            if has_killed {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
            } else if !program.is_holder(pid) && told.insert(pid) {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGTERM);
                // One that is stopped would not hear the other.
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        }
        tokio::select! {
            _ = children.recv() => {}
            () = program.reported() => {}
            () = stop.urged() => kill_at = Instant::now(),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}
