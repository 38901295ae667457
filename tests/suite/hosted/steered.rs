//! Steering sessions of the built-in agent: notes, pauses, cancellations, forks.

use std::sync::{Arc, Mutex};

use longhaul_model_server::{Answer, Hold, Options, Part, Reply, Request};
use longhaul_tests::wait::{PATIENCE, until};
use serde_json::json;

use super::{Hosted, PLANS, feature, works};

/// A model whose first answer is held, and the prompts that it receives.
struct Held {
    hosted: Hosted,
    hold: Hold,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Held {
    fn new() -> Self {
        let hold = Hold::new();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (holding, hearing) = (hold.clone(), Arc::clone(&heard));
        let script = move |request: &Request| {
            let texts = request.parts().filter_map(|part| match part {
                Part::Text(text) => Some(text.clone()),
                _ => None,
            });
            *hearing.lock().unwrap() = texts.collect();
            if request.number == 1 && !request.turns.is_empty() {
                return Reply::Held(holding.clone(), Box::new(works(request)));
            }
            works(request)
        };
        Self { hosted: Hosted::new(&PLANS[..1], "", Options::default(), script), hold, heard }
    }

    fn until_asked(&self) {
        assert!(self.hosted.server.wait_for(PATIENCE, |records| !records.is_empty()));
    }

    fn status(&self, run: &str) -> String {
        let line = self.hosted.world.json(&format!("describe {run}"));
        line["status"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_note_reaches_the_session_that_is_under_way() {
    let held = Held::new();
    let mut run = held.hosted.world.begin();
    held.until_asked();
    held.hosted.world.call("steer parser Hurry").exits(0);
    let session = format!("{}/parser/1/1", held.hosted.id());
    until("the session has the note", || {
        let history = held.hosted.world.call(&format!("history {session} -o json")).json();
        let mail = held.hosted.world.json(&format!("describe {session}"));
        history.to_string().contains("Hurry") || mail.to_string().contains("note")
    });
    held.hold.release();
    run.exits(0);
    let heard = held.heard.lock().unwrap();
    assert!(heard.iter().any(|text| text == "A person says: Hurry"), "{heard:?}");
}

#[test]
fn a_cancelled_feature_ends_its_session() {
    let held = Held::new();
    let mut run = held.hosted.world.begin();
    held.until_asked();
    held.hosted.world.call("cancel parser").exits(0);
    run.exits(3);
    held.hold.release();
    let feature = format!("{}/parser/1", held.hosted.id());
    assert_eq!(held.status(&feature), "cancelled");
    assert_eq!(held.status(&format!("{feature}/1")), "cancelled");
    held.hosted.world.call("resume parser").exits(0);
    held.hosted.world.run().exits(0).says("1 of 1 features pass");
}

#[test]
fn a_terminated_feature_ends_its_session() {
    let held = Held::new();
    let mut run = held.hosted.world.begin();
    held.until_asked();
    held.hosted.world.call("terminate parser").exits(0);
    run.exits(3);
    held.hold.release();
    let session = format!("{}/parser/1/1", held.hosted.id());
    assert_eq!(held.status(&session), "cancelled");
}

#[test]
fn a_paused_feature_pauses_its_session() {
    let held = Held::new();
    let mut run = held.hosted.world.begin();
    held.until_asked();
    held.hosted.world.call("pause parser").exits(0);
    let session = format!("{}/parser/1/1", held.hosted.id());
    held.hold.release();
    until("the session is paused", || held.status(&session) == "paused");
    assert_eq!(held.hosted.server.records().len(), 1, "a paused session asks no model");
    held.hosted.world.call("resume parser").exits(0);
    run.exits(0);
}

#[test]
fn a_fork_after_a_session_keeps_it_and_adds_one() {
    let script = |request: &Request| {
        let hint = request
            .parts()
            .any(|part| matches!(part, Part::Text(text) if text.contains("once more")));
        match (super::results(request), hint) {
            (0, _) => {
                let file = format!("{}.txt", feature(request));
                let content = if hint { "finished again\n" } else { "finished\n" };
                Answer::call("write", &json!({ "path": file, "content": content })).into()
            }
            _ => Answer::call("finish", &json!({ "summary": "Written." })).into(),
        }
    };
    let hosted = Hosted::new(&PLANS[..1], "", Options::default(), script);
    hosted.world.run().exits(0);
    hosted.world.call("fork parser --from session:1 --note once_more").exits(0);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
    hosted.world.call("check").exits(0).says("no damage found");
}

#[test]
fn a_question_waits_for_a_person_across_a_restart() {
    let script = |request: &Request| match super::results(request) {
        0 => Answer::call("ask", &json!({ "question": "Red or blue?" })).into(),
        1 => {
            let Some(Part::Result(answer)) = request.parts().last() else { return Reply::Close };
            let content = format!("{answer}\nfinished\n");
            Answer::call("write", &json!({ "path": "parser.txt", "content": content })).into()
        }
        _ => Answer::call("finish", &json!({ "summary": "Written." })).into(),
    };
    let hosted = Hosted::new(&PLANS[..1], "", Options::default(), script);
    let mut run = hosted.world.begin();
    assert!(hosted.server.wait_for(PATIENCE, |records| !records.is_empty()));
    let session = format!("{}/parser/1/1", hosted.id());
    until("the question is asked", || {
        let history = hosted.world.call(&format!("history {session} -o json"));
        history.stdout.contains("Red or blue?") && history.stdout.contains("MessageAwaited")
    });
    assert!(run.kill());
    hosted.world.call(&format!("signal {session} answer \"blue\"")).exits(0);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:parser.txt"]), "blue\nfinished");
}
