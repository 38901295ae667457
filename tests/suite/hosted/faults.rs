//! Real faults of models, providers and machines: what they cost, by the server's own count.
//!
//! `cargo test -p longhaul-tests --test suite hosted::faults -- --nocapture` prints the table.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longhaul_model_server::{
    Answer, Fault, Hold, Options, Outcome, Overflow, Part, Reply, Request,
};
use longhaul_tests::project::{Plan, plain};
use longhaul_tests::wait::{PATIENCE, until};
use serde_json::json;

use super::{Hosted, PLANS, SMALL, feature, works};

/// The largest part of all tokens that may be paid for twice.
const GOAL: f64 = 0.02;

/// Two features that do not depend on each other.
const TWO: [Plan; 2] = [plain("parser", &[], 1), plain("table", &[], 1)];

/// One line of the table.
struct Row {
    fault: &'static str,
    requests: usize,
    tokens: u64,
    twice: u64,
    sessions: usize,
    result: &'static str,
}

impl Row {
    /// Measures a project, in which exactly these features have passed.
    #[track_caller]
    fn of(hosted: &Hosted, fault: &'static str, passed: &[&str], result: &'static str) -> Self {
        let project = &hosted.world.project;
        let mut landed = project.landed("main");
        landed.sort_unstable();
        assert_eq!(landed, passed, "{fault}: no feature passes whose check fails");
        for feature in passed {
            let content = project.git(&["show", &format!("main:{feature}.txt")]);
            assert!(content.contains("finished"), "{fault}: {content}");
        }
        hosted.world.call("replay --all").exits(0).says("0 diverged");
        hosted.world.call("check").exits(0).says("no damage found");
        let paid = hosted.server.paid();
        #[expect(clippy::cast_precision_loss, reason = "numbers of tokens are small")]
        let part = paid.twice as f64 / paid.tokens.max(1) as f64;
        assert!(part < GOAL, "{fault}: {} of {} tokens paid twice", paid.twice, paid.tokens);
        let sessions = hosted.world.json("session list");
        Self {
            fault,
            requests: hosted.server.records().len(),
            tokens: paid.tokens,
            twice: paid.twice,
            sessions: sessions["sessions"].as_array().map_or(0, Vec::len),
            result,
        }
    }

    fn print(&self) {
        let Self { fault, requests, tokens, twice, sessions, result } = self;
        println!("| {fault} | {requests} | {sessions} | {tokens} | {twice} | {result} |");
    }
}

#[test]
fn real_faults_cost_little_and_pass_nothing() {
    let scenarios =
        [false_claims, loops, crash_after_a_third, rate_limits, full_window_in_an_edit, hangs];
    let running = scenarios.map(std::thread::spawn);
    let rows = running.map(|scenario| scenario.join().unwrap_or_else(|_| panic!("see above")));
    println!("| fault | requests | sessions | tokens | paid twice | result |");
    println!("|---|---|---|---|---|---|");
    for row in rows {
        row.print();
    }
}

/// The number of this conversation of a feature: one more for each that begins.
fn begins(request: &Request, count: &AtomicUsize) -> usize {
    let is_first = super::results(request) == 0;
    count.fetch_add(usize::from(is_first), Ordering::SeqCst) + usize::from(is_first)
}

fn finish() -> Reply {
    Answer::call("finish", &json!({ "summary": "It is done." })).into()
}

/// One model claims three times that work is done which it has not begun, another one always.
fn false_claims() -> Row {
    let conversations = AtomicUsize::new(0);
    let script = move |request: &Request| {
        let lies = feature(request) == "table" || begins(request, &conversations) <= 3;
        if lies { finish() } else { works(request) }
    };
    let hosted = Hosted::new(&TWO, "", Options::default(), script);
    hosted.world.run().exits(1).says("1 of 2 features pass");
    Row::of(
        &hosted,
        "false \"done\"",
        &["parser"],
        "3 claims refuted, then passed; the other blocked",
    )
}

