//! The frame of every record: format, kind, length, body, checksum; checked before decoding.

use longhaul_engine::{Payload, StoreError};
use serde::{Serialize, de::DeserializeOwned};
use sled::IVec;

use crate::blob::{NewBlob, Source};
use crate::error::ReadError;
use crate::wire::v1::{self, Stored};

/// A stored record: key and value.
pub(crate) type Entry = (IVec, IVec);

/// A key with its new value; `None` removes it.
pub(crate) type Write = (IVec, Option<IVec>);

/// The format written by this version.
pub(crate) const FORMAT: u8 = 1;

/// A body longer than this becomes a blob.
///
/// sled moves a page larger than a quarter of its segment (128 KiB) into a file that it never
/// syncs. A leaf holds up to 17 records, and up to 21 while two are merged, so record, key and
/// overhead must stay below 6,200 bytes.
pub(crate) const INLINE_BODY: usize = 5 * 1024;

/// The longest body written or decoded.
const LONGEST_BODY: usize = 64 * 1024 * 1024;

/// Flag in the kind byte: the body is the name of the blob with the content.
const SPILLED: u8 = 0x80;

const HEADER: usize = 6;
const CHECKSUM: usize = 4;

/// The capacity for a typical record.
const USUAL_RECORD: usize = 512;

/// A type that forms the body of one kind of record.
pub(crate) trait Body: Serialize + DeserializeOwned {
    /// The kind byte.
    const KIND: u8;
}

impl Body for v1::Event<Stored> {
    const KIND: u8 = 1;
}
impl Body for v1::Summary {
    const KIND: u8 = 2;
}
impl Body for v1::Mail<Stored> {
    const KIND: u8 = 3;
}
impl Body for Stored {
    const KIND: u8 = 4;
}
impl Body for v1::Owner {
    const KIND: u8 = 5;
}
impl Body for v1::Format {
    const KIND: u8 = 6;
}

/// A record under construction. The checksum at its end covers the key too.
#[derive(Debug)]
pub(crate) struct Unsealed(Vec<u8>);

impl Unsealed {
    /// The bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value to store under `key`.
    pub(crate) fn seal(mut self, key: &[u8]) -> Vec<u8> {
        let sum = checksum(key, &self.0);
        self.0.extend_from_slice(&sum.to_le_bytes());
        self.0
    }
}

/// Frames a body; a too long body becomes a blob.
pub(crate) fn encode<B: Body>(body: &B, blobs: &mut Vec<NewBlob>) -> Result<Unsealed, StoreError> {
    let mut framed = frame(B::KIND, body)?;
    let length = framed.len() - HEADER;
    if length <= INLINE_BODY {
        return Ok(framed);
    }
    if length > LONGEST_BODY {
        let reason =
            format!("a record of {length} bytes is refused: the longest is {LONGEST_BODY}");
        return Err(StoreError::Unusable(reason));
    }
    let blob = NewBlob::of(Payload::from_bytes(framed.0.split_off(HEADER)));
    let name = blob.name.clone();
    blobs.push(blob);
    frame(B::KIND | SPILLED, &name)
}

/// A record whose body never becomes a blob.
pub(crate) fn encode_small<B: Body>(key: &[u8], body: &B) -> Result<Vec<u8>, StoreError> {
    Ok(frame(B::KIND, body)?.seal(key))
}

/// Checks a record and decodes its body.
pub(crate) fn decode<B: Body>(
    key: &[u8],
    value: &[u8],
    source: Source<'_>,
) -> Result<B, ReadError> {
    let (kind, body) = check(key, value)?;
    if kind == B::KIND {
        from_bytes(body)
    } else if kind == B::KIND | SPILLED {
        from_bytes(&source.fetch(&from_bytes(body)?)?)
    } else {
        Err(ReadError::Damaged(format!("it is of kind {kind}, not {}", B::KIND)))
    }
}

