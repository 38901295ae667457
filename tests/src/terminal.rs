//! A terminal: what a command writes to a person, and what the person types.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

use crate::wait::{PATIENCE, until};

/// The height of a new terminal.
const HEIGHT: u16 = 24;

/// A command on a terminal of its own. It is killed when this is dropped.
pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    parser: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command.
    pub(crate) fn start(mut command: Command, width: u16) -> Self {
        let size = Winsize { ws_row: HEIGHT, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
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
        let parser = Arc::new(Mutex::new(vt100::Parser::new(cells(HEIGHT), cells(width), 1000)));
        let emulator = Arc::clone(&parser);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end of the last writer is an error here.
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                page.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..length]);
                emulator.lock().unwrap_or_else(PoisonError::into_inner).process(&piece[..length]);
            }
        });
        Self { child, keyboard, shown, parser, reader: Some(reader) }
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

    /// The rows of the screen, as a person sees them.
    pub fn screen(&self) -> Vec<String> {
        let parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner);
        let width = parser.screen().size().1.get();
        parser.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect()
    }

    /// Waits until the screen fulfils a condition.
    #[track_caller]
    pub fn until_screen(&self, what: &str, condition: impl Fn(&[String]) -> bool) {
        let started = Instant::now();
        while !condition(&self.screen()) {
            let screen = self.screen();
            assert!(started.elapsed() < PATIENCE, "no {what} on the screen: {screen:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, width: u16, height: u16) {
        let mut parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner);
        parser.screen_mut().set_size(cells(height), cells(width));
        let size =
            rustix::termios::Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keyboard, size).expect("a terminal can be resized");
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal takes keys");
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

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has a size")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
