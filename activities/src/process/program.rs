//! The program of a supervisor: starts it, plain or in a sandbox, reaps its children, ends its
//! whole tree.

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

use super::input;
use super::sandbox::{Confined, INSIDE, Level, RESTRICTED, Report, command_of};
use super::spawn_request::SpawnRequest;
use super::stop::Stop;
use super::tree;
use super::verdict::Ending;

/// How long to wait after SIGKILL: a process that hangs in the kernel may never end.
const LAST_RESORT: Duration = Duration::from_secs(10);
/// The polling interval while the tree is being ended: only children report their end.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A running program.
pub(super) struct Program {
    /// The child: the program itself, or its sandbox wrapper.
    pid: Pid,
    /// How the child ended.
    ending: Option<Ending>,
    inside: Option<SandboxState>,
}

/// The state of a program in a sandbox.
struct SandboxState {
    /// Whether a process of Longhaul's stays inside, between the wrapper and the program.
    has_init: bool,
    reports: Option<pipe::Receiver>,
    /// The unfinished line.
    unparsed: Vec<u8>,
    /// The lines that are not reports: of the sandbox, or of the loader.
    other: Vec<u8>,
    is_ready: bool,
    ending: Option<Ending>,
}

impl Program {
    /// Starts the program of a supervisor's order.
    pub(super) fn start(order: &SpawnRequest) -> io::Result<Self> {
        let input = order
            .input
            .as_ref()
            .map_or_else(|| Ok(Stdio::null()), |path| input::open(path).map(Stdio::from))?;
        let output = || io::stdout().as_fd().try_clone_to_owned();
        // Reaped by pid, together with the orphans.
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
        // The file of this process, whatever lies at its path now. The child inherits the
        // descriptor.
        let own = File::open("/proc/self/exe")?;
        fcntl(&own, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let mut command =
            confine(order, confined, format!("/proc/self/fd/{}", own.as_raw_fd()).into())?;
        let child =
            command.stdin(input).stdout(output()?).stderr(theirs).process_group(0).spawn()?;
        let inside = SandboxState {
            has_init: confined.sandbox.level == Level::Bubblewrap,
            reports: Some(pipe::Receiver::from_owned_fd(reports.into())?),
            unparsed: Vec::new(),
            other: Vec::new(),
            is_ready: false,
            ending: None,
        };
        Ok(Self {
            pid: Pid::from_raw(child.id().cast_signed()),
            ending: None,
            inside: Some(inside),
        })
    }

    /// Whether the program has ended; its wrapper may still run.
    pub(super) fn has_ended(&self) -> bool {
        self.ending.is_some() || self.inside.as_ref().is_some_and(|inside| inside.ending.is_some())
    }

    /// How the program ended, as soon as that is known; its processes may still run.
    pub(super) fn ended(&self) -> Option<&Ending> {
        self.inside.as_ref().map_or(self.ending.as_ref(), |inside| inside.ending.as_ref())
    }

    /// Its exit status, once its whole tree has ended.
    pub(super) fn ending(self) -> Option<Ending> {
        let Some(inside) = self.inside else { return self.ending };
        if inside.ending.is_some() {
            return inside.ending;
        }
        match self.ending {
            Some(Ending::Exited { .. }) if !inside.is_ready => {
                let text = [&inside.other[..], &inside.unparsed].concat();
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                let error =
                    if text.is_empty() { "it ended without a message".to_owned() } else { text };
                Some(Ending::NotConfined { error })
            }
            // The end of the first process in the namespace killed everything inside.
            Some(Ending::Exited { code: 129.. }) if inside.has_init => {
                Some(Ending::Signalled { signal: Signal::SIGKILL as i32 })
            }
            ending => ending,
        }
    }

    /// Takes the next report from within a sandbox; pends forever if there is none to come.
    pub(super) async fn reported(&mut self) {
        let Some(inside) = &mut self.inside else { return std::future::pending().await };
        let Some(reports) = &mut inside.reports else { return std::future::pending().await };
        let mut piece = [0; 4096];
        match reports.read(&mut piece).await {
            Ok(length @ 1..) => inside.take(&piece[..length]),
            _ => inside.reports = None,
        }
    }

    /// Reaps every child that has ended, with the orphans that were reparented to this process.
    /// Returns whether there is no child any more.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            let (pid, ending) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Ending::Exited { code }),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    (pid, Ending::Signalled { signal: signal as i32 })
                }
                // A signal without a name in nix (SIGRTMIN…) ended a child; the error does not name
                // the child.
                Err(Errno::EINVAL) if signal::kill(self.pid, None).is_err() => {
                    (self.pid, Ending::Signalled { signal: 0 })
                }
                Err(Errno::EINVAL | Errno::EINTR) => continue,
                outcome => return outcome == Err(Errno::ECHILD),
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

