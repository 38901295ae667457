//! `longhaul completions`.

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::exit::Exit;

pub(super) fn run(arguments: &Completions) -> Exit {
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "longhaul", &mut std::io::stdout());
    Exit::Ok
}
