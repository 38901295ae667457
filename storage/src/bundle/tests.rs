//! Tests of run files: a frozen file, its decoded value, and every kind of damage.
//!
//! `LONGHAUL_RECORD=1 cargo test -p longhaul-storage bundle` rewrites the frozen file for the next
//! test run. Changing one of its lines breaks the files of users.

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{Event, EventKind, Message, MessageBody, Payload, RequestedBy, RunId};

use super::{Backup, Header, Reader, Writer};
use crate::FileError;
use crate::run_record::{self, RunRecord};

const GOLDEN: &str = include_str!("golden.jsonl");

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap()
}

fn history(id: &str) -> RunRecord {
    let started = EventKind::RunStarted {
        workflow: "feature".into(),
        input: Payload::from_bytes(&br#"{"name":"Gr\u00fc\u00dfe"}"#[..]),
        parent: None,
        labels: [("team".to_owned(), "a".to_owned())].into(),
        cause: Cause::Started,
    };
    let published =
        EventKind::StatusPublished { command: 0, key: "plan".into(), value: Payload::of(&[1, 2]) };
    let completed = EventKind::RunCompleted { output: Payload::of("\n") };
    let event = |(position, kind)| Event { position, at: at(position.cast_signed()), kind };
    let events = (0..).zip([started, published, completed]).map(event).collect();
    RunRecord::of_history(RunId::new(id).unwrap(), events).unwrap()
}

/// A finished run, a pruned one, and one with unread messages.
fn runs() -> Vec<RunRecord> {
    let mut pruned = history("shop/b");
    pruned.events.drain(..2);
    pruned.summary = run_record::pruned(pruned.summary, 2, at(9));
    let mut going = history("shop/c");
    going.events.pop();
    going = RunRecord::of_history(going.run, going.events).unwrap();
    going.published.insert("text".into(), Payload::from_bytes(&b" {\n}"[..]));
    let signal = MessageBody::signal("go", Payload::of(&1));
    let pause = MessageBody::Pause(RequestedBy { by: "ann".into(), why: "lunch".into() });
    going.mailbox = [signal, pause]
        .into_iter()
        .zip(1 << 32..)
        .map(|(body, seq)| Message { seq, at: at(5), body })
        .collect();
    vec![history("shop/a"), pruned, going]
}

const HEADER: Header = Header { backup: None };

fn written(header: Header, runs: &[RunRecord]) -> String {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for run in runs {
        writer.write(run).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn read(text: &[u8]) -> Result<Vec<RunRecord>, FileError> {
    Reader::new(text)?.collect()
}

/// The frozen file with one replacement, and matching footers.
#[track_caller]
fn edited(from: &str, to: &str) -> String {
    let (content, _) = GOLDEN.rsplit_once("{\"end\"").unwrap();
    let changed = rehashed(&content.replacen(from, to, 1));
    assert!(changed != content, "{from} is in the frozen text");
    let blake3 = blake3::hash(changed.as_bytes()).to_hex();
    format!("{changed}{{\"end\":true,\"runs\":3,\"blake3\":\"{blake3}\"}}\n")
}

/// The file with matching hashes of its runs.
fn rehashed(text: &str) -> String {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("{\"run\"") || sections.is_empty() {
            sections.push((line.to_owned(), String::new()));
        } else if let Some((_, rest)) = sections.last_mut() {
            *rest += &format!("{line}\n");
        }
    }
    let whole = |(head, rest): (String, String)| match head.rsplit_once("\"blake3\":") {
        Some((begin, _)) => {
            format!("{begin}\"blake3\":\"{}\"}}\n{rest}", blake3::hash(rest.as_bytes()).to_hex())
        }
        None => format!("{head}\n{rest}"),
    };
    sections.into_iter().map(whole).collect()
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let error = read(text.as_bytes()).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error:?} does not say {expected:?}");
}

#[test]
fn runs_are_written_as_they_always_were() {
    let text = written(HEADER, &runs());
    if std::env::var_os("LONGHAUL_RECORD").is_some() {
        return std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/bundle/golden.jsonl"),
            text,
        )
        .unwrap();
    }
    for (written, golden) in text.lines().zip(GOLDEN.lines()) {
        assert_eq!(written, golden);
    }
    assert_eq!(text, GOLDEN);
}

