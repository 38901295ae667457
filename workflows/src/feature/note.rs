//! Notes of people to a running feature: the agent receives them in its next session.

use longhaul_engine::{Context, ContextExt, Filter, Payload, Received, Stop};

use crate::finding::SteeringRefused;
use crate::note::Note;

use super::{Approval, Edited, FeatureProgress, MergeLease, SessionPermit, Work};

impl Work {
    /// The filter of a wait: its own signal, notes and edits. Answers to other requests stay in the
    /// mailbox.
    pub(super) fn notes_and(signal: &'static str) -> Filter {
        Filter::signals(&[Note::SIGNAL, Edited::SIGNAL, SteeringRefused::SIGNAL, signal])
    }

    /// Waits for a signal of the project. Messages for this run that arrive meanwhile are applied.
    pub(super) async fn await_signal(
        &mut self,
        context: &mut dyn Context,
        signal: &'static str,
    ) -> Result<Payload, Stop> {
        let project = self.project_run()?;
        let filter = Self::notes_and(signal);
        loop {
            match context.receive(&filter, None).await? {
                Some(Received::Signal { name, payload, from })
                    if name == signal && from.as_ref() == Some(&project) =>
                {
                    return Ok(payload);
                }
                Some(received) => self.apply_message_now(context, received).await?,
                None => {}
            }
        }
    }

    /// Takes the notes since the last session. This run has no open request here, so an answer
    /// of its project that is still in the mailbox is stale and is dropped.
    pub(super) async fn take_notes(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let filter = Filter::signals(&[
            Note::SIGNAL,
            Edited::SIGNAL,
            SteeringRefused::SIGNAL,
            SessionPermit::SIGNAL,
            MergeLease::GRANTED,
            Approval::SIGNAL,
        ]);
        while let Some(received) = context.try_receive(&filter).await? {
            self.apply_message(received);
        }
        Ok(())
    }

    /// Takes the edits that were sent so far. Notes stay in the mailbox: they are for the next
    /// session, and grant another one to a feature that would be given up.
    pub(super) async fn take_edits(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        while let Some(received) = context.try_receive(&Filter::signals(&[Edited::SIGNAL])).await? {
            self.apply_message(received);
        }
        Ok(())
    }

    /// Whether there are undelivered notes when the feature would be given up. Then the count of
    /// failures restarts; the limit of sessions stays.
    pub(super) async fn take_late_notes(
        &mut self,
        context: &mut dyn Context,
    ) -> Result<bool, Stop> {
        if self.has_used_its_sessions() {
            return Ok(false);
        }
        let known = self.feedback.guidance.len();
        self.take_notes(context).await?;
        let has_notes = self.feedback.guidance.len() > known;
        if has_notes {
            self.forgiven = self.progress.clone();
            self.unchanged = 0;
        }
        Ok(has_notes)
    }

    /// Applies a message that arrived during a wait, and publishes a finding about it: the wait may
    /// take long.
    pub(super) async fn apply_message_now(
        &mut self,
        context: &mut dyn Context,
        received: Received,
    ) -> Result<(), Stop> {
        let is_finding =
            matches!(&received, Received::Signal { name, .. } if name == SteeringRefused::SIGNAL);
        self.apply_message(received);
        if is_finding {
            context.set(FeatureProgress::KEY, &self.progress).await?;
        }
        Ok(())
    }

    /// Applies a note or an edit; ignores other messages and malformed ones.
    pub(super) fn apply_message(&mut self, received: Received) {
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
            && let Ok(Note(text)) = payload.read()
        {
            self.feedback.guidance.push(text);
        }
    }
}
