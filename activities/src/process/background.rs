//! Starts this program again as a background process that outlives this one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts this binary with these arguments in a process group of its own, away from the terminal's
/// signals; its output goes to a file.
pub fn start_in_background(args: &[OsString], log: &File) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
    command.process_group(0).spawn()
}