#[test]
fn what_is_read_is_what_was_written() {
    assert_eq!(read(GOLDEN.as_bytes()).unwrap(), runs());
    let without_end = GOLDEN.strip_suffix('\n').unwrap();
    assert_eq!(read(without_end.as_bytes()).unwrap(), runs(), "the last line end may be missing");
    let mut encoder = super::compressed(Vec::new()).unwrap();
    std::io::Write::write_all(&mut encoder, GOLDEN.as_bytes()).unwrap();
    assert_eq!(read(&encoder.finish().unwrap()).unwrap(), runs());
}

#[test]
fn a_backup_says_of_what() {
    let header = Header { backup: Some(Backup { epoch: 7, at: at(1) }) };
    let text = written(header, &runs());
    assert!(text.starts_with(
        "{\"schema\":\"longhaul.export/1\",\"backup\":\
         {\"epoch\":7,\"at\":\"2026-01-01T00:00:01.000000Z\"}}\n"
    ));
    assert_eq!(Reader::new(text.as_bytes()).unwrap().header(), header);
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    for length in 0..GOLDEN.len() - 1 {
        assert!(read(&GOLDEN.as_bytes()[..length]).is_err(), "cut at {length}");
    }
    for at in 0..GOLDEN.len() - 1 {
        let mut bad = GOLDEN.as_bytes().to_vec();
        bad[at] ^= 1 << (at % 8);
        assert!(read(&bad).is_err(), "byte {at}");
    }
}

#[test]
fn errors_name_their_line() {
    check_refused("", "it is empty");
    check_refused("PK\u{3}\u{4}", "not a `longhaul.export` file: it says `PK");
    check_refused(&GOLDEN.replacen("export/1", "export/2", 1), "read it with a newer longhaul");
    check_refused(
        &GOLDEN.replacen("export/1", "export/01", 1),
        "its schema is `longhaul.export/01`",
    );
    check_refused(&format!("{GOLDEN}{{}}\n"), "something follows after the end");
    check_refused(&GOLDEN.replacen("shop/b", "shop/x", 1), "the file is damaged or was edited");
    check_refused(&edited("\"events\":3", "\"events\":4"), "the lines before hash to");
    check_refused(&edited("\"mail\":2", "\"mail\": 2"), "line 10: byte 35 begins ` 2,");
    check_refused(&edited("\"mail\":2", "\"mail\":3"), "the lines before hash to");
    check_refused(&edited("\"seq\":4294967296", "\"seq\":4294967299"), "not in order");
    check_refused(
        &edited("{\"name\":\"text\"", "{\"name\":\"aaaa\""),
        "published values are not in order",
    );
    check_refused(&edited("\"origin\":2", "\"origin\":2,\"more\":1"), "unknown field `more`");
    check_refused(
        &edited("\"pruned\":{\"events\":2", "\"pruned\":{\"events\":3"),
        "its summary is not that of its events",
    );
    check_refused(
        &edited("\"status\":\"completed\"", "\"status\":\"odd\""),
        "unknown variant `odd`",
    );
}

#[test]
fn histories_one_after_the_other_are_read_and_one_that_is_damaged_does_not_hide_the_next() {
    let one =
        |id| crate::history_file::write(&RunId::new(id).unwrap(), &history(id).events).unwrap();
    let text = [one("a"), one("b").replacen("plan", "plot", 1), one("c")].concat();
    let found: Vec<_> = Reader::new(text.as_bytes()).unwrap().collect();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].as_ref().unwrap(), &history("a"));
    assert!(
        found[1].as_ref().unwrap_err().to_string().starts_with("line 10: the lines before hash to")
    );
    assert_eq!(found[2].as_ref().unwrap(), &history("c"));
}
