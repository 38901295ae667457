//! `longhaul watch`: a full-screen view of projects, their features, and the selected feature.

mod actions;
mod draw;
mod feed;
mod screen;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::Utc;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};

use crate::arguments::Watch;
use crate::exit::{Exit, usage};
use crate::interrupts::Interrupts;
use crate::place::{self, Project};
use crate::term::inline;
use feed::Update;
use screen::{Action, Screen};

/// The interval between two drawings without news, for the ages on the screen.
const TICK: Duration = Duration::from_secs(1);
/// Updates that may wait for the screen.
const UPDATES: usize = 64;

pub(super) async fn run(data_dir: &Path, arguments: &Watch) -> Result<Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(usage("`longhaul watch` needs a terminal; `longhaul status` prints once"));
    }
    let project = match &arguments.dir {
        Some(dir) => Some(Project::at(dir).await?),
        None => Project::known_at(Path::new(".")).await,
    };
    if let Some(dir) = &arguments.dir {
        place::is_there(dir)?;
    }
    let mut screen = Screen::new(project);
    // Messages for people would move the screen.
    inline::hide();
    let outcome = match ratatui::try_init() {
        Ok(mut terminal) => {
            let outcome = show(data_dir, &mut screen, &mut terminal).await;
            ratatui::restore();
            outcome
        }
        Err(error) => Err(error).context("cannot use the terminal"),
    };
    inline::close();
    outcome.map(|()| Exit::Ok)
}

/// Draws and reads keys until the person quits.
async fn show(
    data_dir: &Path,
    screen: &mut Screen,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<()> {
    let (wishes, wished) = watch::channel(screen.wish());
    let (sender, mut updates) = mpsc::channel(UPDATES);
    let feed = tokio::spawn(feed::run(data_dir.to_owned(), wished, sender.clone()));
    let mut keys = EventStream::new();
    let mut interrupts = Interrupts::listen();
    loop {
        terminal
            .draw(|frame| draw::draw(screen, frame, Utc::now()))
            .context("cannot draw on the terminal")?;
        tokio::select! {
            event = keys.next() => match event {
                Some(Ok(Event::Key(key))) if key.kind == KeyEventKind::Press => {
                    match screen.press(key) {
                        Some(Action::Quit) => break,
                        Some(action) => actions::begin(data_dir, action, &sender),
                        None => {}
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error).context("cannot read the terminal"),
                None => break,
            },
            Some(update) = updates.recv() => {
                screen.take(update);
                // Many updates are drawn at once.
                while let Ok(update) = updates.try_recv() {
                    screen.take(update);
                }
            }
            () = interrupts.next() => break,
            () = tokio::time::sleep(TICK) => {}
        }
        if let Some(message) = inline::take_message() {
            screen.take(Update::Message(message));
        }
        let wish = screen.wish();
        wishes.send_if_modified(|known| {
            let differs = *known != wish;
            *known = wish;
            differs
        });
    }
    feed.abort();
    Ok(())
}