    /// Takes the remaining reports when everything has ended.
    async fn last_reports(&mut self) {
        let is_open =
            |program: &Self| program.inside.as_ref().is_some_and(|inside| inside.reports.is_some());
        while is_open(self) {
            self.reported().await;
        }
    }
}

impl SandboxState {
    fn take(&mut self, piece: &[u8]) {
        self.unparsed.extend_from_slice(piece);
        while let Some(end) = self.unparsed.iter().position(|byte| *byte == b'\n') {
            let report = serde_json::from_slice(&self.unparsed[..end]);
            match report {
                Ok(Report::Ready) => self.is_ready = true,
                Ok(Report::Ended(ending)) => self.ending = Some(ending),
                // The sandbox or the loader wrote it.
                Err(_) => self.other.extend_from_slice(&self.unparsed[..=end]),
            }
            self.unparsed.drain(..=end);
        }
    }
}

/// The command that runs an order's program in its sandbox, given the file of this program.
fn confine(order: &SpawnRequest, confined: &Confined, own: OsString) -> io::Result<Command> {
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
    let temporary = confined.temporary_inside();
    command.env("TMPDIR", temporary);
    if confined.sandbox.private {
        command.env("XDG_CACHE_HOME", temporary.join("cache"));
    }
    Ok(command)
}

/// The arguments before the order, which make this process a supervisor.
fn leading_args(order: &SpawnRequest) -> Vec<OsString> {
    let mut args: Vec<_> = std::env::args_os().skip(1).collect();
    args.truncate(args.len().saturating_sub(order.to_args().len()));
    args
}

/// Ends the program and its descendants. Returns the processes that could not be ended.
pub(super) async fn end_tree(
    program: &mut Program,
    children: &mut SignalStream,
    stop: &mut Stop,
    grace: Duration,
) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let mut kill_at = Instant::now() + grace;
    let give_up_at = kill_at + LAST_RESORT;
    let mut signalled_pids = HashSet::new();
    let mut has_killed = false;
    // Most programs leave nothing behind, and to list all processes of the machine takes long.
    let list_at = if program.has_ended() { Instant::now() + LOOK_AGAIN } else { Instant::now() };
    loop {
        // Orphans are children of this process, too.
        let is_alone = program.reap() && cfg!(target_os = "linux");
        let now = Instant::now();
        if !is_alone && now < list_at {
            tokio::select! {
                _ = children.recv() => {}
                () = program.reported() => {}
                () = tokio::time::sleep_until(list_at) => {}
            }
            continue;
        }
        let left = if is_alone { Vec::new() } else { tree::descendants(own, program.pid.as_raw()) };
        // After the listing, so that every process listed as ended is reaped.
        program.reap();
        if left.is_empty() && program.ending.is_some() {
            program.last_reports().await;
            return left;
        }
        // This process may have been held up: give up only after SIGKILL was sent.
        if now >= give_up_at && has_killed {
            return left;
        }
        has_killed = now >= kill_at;
        for pid in left {
            if has_killed {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
            } else if !program.is_holder(pid) && signalled_pids.insert(pid) {
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGTERM);
                // A stopped process would not handle SIGTERM.
                let _ = signal::kill(Pid::from_raw(pid), Signal::SIGCONT);
            }
        }
        tokio::select! {
            _ = children.recv() => {}
            () = program.reported() => {}
            () = stop.asked_again() => kill_at = Instant::now(),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}
