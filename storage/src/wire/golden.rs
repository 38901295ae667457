//! Golden bytes: a sample of every kind of record and every variant, as version 1 writes it.
//!
//! `LONGHAUL_RECORD=1` rewrites them. After the first release, changing a line breaks stored logs.

use longhaul_engine::Message;

use super::samples::{at, bodies, history, json, summaries};
use super::v1::{self, Stored};
use crate::blob::Source;
use crate::codec::{Decoder, Encoder};
use crate::key;
use crate::record::{self, Write};

const DECODER: Decoder<'_> = Decoder(Source::Nowhere);

fn line(label: &str, value: &[u8]) -> String {
    value.iter().fold(format!("{label} "), |line, byte| line + &format!("{byte:02x}"))
}

fn split((key, value): Write) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.unwrap().to_vec())
}

fn lines() -> Vec<String> {
    let mut encoder = Encoder::default();
    let mut lines = Vec::new();
    let (run, events) = history();
    for event in events {
        let (key, value) = split(encoder.event(&run, &event).unwrap());
        assert_eq!(DECODER.event(&key, &value).unwrap(), event);
        lines.push(line(event.kind.name(), &value));
    }
    for summary in summaries() {
        let (key, value) = split(encoder.summary(&run, &summary).unwrap());
        assert_eq!(DECODER.summary(&key, &value).unwrap(), summary);
        lines.push(line("Summary", &value));
    }
    for body in bodies() {
        let message = Message { seq: 9, at: at(0), body };
        let (key, value) = split(encoder.message(&run, &message).unwrap());
        assert_eq!(DECODER.message(&key, &value).unwrap(), message);
        lines.push(line("Message", &value));
    }
    for (label, payload) in [("Published", json("7")), ("PublishedBlob", json(&"7".repeat(5000)))] {
        lines.push(line(label, &split(encoder.published(&run, "plan", &payload).unwrap()).1));
    }
    let owner = v1::Owner { pid: 4242, at: at(1).into() };
    lines.push(line("Owner", &record::encode_small(&key::owner(1), &owner).unwrap()));
    lines.push(line(
        "Format",
        &record::encode_small(key::FORMAT, &v1::Format { version: 1 }).unwrap(),
    ));
    let long = Stored::Inline(vec![b'8'; 20_000]);
    lines.push(line("Spilled", &record::encode(&long, &mut encoder.blobs).unwrap().seal(b"key")));
    lines
}

#[test]
fn records_are_written_as_they_always_were() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/v1.txt");
    let written = lines().join("\n") + "\n";
    if std::env::var_os("LONGHAUL_RECORD").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (written, golden) in written.lines().zip(golden.lines()) {
        assert_eq!(written, golden);
    }
    assert_eq!(written.lines().count(), golden.lines().count());
}

#[test]
fn a_time_is_kept_to_the_microsecond() {
    let at: chrono::DateTime<chrono::Utc> = "2026-01-01T00:00:00.000001999Z".parse().unwrap();
    assert_eq!(v1::Time::from(at).to_string(), "2026-01-01T00:00:00.000001Z");
}
