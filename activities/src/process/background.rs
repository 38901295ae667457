//! Starting this program again so that it stays when we go.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts this same binary with these arguments in a process group of its own, away from our
/// terminal's signals; what it says goes to a file.
pub fn start_in_background(args: &[OsString], log: &File) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    command.process_group(0).spawn()
}
