//! Writes to standard error and standard output. Removes control sequences from foreign text.

mod clean;
pub(crate) mod inline;

use std::borrow::Cow;
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

/// Initialises logging to standard error: warnings, or the levels of `LONGHAUL_LOG` or `-v`.
pub(crate) fn start_log(verbose: u8) {
    let _ = VERBOSE.set(verbose > 0);
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    // What MCP connections fail with is part of the failure of the session.
    let default = format!(
        "warn,rmcp=off,longhaul_engine={level},longhaul_storage={level},\
             longhaul_activities={level},longhaul_server={level},longhaul_cli={level}"
    );
    let filter =
        EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(|| Log)
        .try_init();
}

/// The data directory as it was given on the command line, quoted for a shell.
static DATA_DIR: OnceLock<String> = OnceLock::new();

/// Sets the data directory that advised commands name.
pub(crate) fn advise_data_dir(quoted: String) {
    let _ = DATA_DIR.set(quoted);
}

/// A text whose advised commands name the data directory of this command.
fn advised(text: &str) -> Cow<'_, str> {
    match DATA_DIR.get() {
        None => text.into(),
        Some(dir) => text.replace("`longhaul ", &format!("`longhaul --data-dir {dir} ")).into(),
    }
}

/// The writer of log lines.
struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if !inline::message(String::from_utf8_lossy(line).trim_end()) {
            std::io::stderr().write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Prints a line on standard error.
pub(crate) fn say(line: impl std::fmt::Display) {
    // A closed standard error is not an error.
    let line = line.to_string();
    let line = clean(&advised(&line));
    if !inline::message(&line) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Prints a notice about a wait.
pub(crate) fn notice(line: &str) {
    say(line);
}

/// The first write error of standard output.
static UNWRITABLE: OnceLock<std::io::Error> = OnceLock::new();

/// Prints text for people on standard output. A failed write does not stop the command; `ending`
/// reports it.
pub(crate) fn print(text: impl std::fmt::Display) {
    pass_on(format!("{}\n", clean(&advised(&text.to_string()))).as_bytes());
}

/// Prints data for programs on standard output: unchanged, unless it is a terminal.
pub(crate) fn print_data(data: impl std::fmt::Display) {
    if std::io::stdout().is_terminal() {
        print(data);
    } else {
        pass_on(format!("{data}\n").as_bytes());
    }
}

/// Streams data to standard output.
pub(crate) fn pass_on(mut data: impl Read) {
    let mut out = std::io::stdout().lock();
    if UNWRITABLE.get().is_some() {
        return;
    }
    if let Err(error) = std::io::copy(&mut data, &mut out).and_then(|_| out.flush()) {
        let _ = UNWRITABLE.set(error);
    }
}

/// Whether standard output has failed.
pub(crate) fn is_closed() -> bool {
    UNWRITABLE.get().is_some()
}

/// The exit code of a command. A closed pipe (as by `head`) is ignored; any other write failure is
/// an error.
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
