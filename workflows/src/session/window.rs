//! The context window of a session: how full it is, and the action that follows.

use serde::{Deserialize, Serialize};

use crate::contracts::Usage;
use crate::settings::ContextSettings;

/// The filled part of a context window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Window {
    /// Its size in tokens.
    pub size: u64,
    /// The tokens after the last answer, as the provider counted them.
    pub used: u64,
    /// The growth of the last turn. The first answer is none: it counts the prompt, too.
    pub growth: u64,
    /// Whether its checkpoint was taken.
    pub is_kept: bool,
}

/// The action that a window requires before the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowAction {
    Nothing,
    Checkpoint,
    Compaction,
    Handoff,
}

/// Bytes of a token, for an estimate before a call.
const BYTES_PER_TOKEN: f64 = 3.5;

/// The estimated tokens of a text.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate of a length"
)]
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as f64 / BYTES_PER_TOKEN).ceil() as u64
}

impl Window {
    pub(super) fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// Counts an answer.
    pub(super) fn take(&mut self, usage: &Usage) {
        let used = usage.total();
        self.growth = if self.used == 0 { 0 } else { used.saturating_sub(self.used) };
        self.used = used;
    }

    /// The conversation begins anew, with a summary.
    pub(super) fn empty(&mut self) {
        *self = Self::new(self.size);
    }

    /// The filled part, with `unsent` tokens that the next call adds.
    pub fn share(&self, unsent: u64) -> f64 {
        part(self.used + unsent, self.size)
    }

    /// The requirement of the window. The last growth predicts the next one: a turn that would
    /// overflow the window is not begun.
    pub(super) fn need(&mut self, settings: &ContextSettings, unsent: u64) -> WindowAction {
        let share = self.share(unsent);
        let predicted = self.share(unsent.max(self.growth));
        if share >= settings.handoff_at {
            WindowAction::Handoff
        } else if share >= settings.compact_at || predicted >= 1.0 {
            WindowAction::Compaction
        } else if share >= settings.checkpoint_at && !self.is_kept {
            self.is_kept = true;
            WindowAction::Checkpoint
        } else {
            WindowAction::Nothing
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
fn part(used: u64, size: u64) -> f64 {
    if size == 0 { 0.0 } else { used as f64 / size as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(used: u64, growth: u64, unsent: u64) -> WindowAction {
        let mut window = Window { size: 1000, used, growth, is_kept: false };
        window.need(&ContextSettings::default(), unsent)
    }

    #[test]
    fn each_threshold_has_its_need() {
        assert_eq!(need(0, 0, 100), WindowAction::Nothing);
        assert_eq!(need(650, 50, 50), WindowAction::Checkpoint);
        assert_eq!(need(800, 50, 50), WindowAction::Compaction);
        assert_eq!(need(850, 50, 50), WindowAction::Handoff);
    }

    #[test]
    fn the_prompt_is_no_trend() {
        let mut window = Window::new(1000);
        window.take(&Usage { input: 600, ..Usage::default() });
        assert_eq!(window.need(&ContextSettings::default(), 10), WindowAction::Nothing);
        window.take(&Usage { input: 610, ..Usage::default() });
        assert_eq!(window.growth, 10);
    }

    #[test]
    fn the_trend_predicts_an_overflow() {
        assert_eq!(need(600, 390, 10), WindowAction::Nothing);
        assert_eq!(need(600, 400, 10), WindowAction::Compaction);
    }

    #[test]
    fn the_checkpoint_is_taken_once() {
        let mut window = Window { size: 1000, used: 750, growth: 0, is_kept: false };
        let settings = ContextSettings::default();
        assert_eq!(window.need(&settings, 0), WindowAction::Checkpoint);
        assert_eq!(window.need(&settings, 0), WindowAction::Nothing);
    }
}
