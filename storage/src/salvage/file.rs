//! sled's file, segment by segment.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use longhaul_engine::StoreError;

use super::segment::{EmptySegment, Head, LENGTH, Segment};

/// sled's file.
#[derive(Debug)]
pub(super) struct SledFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl SledFile {
    pub(super) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|error| crate::error::io("opening", &path, &error))?;
        Ok(Self { path, file, length })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The offsets of the segments.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.length.div_ceil(LENGTH)).map(|number| number * LENGTH)
    }

    /// The header of a segment, if it is intact.
    pub(super) fn head(&mut self, start: u64) -> Result<Option<Head>, StoreError> {
        Ok(Head::read(&self.bytes(start, Head::LENGTH)?))
    }

    pub(super) fn segment(
        &mut self,
        start: u64,
    ) -> Result<Result<Segment, EmptySegment>, StoreError> {
        Ok(Segment::new(start, self.bytes(start, LENGTH)?))
    }

    /// Whether two segments are equal to the byte.
    pub(super) fn is_repeated(&mut self, first: u64, second: u64) -> Result<bool, StoreError> {
        Ok(self.bytes(first, LENGTH)? == self.bytes(second, LENGTH)?)
    }

    fn bytes(&mut self, start: u64, length: u64) -> Result<Vec<u8>, StoreError> {
        let mut read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            self.file.seek(SeekFrom::Start(start))?;
            Read::by_ref(&mut self.file).take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| crate::error::io("reading", &self.path, &error))
    }
}
