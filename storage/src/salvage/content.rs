//! The records in the messages of sled's file, applied in the order of writing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::segment::{Fields, LINK, Message, NODE};
use crate::record;

/// The keys and values so far.
#[derive(Debug, Default)]
pub(crate) struct Content {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The common key prefix of a page, which its keys omit.
    prefixes: HashMap<u64, Vec<u8>>,
}

/// A page with records.
struct Leaf<'a> {
    prefix: &'a [u8],
    low: &'a [u8],
    /// Empty: the page has no upper bound.
    high: &'a [u8],
    keys: Vec<&'a [u8]>,
    values: Vec<&'a [u8]>,
}

impl Content {
    /// The records.
    pub(crate) fn records(&self) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.records
    }

    /// Applies a message. From a damaged one only intact records are taken.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        let mut fields = Fields(message.body);
        match message.kind {
            NODE => {
                if let Some(leaf) = leaf(&mut fields) {
                    self.take_leaf(&leaf, message);
                }
            }
            LINK => {
                self.take_change(&mut fields, message);
            }
            _ => {}
        }
    }

    fn take_leaf(&mut self, leaf: &Leaf<'_>, message: &Message<'_>) {
        let pairs = leaf
            .keys
            .iter()
            .zip(&leaf.values)
            .map(|(key, value)| ([leaf.prefix, key].concat(), *value));
        let pairs: Vec<_> =
            pairs.filter(|(key, value)| message.is_whole || record::is_whole(key, value)).collect();
        if message.is_whole {
            // A record missing from the new page was removed, or moved to another page that comes
            // later.
            let there: BTreeSet<&[u8]> = pairs.iter().map(|(key, _)| key.as_slice()).collect();
            let end =
                if leaf.high.is_empty() { Bound::Unbounded } else { Bound::Excluded(leaf.high) };
            let range = self.records.range::<[u8], _>((Bound::Included(leaf.low), end));
            let gone: Vec<_> = range
                .map(|(key, _)| key)
                .filter(|key| !there.contains(key.as_slice()))
                .cloned()
                .collect();
            for key in gone {
                self.records.remove(&key);
            }
        }
        if message.is_whole || !pairs.is_empty() {
            self.prefixes.insert(message.page, leaf.prefix.to_vec());
        }
        self.records.extend(pairs.into_iter().map(|(key, value)| (key, value.to_vec())));
    }

    fn take_change(&mut self, fields: &mut Fields<'_>, message: &Message<'_>) -> Option<()> {
        let set = fields.byte()? == 0;
        let key = fields.text()?;
        if set {
            let value = fields.text()?;
            let full = self.full(message.page, key, value)?;
            self.records.insert(full, value.to_vec());
        } else if message.is_whole {
            let prefix = self.prefixes.get(&message.page).map(Vec::as_slice).unwrap_or_default();
            self.records.remove(&[prefix, key].concat());
        }
        Some(())
    }

    /// The full key of a record. Its prefix is that of its page, or of another page if its own is
    /// damaged; the checksum of the record confirms it.
    fn full(&self, page: u64, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let own = self.prefixes.get(&page).into_iter();
        let others = self.prefixes.values().chain(std::iter::once(const { &Vec::new() }));
        let mut keys = own.chain(others).map(|prefix| [prefix.as_slice(), key].concat());
        keys.find(|key| record::is_whole(key, value))
    }
}

/// A page, or its readable part; `None`: an index page without records.
fn leaf<'a>(fields: &mut Fields<'a>) -> Option<Leaf<'a>> {
    let _next = fields.number()?;
    let _merging_child = fields.number()?;
    let _merging = fields.byte()?;
    let shared = usize::from(fields.byte()?);
    let low = fields.text()?;
    let high = fields.text()?;
    if fields.byte()? != 0 {
        return None;
    }
    let count = usize::try_from(fields.number()?).ok()?;
    let keys: Vec<_> = std::iter::from_fn(|| fields.text()).take(count).collect();
    let values = std::iter::from_fn(|| fields.text()).take(count).collect();
    Some(Leaf { prefix: low.get(..shared)?, low, high, keys, values })
}
