//! Talking to a person: on standard error, in colour only on a terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::exit::{Complaint, Exit};

/// Starts the log of this process: warnings, or what `LONGHAUL_LOG` or `-v` asks for, on standard error.
pub(crate) fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let default = format!(
        "warn,longhaul_engine={level},longhaul_storage={level},longhaul_activities={level},longhaul_cli={level}"
    );
    let filter = EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr).try_init();
}

/// Says a line on standard error.
pub(crate) fn say(line: impl std::fmt::Display) {
    // Whoever listened may be gone; that is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints data on standard output.
pub(crate) fn print(data: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{data}");
}

/// Says what went wrong, and gives its exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say(format!("longhaul: {error:#}"));
    let complaint = error.chain().find_map(|cause| cause.downcast_ref::<Complaint>());
    complaint.map_or(Exit::Operational, |complaint| complaint.exit).into()
}