/// The kind and the body of a valid record.
fn check<'a>(key: &[u8], value: &'a [u8]) -> Result<(u8, &'a [u8]), ReadError> {
    let Some((framed, sum)) =
        value.split_last_chunk::<CHECKSUM>().filter(|(framed, _)| framed.len() >= HEADER)
    else {
        return Err(ReadError::Damaged(format!("it has only {} bytes", value.len())));
    };
    if checksum(key, framed) != u32::from_le_bytes(*sum) {
        return Err(ReadError::Damaged("its checksum does not match".into()));
    }
    let [format, kind, length @ ..] =
        framed.first_chunk::<HEADER>().expect("the length was checked above");
    if *format != FORMAT {
        let reason = format!(
            "format {format} is not known to this version of longhaul, which knows {FORMAT}"
        );
        return Err(ReadError::Damaged(reason));
    }
    let body = &framed[HEADER..];
    if u32::from_le_bytes(*length) as usize != body.len() {
        return Err(ReadError::Damaged("its length does not match".into()));
    }
    Ok((*kind, body))
}

/// Writes the header before a body.
fn frame<T: Serialize>(kind: u8, body: &T) -> Result<Unsealed, StoreError> {
    let mut framed = Vec::with_capacity(USUAL_RECORD);
    framed.extend_from_slice(&[FORMAT, kind, 0, 0, 0, 0]);
    // The limit is needed: a damaged length could otherwise allocate any amount of memory.
    bincode::serde::encode_into_std_write(body, &mut framed, bincode::config::standard())
        .map_err(|error| StoreError::Unusable(format!("a record cannot be encoded: {error}")))?;
    let length = u32::try_from(framed.len() - HEADER).map_err(|_| {
        StoreError::Unusable(format!("a record of {} bytes is refused", framed.len()))
    })?;
    framed[2..HEADER].copy_from_slice(&length.to_le_bytes());
    Ok(Unsealed(framed))
}

/// Whether the checksum of a record is valid.
pub(crate) fn is_whole(key: &[u8], value: &[u8]) -> bool {
    check(key, value).is_ok()
}

fn checksum(key: &[u8], framed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(framed);
    hasher.finalize()
}

fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReadError> {
    let config = bincode::config::standard().with_limit::<LONGEST_BODY>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config)
        .map_err(|error| ReadError::Damaged(format!("it cannot be decoded: {error}")))?;
    if used != bytes.len() {
        return Err(ReadError::Damaged(format!("{} bytes follow its end", bytes.len() - used)));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> v1::Owner {
        v1::Owner { pid: 77, at: v1::Time(chrono::DateTime::from_timestamp_micros(-5).unwrap()) }
    }

    fn sample() -> (Vec<u8>, Vec<u8>) {
        let key = b"@owner\0".to_vec();
        let value = encode_small(&key, &owner()).unwrap();
        (key, value)
    }

    /// A frame around raw bytes.
    fn framed(kind: u8, body: &[u8]) -> Unsealed {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        Unsealed([&[FORMAT, kind][..], &length, body].concat())
    }

    fn decoded(key: &[u8], value: &[u8]) -> Result<v1::Owner, ReadError> {
        decode(key, value, Source::Nowhere)
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (key, value) = sample();
        assert_eq!(decoded(&key, &value), Ok(owner()));
        for bit in 0..value.len() * 8 {
            let mut bad = value.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decoded(&key, &bad), Err(ReadError::Damaged(_))), "bit {bit}");
        }
        assert!(decoded(b"@owner\x01", &value).is_err(), "a record under another key");
        for length in 0..value.len() {
            assert!(decoded(&key, &value[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_length_beyond_reason_is_an_error_and_not_an_abort() {
        let key = b"k";
        let huge = [253, 255, 255, 255, 255, 255, 255, 255, 127];
        for kind in [1, 2, 3, 4] {
            for at in 0..12 {
                let value = framed(kind, &[&vec![0; at][..], &huge].concat()).seal(key);
                let _ = decode::<v1::Event<Stored>>(key, &value, Source::Nowhere);
                let _ = decode::<v1::Summary>(key, &value, Source::Nowhere);
                let _ = decode::<v1::Mail<Stored>>(key, &value, Source::Nowhere);
                let _ = decode::<Stored>(key, &value, Source::Nowhere);
            }
        }
    }

    #[test]
    fn a_long_body_becomes_a_blob() {
        let mut blobs = Vec::new();
        let body = Stored::Inline(vec![7; INLINE_BODY + 1]);
        let value = encode(&body, &mut blobs).unwrap().seal(b"k");
        assert!(value.len() < 100);
        assert_eq!(blobs.len(), 1);
        assert_eq!(decode::<Stored>(b"k", &value, Source::Nowhere), Err(ReadError::TooMuch));
    }
}
