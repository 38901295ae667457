//! A block of lines at the bottom of the terminal that is drawn again in place; messages scroll
//! above it.

use std::collections::VecDeque;
use std::io::{IsTerminal, Stderr, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossterm::style::{Attribute, ContentStyle, SetAttribute, SetStyle};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use crossterm::{Command, cursor};
use ratatui::buffer::Buffer;
use rustix::process::getpgrp;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use textwrap::core::display_width;

/// How many messages are drawn again above the block after the terminal became narrower.
const MESSAGES: usize = 200;

/// The block of this process, while it is open.
static BLOCK: Mutex<Option<Block>> = Mutex::new(None);

#[derive(Default)]
struct Block {
    lines: Vec<String>,
    /// The width of the widest line.
    width: usize,
    messages: VecDeque<String>,
    /// Whether another display covers the terminal: messages are kept for it.
    is_hidden: bool,
    /// The settings of the terminal with its echo on.
    echo: Option<Termios>,
}

fn lock() -> MutexGuard<'static, Option<Block>> {
    BLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the block, if standard error is a terminal. Typed characters are not echoed until it is
/// closed, because they would move the cursor.
pub(crate) fn open() -> bool {
    if !std::io::stderr().is_terminal() {
        return false;
    }
    let mut block = Block::default();
    if is_foreground()
        && let Ok(settings) = termios::tcgetattr(std::io::stderr())
    {
        let mut silent = settings.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        if termios::tcsetattr(std::io::stderr(), OptionalActions::Now, &silent).is_ok() {
            block.echo = Some(settings);
        }
    }
    *lock() = Some(block);
    true
}

/// Keeps the messages for a display that covers the terminal.
pub(crate) fn hide() {
    *lock() = Some(Block { is_hidden: true, ..Block::default() });
}

/// The oldest kept message.
pub(crate) fn take_message() -> Option<String> {
    lock().as_mut()?.messages.pop_front()
}

/// Removes the block and restores the terminal.
pub(crate) fn close() {
    let Some(block) = lock().take() else { return };
    if !block.lines.is_empty() {
        write(&block.erase());
    }
    // A background process that changes a terminal is stopped.
    if let Some(settings) = block.echo.filter(|_| is_foreground()) {
        let _ = termios::tcsetattr(std::io::stderr(), OptionalActions::Now, &settings);
    }
}

/// Prints a message above the block; `false` if there is none.
pub(crate) fn message(text: &str) -> bool {
    let mut lock = lock();
    let Some(block) = &mut *lock else { return false };
    let text = text.replace('\n', "\r\n");
    if !block.is_hidden {
        write(&format!("{}{text}\r\n{}", block.erase(), block.lines.join("\r\n")));
    }
    block.messages.push_back(text);
    if block.messages.len() > MESSAGES {
        block.messages.pop_front();
    }
    true
}

/// Draws the block on a terminal of a size.
pub(crate) fn draw(frame: &Buffer, width: u16, height: u16) {
    let mut lock = lock();
    let Some(block) = &mut *lock else { return };
    let is_disturbed = block.width >= usize::from(width);
    let before = if is_disturbed { block.repaint(width, height, frame) } else { block.erase() };
    block.lines = (0..frame.area.height).map(|row| line(frame, row)).collect();
    block.width = (0..frame.area.height).map(|row| used(frame, row)).max().unwrap_or_default();
    if is_foreground() {
        write(&format!("{before}{}", block.lines.join("\r\n")));
    } else {
        // The terminal belongs to another program.
        block.lines.clear();
    }
}

/// Forgets the position of the block, because another program has used the terminal.
pub(crate) fn forget() {
    if let Some(block) = &mut *lock() {
        block.width = usize::MAX;
    }
}

impl Block {
    /// Moves to the beginning of the block and clears the terminal below.
    fn erase(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let mut text = String::from("\r");
        if let Some(up @ 1..) = self.lines.len().checked_sub(1) {
            push(&mut text, cursor::MoveUp(u16::try_from(up).unwrap_or(u16::MAX)));
        }
        push(&mut text, Clear(ClearType::FromCursorDown));
        text
    }

    /// Clears the terminal, because it may have wrapped the lines of the block, and prints the last
    /// messages.
    fn repaint(&self, width: u16, height: u16, frame: &Buffer) -> String {
        let mut text = String::new();
        push(&mut text, Clear(ClearType::All));
        push(&mut text, cursor::MoveTo(0, 0));
        let mut room = usize::from(height.saturating_sub(frame.area.height));
        let mut first = self.messages.len();
        for (index, message) in self.messages.iter().enumerate().rev() {
            let rows = message
                .split("\r\n")
                .map(|line| display_width(line).max(1).div_ceil(usize::from(width.max(1))));
            let Some(left) = room.checked_sub(rows.sum()) else { break };
            room = left;
            first = index;
        }
        for message in self.messages.iter().skip(first) {
            text += message;
            text += "\r\n";
        }
        text
    }
}

/// The width and height of the terminal.
pub(crate) fn size() -> (u16, u16) {
    let size = termios::tcgetwinsize(std::io::stderr());
    let size = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// Whether this process may use the terminal; a shell can put it into the background.
fn is_foreground() -> bool {
    termios::tcgetpgrp(std::io::stderr()).map_or(true, |group| group == getpgrp())
}

fn write(text: &str) {
    let mut framed = String::new();
    push(&mut framed, BeginSynchronizedUpdate);
    framed += text;
    push(&mut framed, EndSynchronizedUpdate);
    let mut stderr: Stderr = std::io::stderr();
    // A closed terminal is not an error.
    let _ = stderr.write_all(framed.as_bytes()).and_then(|()| stderr.flush());
}

fn push(text: &mut String, command: impl Command) {
    let _ = command.write_ansi(text);
}

/// The number of columns of a row up to its last character.
fn used(frame: &Buffer, row: u16) -> usize {
    let blank = |column: &u16| frame[(frame.area.x + column, frame.area.y + row)].symbol() == " ";
    (0..frame.area.width).rev().find(|column| !blank(column)).map_or(0, usize::from) + 1
}

/// A row with its colours.
fn line(frame: &Buffer, row: u16) -> String {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut text = String::new();
    let mut style = ContentStyle::default();
    let mut covered = 0;
    for column in 0..used(frame, row) {
        let Ok(column) = u16::try_from(column) else { break };
        if covered > 0 {
            covered -= 1;
            continue;
        }
        let cell = &frame[(frame.area.x + column, frame.area.y + row)];
        let wanted = if is_plain { ContentStyle::default() } else { content_style(cell) };
        if wanted != style {
            push(&mut text, SetAttribute(Attribute::Reset));
            push(&mut text, SetStyle(wanted));
            style = wanted;
        }
        text += cell.symbol();
        // A wide character covers the next cells.
        covered = display_width(cell.symbol()).saturating_sub(1);
    }
    if style != ContentStyle::default() {
        push(&mut text, SetAttribute(Attribute::Reset));
    }
    text
}

fn content_style(cell: &ratatui::buffer::Cell) -> ContentStyle {
    use ratatui::backend::IntoCrossterm;
    use ratatui::style::{Color, Modifier};
    let colour = Some(cell.fg).filter(|colour| *colour != Color::Reset);
    let mut style = ContentStyle {
        foreground_color: colour.map(IntoCrossterm::into_crossterm),
        ..ContentStyle::default()
    };
    if cell.modifier.contains(Modifier::BOLD) {
        style.attributes.set(Attribute::Bold);
    }
    if cell.modifier.contains(Modifier::DIM) {
        style.attributes.set(Attribute::Dim);
    }
    style
}
