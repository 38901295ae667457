//! Reads and checks records, with errors that name the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_engine::{Event, Message, Payload, Position, RunId, StoreError, Summary};

use crate::blob::{BlobStore, Source};
use crate::codec::Decoder;
use crate::error::ReadError;
use crate::{key, run_record};

/// The budget of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A few records and no blob; a larger read is [`ReadError::TooMuch`].
    Little,
    /// Unlimited.
    Any,
}

/// The most records of a small read.
const FEW: usize = 64;

/// The read side of a log.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) db: sled::Db,
    pub(crate) blobs: Arc<BlobStore>,
}

impl Reader {
    /// The events from a position on; a missing one among them is damage.
    pub(crate) fn events(
        &self,
        run: &RunId,
        from: Position,
        effort: Effort,
    ) -> Result<Vec<Event>, ReadError> {
        let mut events = Vec::new();
        let mut expected = from;
        for entry in self.db.range(key::event(run, from)..=key::event(run, u64::MAX)) {
            let (key, value) = entry.map_err(ReadError::from)?;
            if events.len() >= FEW && effort == Effort::Little {
                return Err(ReadError::TooMuch);
            }
            if events.is_empty() && key::number_of(&key) != Some(expected) {
                let kept = self.summary_at(run, effort)?.as_ref().and_then(run_record::kept_from);
                expected = kept.map_or(expected, |kept| kept.max(from));
            }
            let wanted = key::event(run, expected);
            if *key != *wanted {
                key::required_number_of(&key)?;
                let missing = ReadError::Damaged("it is missing, but later ones exist".into());
                return Err(missing.named(|| key::describe(&wanted)));
            }
            events.push(self.decoder(effort).event(&key, &value)?);
            expected += 1;
        }
        Ok(events)
    }

    /// The stored summary; `None` if it is damaged.
    fn summary_at(&self, run: &RunId, effort: Effort) -> Result<Option<Summary>, ReadError> {
        let key = key::summary(run);
        let Some(value) = self.db.get(&key).map_err(ReadError::from)? else { return Ok(None) };
        match self.decoder(effort).summary(&key, &value) {
            Err(ReadError::TooMuch) => Err(ReadError::TooMuch),
            result => Ok(result.ok()),
        }
    }

    /// The messages of the mailbox, oldest first.
    pub(crate) fn mailbox(&self, run: &RunId, effort: Effort) -> Result<Vec<Message>, ReadError> {
        self.scan(&key::of_run(key::MESSAGE, run), effort, |key, value| {
            self.decoder(effort).message(key, value)
        })
    }

    /// The published values, except one.
    pub(crate) fn published(
        &self,
        run: &RunId,
        except: Option<&str>,
        effort: Effort,
    ) -> Result<BTreeMap<String, Payload>, ReadError> {
        let prefix = key::of_run(key::PUBLISHED, run);
        let values = self.scan(&prefix, effort, |key, value| {
            let name = String::from_utf8_lossy(&key[prefix.len()..]).into_owned();
            if Some(&*name) == except {
                return Ok(None);
            }
            Ok(Some((name, self.decoder(effort).published(key, value)?)))
        })?;
        Ok(values.into_iter().flatten().collect())
    }

    /// The summary, recomputed from the events if it is damaged.
    pub(crate) fn summary(
        &self,
        run: &RunId,
        effort: Effort,
    ) -> Result<Option<Summary>, ReadError> {
        let key = key::summary(run);
        let Some(value) = self.db.get(&key).map_err(ReadError::from)? else {
            return Ok(None);
        };
        self.summary_of(run, &key, &value, effort).map(Some)
    }

    /// The runs with a prefix. A run with damaged summary and events is left out, with a warning.
    pub(crate) fn runs(
        &self,
        prefix: &str,
        effort: Effort,
    ) -> Result<Vec<(RunId, Summary)>, ReadError> {
        let prefix = [&[key::SUMMARY], prefix.as_bytes()].concat();
        let runs = self.scan(&prefix, effort, |key, value| {
            let Some(run) = key::run_of(key) else {
                tracing::warn!(key = %key.escape_ascii(), "a key without a run id is skipped");
                return Ok(None);
            };
            match self.summary_of(&run, key, value, effort) {
                Ok(summary) => Ok(Some((run, summary))),
                Err(ReadError::TooMuch) => Err(ReadError::TooMuch),
                Err(error) => {
                    let error = error.in_record(|| key::describe(key));
                    tracing::warn!(%run, %error, "a damaged run is left out");
                    Ok(None)
                }
            }
        })?;
        Ok(runs.into_iter().flatten().collect())
    }

    /// The runs with unread messages; seeks from mailbox to mailbox.
    pub(crate) fn runs_with_mail(&self, effort: Effort) -> Result<Vec<RunId>, ReadError> {
        let mut runs = Vec::new();
        let mut after = vec![key::MESSAGE];
        while let Some(key) = self.db.range(after..vec![key::MESSAGE + 1]).keys().next() {
            let key = key.map_err(ReadError::from)?;
            if runs.len() >= FEW && effort == Effort::Little {
                return Err(ReadError::TooMuch);
            }
            let Some(run) = key::run_of(&key) else {
                return Err(
                    ReadError::Damaged("it names no run".into()).named(|| key::describe(&key))
                );
            };
            after = key::numbered(key::MESSAGE, &run, u64::MAX);
            runs.push(run);
        }
        Ok(runs)
    }

    fn scan<T>(
        &self,
        prefix: &[u8],
        effort: Effort,
        each: impl Fn(&[u8], &[u8]) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        let mut found = Vec::new();
        for entry in self.db.scan_prefix(prefix) {
            let (key, value) = entry.map_err(ReadError::from)?;
            if found.len() >= FEW && effort == Effort::Little {
                return Err(ReadError::TooMuch);
            }
            found.push(each(&key, &value)?);
        }
        Ok(found)
    }

    fn summary_of(
        &self,
        run: &RunId,
        key: &[u8],
        value: &[u8],
        effort: Effort,
    ) -> Result<Summary, ReadError> {
        let error = match self.decoder(effort).summary(key, value) {
            Err(ReadError::Store(error @ StoreError::Damaged { .. })) => error,
            result => return result,
        };
        let events = self.events(run, 0, effort)?;
        let folded = run_record::fold(&events);
        if folded.is_some() {
            tracing::warn!(%run, error = %error, "the summary was recomputed from the events");
        }
        folded.ok_or(ReadError::Store(error))
    }

    fn decoder(&self, effort: Effort) -> Decoder<'_> {
        Decoder(match effort {
            Effort::Little => Source::Nowhere,
            Effort::Any => Source::Store(&self.blobs),
        })
    }
}
