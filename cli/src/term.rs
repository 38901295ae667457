//! Writing to standard error and standard output. What others have written is cleaned of control
//! sequences.

mod clean;

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;

use crate::exit::{self, Exit};

pub(crate) use clean::{Cleaner, clean};

/// Whether `-v` was given.
static VERBOSE: OnceLock<bool> = OnceLock::new();

/// Whether `-v` was given.
pub(crate) fn is_verbose() -> bool {
    VERBOSE.get().is_some_and(|verbose| *verbose)
}

/// Starts the log of this process: warnings, or what `LONGHAUL_LOG` or `-v` asks for, on standard
/// error.
pub(crate) fn start_log(verbose: u8) {
    let _ = VERBOSE.set(verbose > 0);
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let default = format!(
        "warn,longhaul_engine={level},longhaul_storage={level},longhaul_activities={level},longhaul_server={level},longhaul_cli={level}"
    );
    let filter =
        EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .try_init();
}

/// Prints a line on standard error.
pub(crate) fn say(line: impl std::fmt::Display) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{}", clean(&line.to_string()));
}

/// Shows a notice about a wait.
pub(crate) fn notice(line: &str) {
    say(line);
}

/// Why nothing more can be written to standard output.
static UNWRITABLE: OnceLock<std::io::Error> = OnceLock::new();

/// Prints a text for people on standard output. A failed write does not stop the command; `ending`
/// reports it.
pub(crate) fn print(text: impl std::fmt::Display) {
    pass_on(format!("{}\n", clean(&text.to_string())).as_bytes());
}

/// Prints data for programs on standard output: as it is, unless it goes to a terminal.
pub(crate) fn print_data(data: impl std::fmt::Display) {
    if std::io::stdout().is_terminal() {
        print(data);
    } else {
        pass_on(format!("{data}\n").as_bytes());
    }
}

/// Passes data on to standard output, as it comes.
pub(crate) fn pass_on(mut data: impl Read) {
    let mut out = std::io::stdout().lock();
    if UNWRITABLE.get().is_some() {
        return;
    }
    if let Err(error) = std::io::copy(&mut data, &mut out).and_then(|_| out.flush()) {
        let _ = UNWRITABLE.set(error);
    }
}

/// Whether standard output cannot be written any more.
pub(crate) fn is_over() -> bool {
    UNWRITABLE.get().is_some()
}

/// The exit code of a command. A closed pipe is ignored, as `head` closes it; any other failed
/// write is an error.
pub(crate) fn ending(exit: ExitCode) -> ExitCode {
    match UNWRITABLE.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(format!("longhaul: cannot write to standard output: {error}"));
            Exit::Operational.into()
        }
        _ => exit,
    }
}

/// Prints the text of `--help` or `--version`.
pub(crate) fn help(text: &clap::Error) -> ExitCode {
    if let Err(error) = text.print().and_then(|()| std::io::stdout().flush()) {
        let _ = UNWRITABLE.set(error);
    }
    ending(Exit::Ok.into())
}

/// Prints an error and returns its exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say(format!("longhaul: {error:#}"));
    exit::of(error).into()
}
