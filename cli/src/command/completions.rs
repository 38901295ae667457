//! `longhaul completions`.

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::exit::Exit;
use crate::term;

pub(super) fn run(arguments: &Completions) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "longhaul", &mut script);
    term::pass_on(&*script);
    Exit::Ok
}
