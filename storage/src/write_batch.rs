//! A commit that its caller has encoded, so that the committer only decides and writes.

use longhaul_engine::store::{Commit, Committed, Creation, Delivery};
use longhaul_engine::{Message, MessageSeq, Position, RunId, StoreError};
use tokio::sync::oneshot;

use crate::codec::Encoder;
use crate::key;
use crate::record::{Unsealed, Write};
use crate::wire::v1::Time;

/// An encoded commit.
#[derive(Debug)]
pub(crate) struct WriteBatch {
    pub(crate) run: RunId,
    /// The precondition on the state of the run.
    pub(crate) precondition: Precondition,
    /// The first position of its events, and their number.
    pub(crate) first: Option<Position>,
    pub(crate) count: u64,
    /// Whether the run is over afterwards, if its summary changed.
    pub(crate) terminal: Option<bool>,
    pub(crate) writes: Vec<Write>,
    pub(crate) creations: Vec<CreatedRun>,
    pub(crate) deliveries: Vec<Outgoing>,
    /// The highest message number imported from another log.
    pub(crate) highest_seq: Option<MessageSeq>,
    pub(crate) bytes: usize,
    pub(crate) reply: oneshot::Sender<Result<Committed, StoreError>>,
}

/// A precondition on the state of a run, beside the position of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precondition {
    None,
    /// The run exists.
    Exists,
    /// The run does not exist.
    IsNew,
    /// The run is over, and its history ends at this position.
    IsOverAt(Position),
    /// The history ends at this position.
    EndsAt(Position),
    /// The history ends at this position, and the batch removes the run.
    RemovedAt(Position),
}

/// A run to create if it does not exist.
#[derive(Debug)]
pub(crate) struct CreatedRun {
    pub(crate) run: RunId,
    pub(crate) terminal: bool,
    pub(crate) writes: [Write; 2],
}

/// A message without its number.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) to: RunId,
    pub(crate) message: Message,
    pub(crate) record: Unsealed,
}

/// The result of a batch.
pub(crate) type Answer = oneshot::Receiver<Result<Committed, StoreError>>;

impl WriteBatch {
    pub(crate) fn empty(run: RunId) -> (Box<Self>, Answer) {
        let (reply, answer) = oneshot::channel();
        let batch = Self {
            run,
            precondition: Precondition::None,
            first: None,
            count: 0,
            terminal: None,
            writes: Vec::new(),
            creations: Vec::new(),
            deliveries: Vec::new(),
            highest_seq: None,
            bytes: 0,
            reply,
        };
        (Box::new(batch), answer)
    }

    /// Encodes a commit.
    pub(crate) fn of(
        commit: &Commit,
        encoder: &mut Encoder,
    ) -> Result<(Box<Self>, Answer), StoreError> {
        let run = &commit.run;
        let (mut batch, answer) = Self::empty(run.clone());
        check(commit)?;
        batch.first = commit.events.first().map(|event| event.position);
        batch.count = commit.events.len() as u64;
        for event in &commit.events {
            batch.writes.push(encoder.event(run, event)?);
        }
        if let Some(summary) = &commit.summary {
            batch.terminal = Some(summary.status.is_terminal());
            batch.writes.push(encoder.summary(run, summary)?);
        }
        for (name, value) in &commit.published {
            batch.writes.push(match value {
                Some(value) => encoder.published(run, name, value)?,
                None => (key::published(run, name).into(), None),
            });
        }
        for seq in &commit.consumed {
            batch.writes.push((key::numbered(key::MESSAGE, run, *seq).into(), None));
        }
        for creation in &commit.creations {
            batch.creations.push(new_run(creation, encoder)?);
        }
        for delivery in &commit.deliveries {
            batch.deliveries.push(outgoing(delivery, encoder)?);
        }
        batch.bytes = batch.size();
        Ok((batch, answer))
    }

    /// Encodes a delivery from outside of a commit.
    pub(crate) fn delivering(
        delivery: &Delivery,
        encoder: &mut Encoder,
    ) -> Result<(Box<Self>, Answer), StoreError> {
        let (mut batch, answer) = Self::empty(delivery.to.clone());
        batch.precondition = Precondition::Exists;
        batch.deliveries.push(outgoing(delivery, encoder)?);
        batch.bytes = batch.size();
        Ok((batch, answer))
    }

    pub(crate) fn size(&self) -> usize {
        let creations = self.creations.iter().flat_map(|creation| &creation.writes);
        let writes: usize = self.writes.iter().chain(creations).map(size_of_write).sum();
        let outgoing: usize = self.deliveries.iter().map(|outgoing| outgoing.record.len()).sum();
        writes + outgoing
    }
}

fn size_of_write((key, value): &Write) -> usize {
    key.len() + value.as_ref().map_or(0, |value| value.len())
}

/// Checks that positions have no gaps, creations are at position 0, and names are short.
pub(crate) fn check(commit: &Commit) -> Result<(), StoreError> {
    let first = commit.events.first().map_or(0, |event| event.position);
    for (event, end) in commit.events.iter().zip(first..) {
        if event.position != end {
            return Err(StoreError::Conflict {
                run: commit.run.clone(),
                position: event.position,
                end,
            });
        }
    }
    if let Some((name, _)) =
        commit.published.iter().find(|(name, _)| name.len() > key::LONGEST_NAME)
    {
        let reason = format!(
            "a published name of {} bytes is refused: the longest is {}",
            name.len(),
            key::LONGEST_NAME
        );
        return Err(StoreError::Unusable(reason));
    }
    for creation in &commit.creations {
        let position = creation.event.position;
        if position != 0 {
            return Err(StoreError::Conflict { run: creation.run.clone(), position, end: 0 });
        }
    }
    Ok(())
}

fn new_run(creation: &Creation, encoder: &mut Encoder) -> Result<CreatedRun, StoreError> {
    let Creation { run, event, summary } = creation;
    let writes = [encoder.event(run, event)?, encoder.summary(run, summary)?];
    Ok(CreatedRun { run: run.clone(), terminal: summary.status.is_terminal(), writes })
}

fn outgoing(delivery: &Delivery, encoder: &mut Encoder) -> Result<Outgoing, StoreError> {
    let Delivery { to, at, body } = delivery;
    let record = encoder.mail(*at, body)?;
    let message = Message { seq: 0, at: Time::from(*at).0, body: body.clone() };
    Ok(Outgoing { to: to.clone(), message, record })
}
