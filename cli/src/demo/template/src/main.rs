//! The program `reckon`.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("reckon: the command line is not implemented yet");
    ExitCode::FAILURE
}
