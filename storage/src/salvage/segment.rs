//! The messages of a segment of sled's file (sled 0.34).
//!
//! A segment is 512 KiB: a header of 20 bytes, then messages in sequence. A message is a header and
//! a body: CRC32 of all that follows it, kind, length of the body, number of the segment, number of
//! the page; numbers in one to nine bytes.

/// Bytes of a segment.
pub(super) const LENGTH: u64 = 512 * 1024;

/// Bytes before the first message of a segment.
const HEAD: usize = 20;

/// The header of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    begins: u64,
    durable: u64,
}

impl Head {
    pub(super) const LENGTH: u64 = HEAD as u64;

    /// Parses an intact header: the complement of a CRC32, and two numbers, each with all bits but
    /// the sign inverted.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (crc, rest) = bytes.get(..HEAD)?.split_first_chunk::<4>()?;
        let number = |at: usize| {
            let bytes = rest[at..at + 8].try_into().expect("the length was checked above");
            u64::try_from(i64::from_le_bytes(bytes) ^ i64::MAX).ok()
        };
        let is_whole = !crc32fast::hash(rest) == u32::from_le_bytes(*crc);
        // A log without durable data has a negative number here.
        if is_whole {
            Some(Self { begins: number(0)?, durable: number(8).unwrap_or(0) })
        } else {
            None
        }
    }

    /// Its log sequence number.
    pub(super) fn number(&self) -> u64 {
        self.begins / LENGTH
    }

    /// The log sequence number up to which the log was durable when it was written.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }
}

/// The kind of a message with a whole page.
pub(super) const NODE: u8 = 8;
/// The kind of a message with a change of a page.
pub(super) const LINK: u8 = 10;
/// The last of the kinds.
const LAST_KIND: u8 = 11;

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) kind: u8,
    pub(super) page: u64,
    pub(super) body: &'a [u8],
    /// Whether its checksum is valid.
    pub(super) is_whole: bool,
    segment: u64,
    end: usize,
}

/// A segment with at least one intact message.
#[derive(Debug)]
pub(super) struct Segment {
    start: u64,
    number: u64,
    bytes: Vec<u8>,
    /// The offset after which all bytes are zero, so no message begins.
    used: usize,
}

/// A segment without any message.
#[derive(Debug)]
pub(super) struct EmptySegment {
    /// Whether it holds data nevertheless.
    pub(super) is_used: bool,
}

impl Segment {
    /// The segment that begins at byte `start` of the file.
    pub(super) fn new(start: u64, bytes: Vec<u8>) -> Result<Self, EmptySegment> {
        let whole = |at| message(&bytes, at).filter(|message| message.is_whole);
        let used = used(&bytes);
        match (HEAD..used).find_map(whole).map(|message| message.segment) {
            Some(number) => Ok(Self { start, number, bytes, used }),
            None => Err(EmptySegment { is_used: used > 0 }),
        }
    }

    /// Its log sequence number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The end of the intact messages that follow each other from the start.
    pub(super) fn end(&self) -> u64 {
        let mut at = HEAD;
        while let Some(message) = self.own(at).filter(|message| message.is_whole) {
            at = message.end;
        }
        at as u64
    }

    /// Visits the messages, including damaged ones with a valid length; returns the damaged places.
    /// The space after the last message of the last segment may hold old data.
    pub(super) fn walk<'a>(
        &'a self,
        is_last: bool,
        mut visit: impl FnMut(Message<'a>),
    ) -> Vec<u64> {
        let mut places = Vec::new();
        let mut at = HEAD;
        while at < self.bytes.len() {
            match self.own(at) {
                Some(message) if message.is_whole || self.goes_on_at(message.end) => {
                    if !message.is_whole {
                        places.push(self.start + at as u64);
                    }
                    at = message.end;
                    visit(message);
                }
                damaged => {
                    let next = (at + 1..self.used).find(|next| self.is_whole_at(*next));
                    if next.is_some() || (damaged.is_some() && !is_last) {
                        places.push(self.start + at as u64);
                    }
                    if let (None, Some(message)) = (next, damaged) {
                        visit(message);
                    }
                    at = next.unwrap_or(self.bytes.len());
                }
            }
        }
        places
    }

    fn own(&self, at: usize) -> Option<Message<'_>> {
        message(&self.bytes, at).filter(|message| message.segment == self.number)
    }

    fn is_whole_at(&self, at: usize) -> bool {
        self.own(at).is_some_and(|message| message.is_whole)
    }

    fn goes_on_at(&self, at: usize) -> bool {
        self.is_whole_at(at) || self.bytes[at..self.used.max(at)].iter().all(|byte| *byte == 0)
    }
}

/// The number of bytes compared with zeros at once.
const BLOCK: usize = 64;

/// The offset after which all bytes are zero. Most of a young log is zeros, and searching them for
/// messages dominates the time.
fn used(bytes: &[u8]) -> usize {
    let is_used = |block: &[u8]| *block != [0; BLOCK][..block.len()];
    bytes.chunks(BLOCK).rposition(is_used).map_or(0, |last| (last + 1) * BLOCK).min(bytes.len())
}

/// A candidate for a message.
fn message(bytes: &[u8], at: usize) -> Option<Message<'_>> {
    let rest = bytes.get(at..)?;
    let mut header = Fields(rest);
    let crc = u32::from_le_bytes(header.take(4)?.try_into().ok()?);
    let kind = header.byte().filter(|kind| (1..=LAST_KIND).contains(kind))?;
    let length = usize::try_from(header.number()?).ok()?;
    let segment = header.number()?;
    let page = header.number()?;
    let head = rest.len() - header.0.len();
    let body = header.take(length)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(body);
    hasher.update(&rest[4..head]);
    let is_whole = !hasher.finalize() == crc;
    Some(Message { kind, page, body, is_whole, segment, end: at + head + length })
}

/// A reader of fields; `None` at the end of the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A variable-length number: up to 240 in one byte.
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = u64::from(self.byte()?);
        Some(match first {
            0..=240 => first,
            241..=248 => 240 + 256 * (first - 241) + u64::from(self.byte()?),
            249 => 2288 + 256 * u64::from(self.byte()?) + u64::from(self.byte()?),
            more => {
                let mut bytes = [0; 8];
                let taken = self.take(usize::try_from(more).ok()? - 247)?;
                bytes[..taken.len()].copy_from_slice(taken);
                u64::from_le_bytes(bytes)
            }
        })
    }

    /// The bytes after their number.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }
}