/// One model repeats a call in its first two sessions, another one always.
fn loops() -> Row {
    let conversations = AtomicUsize::new(0);
    let script = move |request: &Request| {
        let again = Answer::call("list", &json!({})).into();
        if feature(request) == "table" {
            return again;
        }
        let begin = Answer::call("write", &json!({ "path": "parser.txt", "content": "begun\n" }));
        let end = json!({ "command": "grep begun parser.txt && echo finished >> parser.txt" });
        match (begins(request, &conversations), super::results(request)) {
            (1, 0) => begin.into(),
            (1 | 2, _) => again,
            (_, 0) => Answer::call("shell", &end).into(),
            _ => finish(),
        }
    };
    let hosted = Hosted::new(&TWO, "", Options::default(), script);
    hosted.world.run().exits(1).says("1 of 2 features pass").says("in a row changed nothing");
    assert_eq!(hosted.world.project.git(&["show", "main:parser.txt"]), "begun\nfinished");
    Row::of(&hosted, "loop", &["parser"], "passed in the 3rd session; the other blocked")
}

/// The steps of the long work.
const STEPS: usize = 120;

/// Makes a file for each step, which no later step repeats.
fn works_in_steps(request: &Request) -> Reply {
    if let Some(summary) = summary(request) {
        return summary;
    }
    let file = format!("{}.txt", feature(request));
    let step = format!(
        "mkdir -p steps; n=$(ls steps | wc -l); n=$((n+1)); test $n -gt {STEPS} || echo $n > steps/$n; \
         echo step $n of {STEPS}; head -c 1500 /dev/zero | tr '\\0' x; test $n -lt {STEPS} || echo finished > {file}"
    );
    match request.parts().last() {
        Some(Part::Result(result)) if super::counted(result) as usize >= STEPS => finish(),
        _ => Answer::call("shell", &json!({ "command": step })).into(),
    }
}

/// The answer to a request for a summary.
fn summary(request: &Request) -> Option<Reply> {
    let is_asked = request.last_text()?.starts_with("The context window is nearly full");
    let summary = json!({ "objective": "Go on.", "next_steps": ["Look at the files."] });
    is_asked.then(|| Answer::call("summary", &summary).into())
}

/// `kill -9` while the model answers, at a third of its answers.
fn crash_after_a_third() -> Row {
    let hold = Hold::new();
    let holding = hold.clone();
    let script = move |request: &Request| {
        let reply = works_in_steps(request);
        let is_held = request.number == STEPS / 3;
        if is_held { Reply::Held(holding.clone(), Box::new(reply)) } else { reply }
    };
    let options = Options { window: Some(8000), ..Options::default() };
    let hosted = Hosted::new(&PLANS[..1], SMALL, options, script);
    let mut run = hosted.world.begin();
    assert!(hosted.server.wait_for(PATIENCE, |records| records.len() == STEPS / 3));
    assert!(run.kill());
    hold.release();
    hosted.world.run().exits(0).says("1 of 1 features pass");
    let steps = hosted.world.project.git(&["ls-tree", "--name-only", "main:steps"]);
    assert_eq!(steps.lines().count(), STEPS, "no step is lost");
    Row::of(&hosted, "`kill -9` after a third", &["parser"], "passed; every step once")
}

