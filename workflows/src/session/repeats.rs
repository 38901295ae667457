//! Detection of loops: calls that the model has made before, with the results that it has.

use std::collections::HashSet;

use longhaul_engine::Payload;

use crate::contracts::{Block, ToolCall};

/// Calls in a row with known results after which the model gets a notice.
const NOTICE: u32 = 10;
/// Calls in a row with known results that end a session; a fresh one continues.
const MOST: u32 = 30;

/// The calls in a context window, with their results.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    seen: HashSet<blake3::Hash>,
    /// Calls in a row that gave nothing new.
    row: u32,
}

/// The consequence of a repeated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Repeated {
    No,
    Notice,
    TooOften,
}

impl Repeats {
    /// Counts a call and its result. A loop of several calls counts as one of a single call does.
    pub(super) fn take(&mut self, call: &ToolCall, result: &Block) -> Repeated {
        let Block::ToolResult { text, is_error, .. } = result else { return Repeated::No };
        let key = Payload::of(&(&call.name, &call.input, text, is_error));
        if self.seen.insert(blake3::hash(key.as_bytes())) {
            self.row = 0;
            return Repeated::No;
        }
        self.row += 1;
        match self.row {
            NOTICE => Repeated::Notice,
            MOST.. => Repeated::TooOften,
            _ => Repeated::No,
        }
    }

    /// The model no longer has the results: it may ask for them again.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }
}

impl Repeated {
    /// The text for the model.
    pub(super) fn notice() -> String {
        format!(
            "Your last {NOTICE} tool calls repeat earlier ones with the same results. Try another \
             approach; to wait for something, make one call that waits. After {MOST} the session \
             ends."
        )
    }

    /// The note for the next session. `last` is the last call in one line.
    pub(super) fn note(last: &str) -> String {
        format!(
            "A session was in a loop: {MOST} tool calls in a row repeated earlier ones with the \
             same results, the last one `{last}`. It was ended."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(repeats: &mut Repeats, input: &str, result: &str) -> Repeated {
        let call = ToolCall { id: "1".into(), name: "shell".into(), input: input.into() };
        let result = Block::ToolResult { id: "1".into(), text: result.into(), is_error: false };
        repeats.take(&call, &result)
    }

    #[test]
    fn a_loop_of_any_length_is_found_and_new_results_end_it() {
        let mut repeats = Repeats::default();
        let mut ended = None;
        for turn in 0..100 {
            // Two calls in turn.
            let input = ["make", "cat log"][turn % 2];
            if take(&mut repeats, input, "failed") == Repeated::TooOften {
                ended = Some(turn);
                break;
            }
        }
        assert_eq!(ended, Some(31));
        assert_eq!(take(&mut repeats, "make", "passed"), Repeated::No);
        assert_eq!(take(&mut repeats, "make", "passed"), Repeated::No, "the count begins anew");
    }

    #[test]
    fn a_call_after_a_change_is_no_loop() {
        let mut repeats = Repeats::default();
        for turn in 0..100 {
            assert_eq!(take(&mut repeats, &format!("edit {turn}"), "done"), Repeated::No);
            assert_eq!(take(&mut repeats, "make", "failed"), Repeated::No);
        }
    }
}
