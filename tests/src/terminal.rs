//! A terminal: what a command writes to a person, and what the person types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::pty::{Winsize, openpty};

use crate::wait::until;

/// A command on a terminal of its own. It is killed when this is dropped.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command.
    pub(crate) fn start(mut command: Command, width: u16) -> Self {
        let size = Winsize { ws_row: 24, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).expect("a terminal can be made for a test");
        let side = || File::from(terminal.slave.try_clone().expect("a file can be used twice"));
        command
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        let child = command.spawn().expect("the command can be started");
        drop(command);
        drop(terminal.slave);
        let keyboard = File::from(terminal.master);
        let mut screen = keyboard.try_clone().expect("a file can be used twice");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let page = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end of the last writer is an error here.
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                page.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..length]);
            }
        });
        Self { child, keyboard, shown, reader: Some(reader) }
    }

    /// What it has shown so far.
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).replace("\r\n", "\n")
    }

    /// Waits until it shows a text.
    pub fn until_shows(&self, text: &str) {
        until(&format!("the terminal shows {text:?}"), || self.shown().contains(text));
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").expect("a terminal takes what is typed");
    }

    /// It ends with this code; all that it showed.
    #[track_caller]
    pub fn exits(mut self, code: i32) -> String {
        let status = self.child.wait().expect("a child can be waited for");
        // The screen ends with the last who could write on it.
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the screen can be read");
        }
        let shown = self.shown();
        assert_eq!(status.code(), Some(code), "{shown}");
        shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
