//! Tests of history files: a frozen file, unusual payloads, and every kind of damage.
//!
//! `LONGHAUL_RECORD=1 cargo test -p longhaul-storage history_file` rewrites the frozen file for the
//! next test run. Changing one of its lines breaks the files of users.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use longhaul_engine::{EventKind, Payload};

use super::{MAX_LINE, read, write};
use crate::wire::json;
use crate::wire::samples::{history, json, single};
use crate::wire::v1::EventKind as WireKind;

const GOLDEN: &str = include_str!("golden.jsonl");

/// The file with a matching footer.
fn sealed(content: &str) -> String {
    let blake3 = blake3::hash(content.as_bytes()).to_hex();
    format!("{content}{{\"end\":true,\"blake3\":\"{blake3}\"}}\n")
}

/// The frozen file with one replacement, and a matching footer.
#[track_caller]
fn edited(from: &str, to: &str) -> String {
    let (content, _) = GOLDEN.split_once("{\"end\"").unwrap();
    let changed = content.replacen(from, to, 1);
    assert!(changed != content, "{from} is in the frozen text");
    sealed(&changed)
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let error = read(text).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error:?} does not say {expected:?}");
}

#[test]
fn histories_are_written_as_they_always_were() {
    let (run, events) = history();
    let written = write(&run, &events).unwrap();
    if std::env::var_os("LONGHAUL_RECORD").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/history_file/golden.jsonl");
        return std::fs::write(path, written).unwrap();
    }
    for (written, golden) in written.lines().zip(GOLDEN.lines()) {
        assert_eq!(written, golden);
    }
    assert_eq!(written, GOLDEN);
}

