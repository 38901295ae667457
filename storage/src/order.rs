//! A commit made ready by its caller: encoded and sealed, so that the committer only decides and writes.

use longhaul_engine::store::{Birth, Commit, Committed, Delivery};
use longhaul_engine::{Message, MessageSeq, Position, RunId, StoreError};
use sled::IVec;
use tokio::sync::oneshot;

use crate::codec::Encoder;
use crate::key;
use crate::record::Unsealed;
use crate::wire::v1::Time;

/// A key with its new value, or with none to remove it.
pub(crate) type Write = (IVec, Option<IVec>);

/// What the committer is asked.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) run: RunId,
    /// What must hold of the run.
    pub(crate) must: Must,
    /// The positions of its events: the first, and how many.
    pub(crate) first: Option<Position>,
    pub(crate) count: u64,
    /// Whether the run is over after this, if its summary changed.
    pub(crate) terminal: Option<bool>,
    pub(crate) writes: Vec<Write>,
    pub(crate) births: Vec<NewRun>,
    pub(crate) deliveries: Vec<Letter>,
    /// The highest number of a message that comes from another log.
    pub(crate) highest_seq: Option<MessageSeq>,
    pub(crate) bytes: usize,
    pub(crate) reply: oneshot::Sender<Result<Committed, StoreError>>,
}

/// What must hold of a run before an order is followed, beside the position of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    /// Nothing.
    Anything,
    /// There is such a run.
    Exist,
    /// There is none.
    BeNew,
    /// It is over, and its history ends here.
    BeOverAt(Position),
    /// Its history ends here: what is written follows from it.
    EndAt(Position),
    /// Its history ends here, and nothing is left of the run afterwards.
    BeGoneAt(Position),
}

/// A run that may have to be begun.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) run: RunId,
    pub(crate) terminal: bool,
    pub(crate) writes: [Write; 2],
}

/// A message without its number.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: RunId,
    pub(crate) message: Message,
    pub(crate) record: Unsealed,
}

/// The answer to an order.
pub(crate) type Answer = oneshot::Receiver<Result<Committed, StoreError>>;

impl Order {
    pub(crate) fn empty(run: RunId) -> (Box<Self>, Answer) {
        let (reply, answer) = oneshot::channel();
        let order = Self {
            run,
            must: Must::Anything,
            first: None,
            count: 0,
            terminal: None,
            writes: Vec::new(),
            births: Vec::new(),
            deliveries: Vec::new(),
            highest_seq: None,
            bytes: 0,
            reply,
        };
        (Box::new(order), answer)
    }

    /// Encodes a commit.
    pub(crate) fn of(commit: &Commit, encoder: &mut Encoder) -> Result<(Box<Self>, Answer), StoreError> {
        let run = &commit.run;
        let (mut order, answer) = Self::empty(run.clone());
        check(commit)?;
        order.first = commit.events.first().map(|event| event.position);
        order.count = commit.events.len() as u64;
        for event in &commit.events {
            order.writes.push(encoder.event(run, event)?);
        }
        if let Some(summary) = &commit.summary {
            order.terminal = Some(summary.status.is_terminal());
            order.writes.push(encoder.summary(run, summary)?);
        }
        for (name, value) in &commit.published {
            order.writes.push(match value {
                Some(value) => encoder.published(run, name, value)?,
                None => (key::published(run, name).into(), None),
            });
        }
        for seq in &commit.consumed {
            order.writes.push((key::numbered(key::MESSAGE, run, *seq).into(), None));
        }
        for birth in &commit.births {
            order.births.push(new_run(birth, encoder)?);
        }
        for delivery in &commit.deliveries {
            order.deliveries.push(letter(delivery, encoder)?);
        }
        order.bytes = order.size();
        Ok((order, answer))
    }

    /// Encodes a delivery from outside.
    pub(crate) fn delivering(delivery: &Delivery, encoder: &mut Encoder) -> Result<(Box<Self>, Answer), StoreError> {
        let (mut order, answer) = Self::empty(delivery.to.clone());
        order.must = Must::Exist;
        order.deliveries.push(letter(delivery, encoder)?);
        order.bytes = order.size();
        Ok((order, answer))
    }

    pub(crate) fn size(&self) -> usize {
        let births = self.births.iter().flat_map(|birth| &birth.writes);
        let writes: usize = self.writes.iter().chain(births).map(size_of_write).sum();
        let letters: usize = self.deliveries.iter().map(|letter| letter.record.len()).sum();
        writes + letters
    }
}

fn size_of_write((key, value): &Write) -> usize {
    key.len() + value.as_ref().map_or(0, |value| value.len())
}

/// The events of a commit follow on each other, a birth is at position 0, and names are short.
pub(crate) fn check(commit: &Commit) -> Result<(), StoreError> {
    let first = commit.events.first().map_or(0, |event| event.position);
    for (event, end) in commit.events.iter().zip(first..) {
        if event.position != end {
            return Err(StoreError::Conflict { run: commit.run.clone(), asked: event.position, end });
        }
    }
    if let Some((name, _)) = commit.published.iter().find(|(name, _)| name.len() > key::LONGEST_NAME) {
        let reason =
            format!("a published name of {} bytes is refused: the longest is {}", name.len(), key::LONGEST_NAME);
        return Err(StoreError::Unusable(reason));
    }
    for birth in &commit.births {
        let asked = birth.event.position;
        if asked != 0 {
            return Err(StoreError::Conflict { run: birth.run.clone(), asked, end: 0 });
        }
    }
    Ok(())
}

fn new_run(birth: &Birth, encoder: &mut Encoder) -> Result<NewRun, StoreError> {
    let Birth { run, event, summary } = birth;
    let writes = [encoder.event(run, event)?, encoder.summary(run, summary)?];
    Ok(NewRun { run: run.clone(), terminal: summary.status.is_terminal(), writes })
}

fn letter(delivery: &Delivery, encoder: &mut Encoder) -> Result<Letter, StoreError> {
    let Delivery { to, at, body } = delivery;
    let record = encoder.mail(*at, body)?;
    let message = Message { seq: 0, at: Time::from(*at).0, body: body.clone() };
    Ok(Letter { to: to.clone(), message, record })
}
