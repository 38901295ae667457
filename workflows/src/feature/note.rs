//! What a person tells a running feature: the agent hears it in its next session.

use longhaul_engine::{Context, Filter, Received, Stop};
use serde::{Deserialize, Serialize};

use crate::finding::SteeringRefused;

use super::{Edited, Work};

/// The change since which a note that nobody has heard yet keeps a feature from being given up.
pub(super) const LAST_WORDS: &str = "last words";

/// The signal `note`: a text alone, or with who says it and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Note {
    /// The text alone.
    Text(String),
    /// With its author.
    Signed {
        /// What the agent is told.
        text: String,
        /// Who.
        by: String,
        /// Why; not for the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
}

impl Note {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "note";

    fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Signed { text, .. } => text,
        }
    }
}

impl Work {
    /// What a wait takes besides the signal that it waits for. Answers to other requests stay in
    /// the mailbox.
    pub(super) fn notes_and(signal: &'static str) -> Filter {
        Filter::signals(&[Note::SIGNAL, Edited::SIGNAL, SteeringRefused::SIGNAL, signal])
    }

    /// Takes in what people said since the last session. No request of this run is open here, so an
    /// answer that is still in the mailbox is stale and dropped.
    pub(super) async fn hear(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        while let Some(received) = context.try_receive(&Filter::any()).await? {
            self.take_note(received);
        }
        Ok(())
    }

    /// Whether people said something that no session has heard, now that the feature would be given
    /// up. Then its failures are counted anew; the limit of sessions holds.
    pub(super) async fn is_told_more(&mut self, context: &mut dyn Context) -> Result<bool, Stop> {
        if self.has_used_its_sessions() || context.version(LAST_WORDS, 1).await? == 0 {
            return Ok(false);
        }
        let known = self.feedback.guidance.len();
        self.hear(context).await?;
        let is_told_more = self.feedback.guidance.len() > known;
        if is_told_more {
            self.forgiven = self.progress.clone();
        }
        Ok(is_told_more)
    }

    /// Takes a note or an edit in; anything else is passed over, and so is what cannot be read.
    pub(super) fn take_note(&mut self, received: Received) {
        let Received::Signal { name, payload, from } = received else { return };
        if name == Edited::SIGNAL {
            self.take_edit(from.as_ref(), &payload);
        }
        if name == SteeringRefused::SIGNAL
            && from.is_none()
            && let Ok(refused) = payload.read::<SteeringRefused>()
        {
            self.note_finding(refused.into());
        }
        if name == Note::SIGNAL
            && let Ok(note) = payload.read::<Note>()
        {
            self.feedback.guidance.push(note.into_text());
        }
    }
}