#[test]
fn every_kind_of_event_is_in_the_frozen_text() {
    let (_, events) = read(GOLDEN).unwrap();
    let there: BTreeSet<&str> = events.iter().map(|event| event.kind.name()).collect();
    // serde lists the variants in its error.
    let error =
        serde_json::from_str::<WireKind<json::Json>>(r#"{"None":{}}"#).unwrap_err().to_string();
    let kinds: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
    assert_eq!(there, kinds);
}

#[test]
fn what_is_read_is_what_was_written_and_is_written_again_byte_for_byte() {
    let (run, events) = read(GOLDEN).unwrap();
    assert_eq!((run.clone(), events.clone()), history());
    assert_eq!(write(&run, &events).unwrap(), GOLDEN);
    let without_end = GOLDEN.strip_suffix('\n').unwrap();
    assert_eq!(read(without_end).unwrap(), (run, events), "the last line end may be missing");
}

#[test]
fn payloads_are_embedded_as_the_json_that_they_are_if_a_line_keeps_them() {
    let cases = [
        ("null", "null"),
        ("1.0e+02", "1.0e+02"),
        (r#"{"b" : 1,"b":[ ],"\u0061":"\ud800"}"#, r#"{"b" : 1,"b":[ ],"\u0061":"\ud800"}"#),
        ("\"\u{2028}\"", "\"\u{2028}\""),
        (r#"{ "$text":"x"}"#, r#"{ "$text":"x"}"#),
        (" 1", r#"{"$text":" 1"}"#),
        ("1\t", r#"{"$text":"1\t"}"#),
        ("{\n}", r#"{"$text":"{\n}"}"#),
        ("[\r]", r#"{"$text":"[\r]"}"#),
        ("1\n", r#"{"$text":"1\n"}"#),
        (r#"{"$text":"x"}"#, r#"{"$text":"{\"$text\":\"x\"}"}"#),
        (r#"{"$text":1,"more":2}"#, r#"{"$text":"{\"$text\":1,\"more\":2}"}"#),
    ];
    for (payload, embedded) in cases {
        let (run, events) = single(EventKind::RunCompleted { output: json(payload) });
        let text = write(&run, &events).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert!(
            line.ends_with(&format!(r#","output":{embedded}}}"#)),
            "{payload:?} becomes {line}"
        );
        assert_eq!(read(&text).unwrap(), (run, events), "{payload:?}");
    }
}

#[test]
fn a_payload_of_any_depth_is_kept() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (run, events) = single(EventKind::RunCompleted { output: json(&deep) });
    assert_eq!(read(&write(&run, &events).unwrap()).unwrap(), (run, events));
}

#[test]
fn times_are_kept_to_the_microsecond_in_every_year() {
    let time = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    for fire_at in
        ["-262000-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "+12026-01-01T00:00:00.000001Z"]
            .map(time)
    {
        let (run, events) = single(EventKind::TimerStarted { command: 0, fire_at });
        assert_eq!(read(&write(&run, &events).unwrap()).unwrap(), (run, events));
    }
}

#[test]
fn a_payload_that_is_not_json_is_not_written() {
    for payload in [&b""[..], b"{", b"1 2", b"nul", b"\"a\nb\"", b"\"\xff\""] {
        let (run, events) =
            single(EventKind::RunCompleted { output: Payload::from_bytes(payload) });
        let error = write(&run, &events).unwrap_err();
        let expected = "event 0 (RunCompleted) cannot be written: a payload is not JSON (";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_history_with_a_gap_is_not_written() {
    let (run, mut events) = history();
    events.remove(4);
    let expected = "event 4 is expected, and event 5 is there: a history has no gaps";
    assert_eq!(write(&run, &events).unwrap_err().to_string(), expected);
}

#[test]
fn a_line_that_is_too_long_is_neither_written_nor_read() {
    let long = format!("\"{}\"", "x".repeat(MAX_LINE));
    let (run, events) = single(EventKind::RunCompleted { output: json(&long) });
    let error = write(&run, &events).unwrap_err();
    assert!(error.to_string().contains("and at most 67108864 are read"), "{error}");
    check_refused(
        &format!("{{}}\n{long}"),
        "line 2: it has 67108866 bytes, and at most 67108864 are read",
    );
}

#[test]
fn what_is_no_history_of_this_version_is_refused_by_its_first_line() {
    for text in ["", "\n", "hello", "[]", "{}", r#"{"name":"shop"}"#] {
        check_refused(text, "line 1: not a `longhaul.history` file: it says `");
    }
    check_refused(
        &edited("longhaul.history/1", "longhaul.list/1"),
        "its schema is `longhaul.list/1`",
    );
    check_refused(
        &edited("longhaul.history/1", "longhaul.history/01"),
        "its schema is `longhaul.history/01`",
    );
    let newer = "line 1: the file is a `longhaul.history/2`, and this program reads up to \
                 `longhaul.history/1`";
    check_refused("{\"schema\":\"longhaul.history/2\",\"else\":1}\n?", newer);
    check_refused(&edited("shop/login/1", "shop login"), "`shop login` cannot be a run id");
    check_refused(&edited(",\"events\":", ",\"size\":"), "unknown field `size`");
}

#[test]
fn a_file_that_was_cut_off_names_its_last_line() {
    for (length, _) in GOLDEN.char_indices().filter(|(length, _)| *length < GOLDEN.len() - 1) {
        let cut = &GOLDEN[..length];
        let error = read(cut).expect_err(cut).to_string();
        let (line, reason) = match cut.lines().count() {
            0 | 1 if length < GOLDEN.find('\n').unwrap() => (1, ""),
            lines => (lines, "the file ends without its footer: it is truncated; get it again"),
        };
        assert!(error.starts_with(&format!("line {line}: {reason}")), "{length} bytes: {error}");
    }
}

#[test]
fn no_single_byte_can_change_unnoticed() {
    let last = GOLDEN.lines().count();
    for index in 0..GOLDEN.len() {
        for change in [1, 0x20, GOLDEN.as_bytes()[index] ^ b'\n'] {
            let mut bytes = GOLDEN.as_bytes().to_vec();
            bytes[index] ^= change;
            let Ok(text) = String::from_utf8(bytes) else { continue };
            if text == GOLDEN {
                continue;
            }
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.starts_with("line "), "{error}");
            // A removed or added line end shifts the number of the last line.
            let named = [1, last - 1, last, last + 1]
                .iter()
                .any(|line| error.starts_with(&format!("line {line}: ")));
            assert!(named, "byte {index}: {error}");
        }
    }
    let flipped = GOLDEN.replacen("stale", "stble", 1);
    check_refused(&flipped, &format!("line {last}: the lines before hash to "));
    check_refused(&flipped, "the file is damaged or was edited; get it again from its source");
}

#[test]
fn a_changed_line_is_refused_or_says_something_else() {
    for line in GOLDEN.lines().skip(1) {
        for index in 0..line.len() {
            for change in [1, 0x20, line.as_bytes()[index] ^ b' '] {
                let mut bytes = line.as_bytes().to_vec();
                bytes[index] ^= change;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                if let Ok(event) = json::read_event(&text) {
                    assert_eq!(json::event_line(&event).unwrap(), text);
                }
            }
        }
    }
}

#[test]
fn a_file_that_was_edited_and_sealed_again_is_still_checked() {
    let cases = [
        ("\"position\":4", "\"position\":5", "line 6: event 4 is expected, and event 5 is there"),
        ("\"events\":44", "\"events\":45", "line 1: 45 events are announced, but 44 are present"),
        ("\"TimerFired\"", "\"TimerRang\"", "line 22: `TimerRang`: unknown variant `TimerRang`"),
        ("\"at\":\"2026-01-01T00:00:03.000000Z\",", "", "line 5: `at` is missing"),
        (
            "00:00:03.000000Z",
            "00:00:03Z",
            "line 5: `at`: `2026-01-01T00:00:03Z` is not a time like",
        ),
        (
            "{\"position\":3,",
            "{\"position\":3,\"color\":1,",
            "line 5: `ActivityStarted`: unknown field `color`",
        ),
        (
            "{\"position\":3,",
            "{\"position\":7,\"position\":3,",
            "line 5: byte 13 begins `7,\"position\":3,",
        ),
        ("{\"position\":3,", "{ \"position\":3,", "line 5: byte 2 begins ` \"position\":3,"),
        ("{\"position\":3,", "[\"position\":3,", "line 5: not an event, but `[\"position\":3,"),
        (
            "\"kind\":\"retryable\"",
            "\"kind\":\"rate_limited\"",
            "line 7: `ActivityFailed`: invalid type: unit variant",
        ),
        (
            "\"kind\":\"cancelled\",",
            "\"kind\":\"lost\",",
            "line 9: `ActivityFailed`: unknown variant `lost`",
        ),
        ("\"output\":[ 1, 2 ]", "\"output\":[ 1, 2 }", "line 14: not an event, but "),
        ("\"output\":3", "\"output\":{\"$text\":\"3\"}", "this version writes `3}`"),
        (
            "\"output\":3",
            "\"output\":{\"$text\":\"{\"}",
            "`RunCompleted`: an embedded payload is invalid: ",
        ),
        ("cdef\"", "cdeF\"", "begins `F\"}`, and this version writes `f\"}`"),
        ("\"to\":\"p\"", "\"to\":\"p q\"", "`SignalSent`: `p q` cannot be a run id"),
        (
            "\"command\":6,",
            "\"command\":-6,",
            "line 17: `MessageAwaited`: invalid value: integer `-6`, expected u32",
        ),
    ];
    for (from, to, expected) in cases {
        check_refused(&edited(from, to), expected);
    }
}
