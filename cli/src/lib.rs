//! The command line of Longhaul: parses arguments, calls the service, prints, exits.

mod arguments;
mod command;
mod demo;
mod document;
mod exit;
mod interrupts;
mod live;
mod place;
mod status_text;
mod term;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use arguments::Arguments;
use exit::Exit;

/// Hidden subcommand for the supervisor processes of Longhaul.
const SUPERVISE: &str = "supervise-process";

/// The first descriptor after standard input, output and error.
const FIRST_DESCRIPTOR: i32 = 3;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let mut raw: Vec<OsString> = std::env::args_os().collect();
    if raw.get(1).is_some_and(|word| word == SUPERVISE) {
        return longhaul_activities::process::supervise_main(raw.split_off(2));
    }
    // A descriptor that the caller left open would lead agents and checks out of their sandbox.
    close_fds::set_fds_cloexec(FIRST_DESCRIPTOR, &[]);
    let arguments = match parse(raw) {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() {
                let _ = error.print();
                return Exit::Usage.into();
            }
            return term::help(&error);
        }
    };
    term::start_log(arguments.verbose);
    // Reserve one core for the thread of the log: all runs wait for its syncs.
    let workers = std::thread::available_parallelism()
        .map_or(1, |cores| cores.get().saturating_sub(1).max(1));
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return term::report(&anyhow::Error::from(error).context("cannot start the runtime"));
        }
    };
    let exit = match runtime.block_on(interrupts::until_interrupted(command::run(arguments))) {
        Ok(Ok(exit)) => term::ending(exit.into()),
        Ok(Err(error)) => term::report(&error),
        Err(code) => code.into(),
    };
    // Do not wait for tasks that still run when the command has finished.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    exit
}

fn parse(raw: Vec<OsString>) -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&arguments::with_help().try_get_matches_from(raw)?)
}