/// Requests are refused for an hour; then, in another project, many times in a row.
fn rate_limits() -> Row {
    let refusing = |refused: std::ops::RangeInclusive<usize>, seconds| {
        move |request: &Request| {
            let is_refused = refused.contains(&request.number);
            if is_refused { Fault::RateLimited(Some(seconds)).into() } else { works(request) }
        }
    };
    let hosted = Hosted::new(&PLANS, "", Options::default(), refusing(3..=usize::MAX, 3600));
    let once = format!("run --once {}", hosted.world.project.root().display());
    hosted.world.call(&once).exits(3);
    let mut run = hosted.world.begin();
    std::thread::sleep(Duration::from_millis(300));
    run.kill();
    hosted.world.call(&once).exits(3).says("before");
    assert_eq!(hosted.server.records().len(), 3, "nothing is requested before the hour is over");

    let hosted = Hosted::new(&PLANS, "", Options::default(), refusing(3..=9, 1));
    hosted.world.run().exits(0).says("2 of 2 features pass");
    assert_eq!(hosted.server.count(Outcome::Refused), 7);
    let result =
        "passed, in the same session; no request before `retry-after`, also after `kill -9`";
    Row::of(&hosted, "rate limits", &["parser", "table"], result)
}

/// The window is full after the first of three edits of a file, and after the second.
fn full_window_in_an_edit() -> Row {
    let overflows = AtomicUsize::new(0);
    let script = move |request: &Request| {
        if let Some(summary) = summary(request) {
            return summary;
        }
        let last = match request.parts().last() {
            Some(Part::Result(result)) => result.clone(),
            _ => String::new(),
        };
        let edited = last.contains("Replaced");
        if edited && overflows.fetch_add(1, Ordering::SeqCst) < 2 {
            return Fault::Overflow(Overflow::PromptTooLong).into();
        }
        let write = json!({ "path": "parser.txt", "content": "a todo\nb todo\nc todo\n" });
        let todo = ["a", "b", "c"].into_iter().find(|part| last.contains(&format!("{part} todo")));
        match (last.as_str(), todo) {
            (_, Some(part)) => {
                let (old, new) = (format!("{part} todo"), format!("{part} finished"));
                Answer::call("edit", &json!({ "path": "parser.txt", "old": old, "new": new }))
                    .into()
            }
            (text, _) if text.contains("c finished") => finish(),
            (text, _) if text.contains("does not exist") => Answer::call("write", &write).into(),
            _ => Answer::call("read", &json!({ "path": "parser.txt" })).into(),
        }
    };
    let settings = "[agent.context]\ncompactions = 1\n";
    let hosted = Hosted::new(&PLANS[..1], settings, Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    let content = hosted.world.project.git(&["show", "main:parser.txt"]);
    assert_eq!(content, "a finished\nb finished\nc finished");
    let history = hosted.world.call(&format!("history {}/parser/1", hosted.id()));
    assert_eq!(history.exits(0).stdout.matches("handoff_prepared").count(), 1);
    let result = "passed; one summary, one handoff, every edit once";
    Row::of(&hosted, "full window in mid-edit", &["parser"], result)
}

/// A command ignores SIGTERM and hangs until its timeout; a second one hangs when Longhaul is
/// killed.
fn hangs() -> Row {
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("hangs");
    let touched = mark.clone();
    let script = move |request: &Request| {
        let stubborn = "trap '' TERM; (setsid sleep 100000 &); sleep 100000";
        let endless = format!("touch {}; sleep 100000", touched.display());
        let work = json!({ "command": "echo finished > parser.txt" });
        match super::results(request) {
            0 => Answer::call("shell", &json!({ "command": stubborn, "timeout": 1 })).into(),
            1 => Answer::call("shell", &json!({ "command": endless })).into(),
            2 => Answer::call("shell", &work).into(),
            _ => finish(),
        }
    };
    let hosted = Hosted::new(&PLANS[..1], "", Options::default(), script);
    let mut run = hosted.world.begin();
    until("the second command hangs", || mark.exists());
    assert!(run.kill());
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.longhaul.left_over(), Vec::<String>::new());
    let history =
        hosted.world.call(&format!("history {}/parser/1/1", hosted.id())).exits(0).stdout.clone();
    assert_eq!(history.matches("scripted answered").count(), 4, "{history}");
    Row::of(&hosted, "hanging tool, killed", &["parser"], "passed; no process is left")
}
