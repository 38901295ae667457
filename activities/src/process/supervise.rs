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
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::outcome;
use super::program::{self, Program};
use super::sandbox::{INSIDE, inside_main};
#[cfg(target_os = "linux")]
use super::sandbox::{RESTRICTED, restricted_main};
use super::spawn_request::SpawnRequest;
use super::stop::Stop;
use super::verdict::{Ending, Verdict};

/// The first descriptor after standard input, output and error.
const FIRST_DESCRIPTOR: i32 = 3;

/// The entry point of the hidden command `supervise-process`, given the arguments after it. Must be
/// called before the process has other threads or an asynchronous runtime.
pub fn supervise_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // An open file of the host would lead the program out of its sandbox, past read-only mounts:
    // also the file of this binary, which the supervisor passes on to be started again.
    close_fds::set_fds_cloexec(FIRST_DESCRIPTOR, &[]);
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
