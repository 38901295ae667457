//! Randomly changed records: decoding returns an error or a value, never panics, and never
//! allocates much memory.
//!
//! The seeds are fixed, so that a failure is reproducible. `LONGHAUL_FUZZ_SECONDS` sets the
//! duration, default 2.

use std::time::{Duration, Instant};

use crate::blob::Source;
use crate::codec::Decoder;
use crate::record::{self, Body};
use crate::wire::v1::{self, Stored};

const KEY: &[u8] = b"erun\0\0\0\0\0\0\0\0\x07";

/// Marsaglia's xorshift: good enough for choosing positions.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (sides.max(1) as u64)).unwrap_or(0)
    }
}

fn golden() -> Vec<Vec<u8>> {
    let lines =
        include_str!("../../golden/v1.txt").lines().filter_map(|line| line.split(' ').next_back());
    let bytes = |hex: &str| {
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
            .collect()
    };
    lines.map(bytes).collect()
}

fn change(frame: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(frame.len());
        match dice.roll(6) {
            0 => frame.truncate(at),
            1 => frame.insert(at, u8::try_from(dice.roll(256)).unwrap_or(0)),
            2 if !frame.is_empty() => drop(frame.remove(at)),
            // The prefix bytes of long numbers in the encoding.
            3 if !frame.is_empty() => frame[at] = 251 + u8::try_from(dice.roll(5)).unwrap_or(0),
            _ if !frame.is_empty() => frame[at] ^= 1 << dice.roll(8),
            _ => {}
        }
    }
}

/// Recomputes length and checksum, so that the decoder reaches the body.
fn sealed(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() >= 6 {
        let length = u32::try_from(frame.len() - 6).unwrap_or(0).to_le_bytes();
        frame[2..6].copy_from_slice(&length);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(KEY);
    hasher.update(&frame);
    frame.extend_from_slice(&hasher.finalize().to_le_bytes());
    frame
}

fn is_read<B: Body>(value: &[u8]) -> bool {
    record::decode::<B>(KEY, value, Source::Nowhere).is_ok()
}

fn read_as_everything(value: &[u8]) {
    let decoder = Decoder(Source::Nowhere);
    let _ = decoder.event(KEY, value);
    let _ = decoder.message(KEY, value);
    let _ = decoder.published(KEY, value);
    let _ = decoder.summary(KEY, value);
    let _ = (is_read::<v1::Owner>(value), is_read::<v1::Format>(value));
}

#[test]
fn changed_records_never_panic_and_never_pass_for_whole() {
    let seconds =
        std::env::var("LONGHAUL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    let golden = golden();
    for seed in 1.. {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let whole = &golden[dice.roll(golden.len())];
        let mut changed = whole.clone();
        change(&mut changed, &mut dice);
        if changed != *whole {
            assert!(
                !is_read::<v1::Event<Stored>>(&changed),
                "seed {seed}: a changed record passes the check"
            );
        }
        let mut frame = whole[..whole.len() - 4].to_vec();
        change(&mut frame, &mut dice);
        read_as_everything(&sealed(frame));
        if seed % 256 == 0 && Instant::now() > until {
            break;
        }
    }
}
