//! The keyspace: one tree, a prefix byte per kind of record, keys in the order of ids and numbers.

use longhaul_engine::{MessageSeq, Position, RunId};

use crate::error::ReadError;

/// Events: run, position.
pub(crate) const EVENT: u8 = b'e';
/// Messages: run, seq.
pub(crate) const MESSAGE: u8 = b'm';
/// Published values: run, name.
pub(crate) const PUBLISHED: u8 = b'p';
/// Summaries: run.
pub(crate) const SUMMARY: u8 = b's';
/// The format of the keyspace.
pub(crate) const FORMAT: &[u8] = b"@format";
/// Owners of the log: epoch.
pub(crate) const OWNER: &[u8] = b"@owner\0";

/// The close of the log by an owner: epoch. At most one.
pub(crate) const CLOSED: &[u8] = b"@closed\0";

/// Marks that histories were removed since the log was last rewritten.
pub(crate) const PRUNED: &[u8] = b"@pruned";

/// The longest name of a published value, in bytes; keys must stay small (see
/// [`crate::record::INLINE_BODY`]).
pub(crate) const LONGEST_NAME: usize = 512;

/// The defect of an event or a message whose key has no number.
pub(crate) const NO_NUMBER: &str = "its key has no number";

/// Terminates a run id; smaller than every byte of an id, so that keys sort as ids do.
const END: u8 = 0;

/// The prefix of all keys of one kind of a run.
pub(crate) fn of_run(kind: u8, run: &RunId) -> Vec<u8> {
    let mut key = Vec::with_capacity(run.as_str().len() + 10);
    key.push(kind);
    key.extend_from_slice(run.as_str().as_bytes());
    key.push(END);
    key
}

/// The key of a numbered record of a run.
pub(crate) fn numbered(kind: u8, run: &RunId, number: u64) -> Vec<u8> {
    let mut key = of_run(kind, run);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The key of an event.
pub(crate) fn event(run: &RunId, position: Position) -> Vec<u8> {
    numbered(EVENT, run, position)
}

/// The key of a summary.
pub(crate) fn summary(run: &RunId) -> Vec<u8> {
    of_run(SUMMARY, run)
}

/// The key of a published value.
pub(crate) fn published(run: &RunId, name: &str) -> Vec<u8> {
    let mut key = of_run(PUBLISHED, run);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The key of an owner.
pub(crate) fn owner(epoch: u64) -> Vec<u8> {
    [OWNER, &epoch.to_be_bytes()].concat()
}

/// The key of the record that the owner of an epoch closed the log.
pub(crate) fn closed(epoch: u64) -> Vec<u8> {
    [CLOSED, &epoch.to_be_bytes()].concat()
}

/// The first message number of an owner. No owner assigns 2^32 of them, so those of two owners
/// never collide.
pub(crate) fn first_seq_of(epoch: u64) -> MessageSeq {
    epoch << 32
}

/// The last message number of an owner.
pub(crate) fn last_seq_of(epoch: u64) -> MessageSeq {
    first_seq_of(epoch) | u64::from(u32::MAX)
}

/// The owner that assigned a message number.
pub(crate) fn epoch_of(seq: MessageSeq) -> u64 {
    seq >> 32
}

/// The number of a key: the eight bytes after the end of its id. A key of another length has none.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    let end = key.iter().position(|byte| *byte == END)?;
    key.get(end + 1..)?.try_into().ok().map(u64::from_be_bytes)
}

/// The number of a key that must have one.
pub(crate) fn required_number_of(key: &[u8]) -> Result<u64, ReadError> {
    number_of(key).ok_or_else(|| ReadError::Damaged(NO_NUMBER.into()).named(|| describe(key)))
}

/// The run that a key belongs to.
pub(crate) fn run_of(key: &[u8]) -> Option<RunId> {
    let id = key.get(1..)?.split(|byte| *byte == END).next()?;
    RunId::new(std::str::from_utf8(id).ok()?).ok()
}

/// A key as text for people.
pub(crate) fn describe(key: &[u8]) -> String {
    let run = run_of(key).map_or_else(|| "?".to_owned(), |run| run.to_string());
    match (key.first(), number_of(key)) {
        (Some(&EVENT), Some(number)) => format!("event {number} of run {run}"),
        (Some(&MESSAGE), Some(number)) => format!("message {number} of run {run}"),
        (Some(&SUMMARY), _) => format!("summary of run {run}"),
        (Some(&PUBLISHED), _) => {
            let name = key.splitn(2, |byte| *byte == END).nth(1).unwrap_or_default();
            format!("published value `{}` of run {run}", String::from_utf8_lossy(name))
        }
        _ => format!("`{}`", key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_ids_and_positions_do() {
        let ids = ["a", "a#1", "a-b", "a.b", "a/b", "a@9", "aA", "aa", "b"];
        let runs: Vec<_> = ids.map(|id| RunId::new(id).unwrap()).into();
        assert!(runs.is_sorted());
        let keys: Vec<_> = runs
            .iter()
            .flat_map(|run| [0, 1, 255, 256, u64::MAX].map(|at| event(run, at)))
            .collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().all(|key| runs.contains(&run_of(key).unwrap())));
    }

    #[test]
    fn a_key_says_what_it_is() {
        let run = RunId::new("project/a").unwrap();
        assert_eq!(describe(&event(&run, 7)), "event 7 of run project/a");
        assert_eq!(describe(&published(&run, "plan")), "published value `plan` of run project/a");
        assert_eq!(describe(&summary(&run)), "summary of run project/a");
        assert_eq!(describe(b"ea\0x"), r"`ea\x00x`");
    }

    #[test]
    fn only_eight_bytes_after_the_id_are_a_number() {
        let run = RunId::new("a-long-run").unwrap();
        assert_eq!(number_of(&event(&run, 0)), Some(0));
        assert_eq!(number_of(&event(&run, u64::MAX)), Some(u64::MAX));
        assert_eq!(number_of(&owner(7)), Some(7));
        let mut key = event(&run, 7);
        key.push(0);
        assert_eq!(number_of(&key), None);
        for key in [&b"ea-long-run\0"[..], b"ea-long-run\0\0\0\x07", b"ea-long-run", b"e", b""] {
            assert_eq!(number_of(key), None, "{}", key.escape_ascii());
        }
    }
}
