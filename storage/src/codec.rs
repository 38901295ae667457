//! Converts between the engine's types and the records of the log. Large payloads become blobs, and
//! are fetched when they are read.

use std::convert::Infallible;

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, Message, MessageBody, Payload, RunId, StoreError, Summary};

use crate::blob::{NewBlob, Source};
use crate::error::ReadError;
use crate::key;
use crate::record::{self, Body, Unsealed, Write};
use crate::wire::v1::{self, Stored};

/// A payload longer than this becomes a blob.
pub(crate) const INLINE_PAYLOAD: usize = 4 * 1024;

/// Encodes records, and collects the payloads that are too large for them.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) blobs: Vec<NewBlob>,
}

impl Encoder {
    fn stored(&mut self, payload: Payload) -> Stored {
        if payload.as_bytes().len() <= INLINE_PAYLOAD {
            return Stored::Inline(payload.as_bytes().to_vec());
        }
        let blob = NewBlob::of(payload);
        let name = blob.name.clone();
        self.blobs.push(blob);
        Stored::Blob(name)
    }

    pub(crate) fn event(&mut self, run: &RunId, event: &Event) -> Result<Write, StoreError> {
        let body = v1::Event::encode(event.clone(), &mut |payload| {
            Ok::<_, Infallible>(self.stored(payload))
        });
        let Ok(body) = body;
        self.record(key::event(run, event.position), &body)
    }

    pub(crate) fn summary(&mut self, run: &RunId, summary: &Summary) -> Result<Write, StoreError> {
        self.record(key::summary(run), &v1::Summary::from(summary.clone()))
    }

    pub(crate) fn published(
        &mut self,
        run: &RunId,
        name: &str,
        value: &Payload,
    ) -> Result<Write, StoreError> {
        let body = self.stored(value.clone());
        self.record(key::published(run, name), &body)
    }

    pub(crate) fn message(&mut self, run: &RunId, message: &Message) -> Result<Write, StoreError> {
        let key = key::numbered(key::MESSAGE, run, message.seq);
        let value = self.mail(message.at, &message.body)?.seal(&key);
        Ok((key.into(), Some(value.into())))
    }

    /// A message without a number, so without a key.
    pub(crate) fn mail(
        &mut self,
        at: DateTime<Utc>,
        body: &MessageBody,
    ) -> Result<Unsealed, StoreError> {
        let body = v1::MessageBody::encode(body.clone(), &mut |payload| {
            Ok::<_, Infallible>(self.stored(payload))
        });
        let Ok(body) = body;
        record::encode(&v1::Mail { at: at.into(), body }, &mut self.blobs)
    }

    fn record<B: Body>(&mut self, key: Vec<u8>, body: &B) -> Result<Write, StoreError> {
        let value = record::encode(body, &mut self.blobs)?.seal(&key);
        Ok((key.into(), Some(value.into())))
    }
}

/// Decodes records; each is checked first, and errors name the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoder<'a>(pub(crate) Source<'a>);

impl Decoder<'_> {
    pub(crate) fn event(self, key: &[u8], value: &[u8]) -> Result<Event, ReadError> {
        let position = key::required_number_of(key)?;
        self.record(key, value, |event: v1::Event<Stored>| {
            event.decode(position, &mut |stored| self.payload(stored))
        })
    }

    pub(crate) fn message(self, key: &[u8], value: &[u8]) -> Result<Message, ReadError> {
        let seq = key::required_number_of(key)?;
        self.record(key, value, |v1::Mail { at, body }: v1::Mail<Stored>| {
            Ok(Message { seq, at: at.0, body: body.decode(&mut |stored| self.payload(stored))? })
        })
    }

    pub(crate) fn published(self, key: &[u8], value: &[u8]) -> Result<Payload, ReadError> {
        self.record(key, value, |stored| self.payload(stored))
    }

    pub(crate) fn summary(self, key: &[u8], value: &[u8]) -> Result<Summary, ReadError> {
        self.record(key, value, |summary: v1::Summary| Ok(summary.into()))
    }

    fn record<B: Body, T>(
        self,
        key: &[u8],
        value: &[u8],
        convert: impl FnOnce(B) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        record::decode(key, value, self.0)
            .and_then(convert)
            .map_err(|error| error.named(|| key::describe(key)))
    }

    fn payload(self, stored: Stored) -> Result<Payload, ReadError> {
        match stored {
            Stored::Inline(bytes) => Ok(Payload::from_bytes(bytes)),
            Stored::Blob(name) => Ok(Payload::from_bytes(self.0.fetch_payload(&name)?)),
        }
    }
}

/// A value as a log returns it: with times in whole microseconds.
pub(crate) fn rounded(event: &Event) -> Event {
    let same = &mut Ok::<Payload, Infallible>;
    let Ok(event) =
        v1::Event::encode(event.clone(), same).and_then(|wire| wire.decode(event.position, same));
    event
}
