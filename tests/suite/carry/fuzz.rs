//! Files that were changed at random: what reads them gives an error or a value that is written the
//! same again, and never panics.
//!
//! The seeds are fixed, so that a failure comes again. `LONGHAUL_FUZZ_SECONDS` says for how long
//! each test goes on, 2 if it is not set. Stored records are changed likewise, in
//! `longhaul-storage`.

use std::time::{Duration, Instant};

use longhaul_backlog::{FeatureList, import, read_tasks};
use longhaul_storage::bundle::{Reader, Writer};
use longhaul_storage::{RunRecord, history_file};
use longhaul_tests::dice::Dice;
use longhaul_workflows::backlog::Backlog;

/// Things that matter to the formats.
const WORDS: [&str; 24] = [
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "{\"$text\":",
    "}",
    "]",
    "\"",
    ",",
    ":",
    "\n",
    "\\",
    "\u{feff}",
    "é",
    "\"id\":\"x\"",
    "\"position\":",
    "\"kind\":\"RunCancelled\"",
    "- [ ] ",
];

fn change(text: &str, dice: &mut Dice) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(text.len());
        let to = (at + dice.roll(40)).min(text.len());
        match dice.roll(5) {
            0 => drop(text.drain(at..to)),
            1 => text.truncate(at),
            2 => {
                let copy: Vec<char> = text[at..to].to_vec();
                let place = dice.roll(text.len());
                drop(text.splice(place..place, copy));
            }
            _ => {
                let word = WORDS[dice.roll(WORDS.len())].chars();
                let to = if dice.roll(2) == 0 { at } else { to };
                drop(text.splice(at..to, word));
            }
        }
    }
    text.into_iter().collect()
}

/// Does this with one seed after the other until the time is over.
fn for_a_while(each: impl Fn(&mut Dice)) {
    let seconds =
        std::env::var("LONGHAUL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    for seed in 1.. {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| each(&mut dice)));
        assert!(done.is_ok(), "seed {seed}");
        if Instant::now() > until {
            return;
        }
    }
}

/// The same text with every checksum made to fit what it is of, so that readers get to see the
/// change.
fn sealed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut whole = String::new();
    let mut history = String::new();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("{\"schema\":\"longhaul.history/") {
            history.clear();
        }
        let digest = |text: &str| blake3::hash(text.as_bytes()).to_hex();
        let line = match line.split_once(",\"blake3\":") {
            Some((head, _)) => {
                let digest = if head.starts_with("{\"run\":") {
                    let section: String = lines[at + 1..]
                        .iter()
                        .take(lines_of(head))
                        .fold(String::new(), |text, line| text + line + "\n");
                    digest(&section)
                } else if head == "{\"end\":true" {
                    digest(&history)
                } else {
                    digest(&whole)
                };
                format!("{head},\"blake3\":\"{digest}\"}}")
            }
            None => (*line).to_owned(),
        };
        for text in [&mut whole, &mut history] {
            *text += &line;
            text.push('\n');
        }
    }
    whole
}

/// How many lines the first line of a run announces.
fn lines_of(head: &str) -> usize {
    let head: serde_json::Value = serde_json::from_str(&format!("{head}}}")).unwrap_or_default();
    let counts = ["events", "mail", "published"].map(|name| head[name].as_u64().unwrap_or(0));
    usize::try_from(counts.into_iter().fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

fn stories() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/histories");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort_unstable();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .filter(|text| text.len() < 60_000)
        .collect()
}

#[test]
fn changed_histories() {
    let stories = stories();
    for_a_while(|dice| {
        let story = &stories[dice.roll(stories.len())];
        let _ = history_file::read(&change(story, dice));
        let text = sealed(&change(story, dice));
        if let Ok((run, events)) = history_file::read(&text) {
            assert_eq!(history_file::write(&run, &events).unwrap(), text);
        }
    });
}

fn bundled(stories: &[String]) -> String {
    let mut writer = Writer::new(Vec::new(), longhaul_storage::bundle::Header::default()).unwrap();
    for story in stories {
        let (run, events) = history_file::read(story).unwrap();
        let mut record = RunRecord::of_history(run, events).unwrap();
        let body = longhaul_engine::MessageBody::Resume(longhaul_engine::RequestedBy::default());
        record.mailbox.push(longhaul_engine::Message {
            seq: 7 << 32,
            at: record.summary.started_at,
            body,
        });
        writer.write(&record).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

#[test]
fn changed_exports() {
    let stories = stories();
    let bundles: Vec<String> = stories.chunks(2).map(bundled).collect();
    assert_eq!(sealed(&bundles[0]), bundles[0]);
    for_a_while(|dice| {
        let bundle = &bundles[dice.roll(bundles.len())];
        if let Ok(reader) = Reader::new(change(bundle, dice).as_bytes()) {
            reader.for_each(drop);
        }
        let text = sealed(&change(bundle, dice));
        let Ok(reader) = Reader::new(text.as_bytes()) else { return };
        let mut writer = Writer::new(Vec::new(), reader.header()).unwrap();
        let is_bundle = text.starts_with("{\"schema\":\"longhaul.export/");
        for record in reader {
            let Ok(record) = record else { return };
            writer.write(&record).unwrap();
        }
        if is_bundle {
            assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), text);
        }
    });
}

#[test]
fn changed_feature_lists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../backlog/tests/backlogs");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end != "rs")).collect();
    files.sort_unstable();
    let lists: Vec<String> =
        files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for_a_while(|dice| {
        let text = change(&lists[dice.roll(lists.len())], dice);
        if let Ok(list) = FeatureList::parse(&text) {
            let again = FeatureList::parse(&list.to_text()).expect("what was written is read");
            assert_eq!(again.features(), list.features());
            let _ = Backlog::new(list.into_features());
        }
        let _ = read_tasks(&text);
        let _ = import::read(&text, &import::Options::default());
    });
}
