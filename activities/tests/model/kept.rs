//! What outlives a crash: conversations by their head, and answers that were paid for.

use std::path::PathBuf;

use longhaul_engine::{FailureKind, Handler as _, Probe};
use longhaul_model_server::{Answer, Hold, Options, Outcome};
use longhaul_workflows::contracts::{CallModel, Message, ModelAnswer, ModelCall};
use longhaul_workflows::settings::Protocol;

use super::support::{World, attempt, next, start, user};

/// A world whose server counts the turns of a conversation.
fn world() -> World {
    World::new(Options::default(), |request| {
        Answer::text(format!("{} turns", request.turns.len())).into()
    })
}

fn said(answer: &ModelAnswer) -> String {
    format!("{:?}", answer.blocks)
}

fn file(world: &World, name: &str) -> PathBuf {
    world.data().join("sessions/shop~login/model").join(name)
}

async fn fails_with(world: &World, call: ModelCall, code: Option<&str>) {
    let failure = world.perform(call, 99).await.unwrap_err();
    assert_eq!((&failure.kind, failure.code.as_deref()), (&FailureKind::Terminal, code));
}

#[tokio::test]
async fn a_head_stands_for_the_conversation_before_it() {
    let world = world();
    let mut call = world.call(Protocol::Anthropic);
    let mut whole = call.new.clone();
    for slot in 1..6 {
        let answer = world.perform(call.clone(), slot).await.unwrap();
        assert!(said(&answer).contains(&format!("{} turns", 2 * slot - 1)), "{answer:?}");
        whole.extend([Message::Model { blocks: answer.blocks.clone() }, user("More.")]);
        call = next(&call, &answer, user("More."));
    }
    // The whole conversation has the same head as its parts.
    let parts = world.perform(call.clone(), 6).await.unwrap();
    let again = ModelCall { head: None, new: whole, ..call };
    let again = world.perform(again, 7).await.unwrap();
    assert_eq!(parts.head, again.head);
}

#[tokio::test]
async fn a_conversation_in_memory_is_not_read_again() {
    let world = world();
    let handler = world.handler();
    let mut call = world.call(Protocol::Anthropic);
    for slot in 1..4 {
        let answer = handler.perform(call.clone(), &attempt(slot)).await.unwrap();
        assert!(said(&answer).contains(&format!("{} turns", 2 * slot - 1)), "{answer:?}");
        std::fs::remove_file(file(&world, &answer.head)).unwrap();
        call = next(&call, &answer, user("More."));
    }
    // Another process has only the files.
    fails_with(&world, call, Some(CallModel::UNKNOWN_HEAD)).await;
}

#[tokio::test]
async fn an_unknown_or_damaged_chain_is_sent_again() {
    let world = world();
    let call = world.call(Protocol::Openai);
    let first = world.perform(call.clone(), 1).await.unwrap();
    let second = next(&call, &first, user("More."));
    let unknown = Some(CallModel::UNKNOWN_HEAD);
    for head in ["", "../../../root/key", &"0".repeat(64), &first.head[1..]] {
        fails_with(&world, ModelCall { head: Some(head.into()), ..second.clone() }, unknown).await;
    }

    let node = file(&world, &first.head);
    let content = std::fs::read_to_string(&node).unwrap();
    std::fs::write(&node, content.replace("1 turns", "9 turns")).unwrap();
    fails_with(&world, second.clone(), unknown).await;
    std::fs::remove_file(&node).unwrap();
    fails_with(&world, second.clone(), unknown).await;
    assert_eq!(world.server().records().len(), 1, "no request without the conversation");

    let mut whole = call.new.clone();
    whole.extend([Message::Model { blocks: first.blocks.clone() }, user("More.")]);
    let sent = ModelCall { head: None, new: whole, ..call.clone() };
    let answer = world.perform(sent, 2).await.unwrap();
    assert!(said(&answer).contains("3 turns"), "{answer:?}");
    world.perform(next(&call, &answer, user("And now?")), 3).await.unwrap();
    world.perform(second, 4).await.expect("the first part is known again");
}

#[tokio::test]
async fn a_conversation_has_one_start() {
    let world = world();
    let call = world.call(Protocol::Anthropic);
    let first = world.perform(call.clone(), 1).await.unwrap();
    fails_with(&world, ModelCall { new: vec![user("Begin.")], ..call.clone() }, None).await;
    fails_with(&world, ModelCall { new: Vec::new(), ..call.clone() }, None).await;
    fails_with(&world, next(&call, &first, start()), None).await;
}

#[tokio::test]
async fn an_answer_is_stored_before_it_is_returned() {
    let world = world();
    let call = world.call(Protocol::Anthropic);
    assert_eq!(world.probe(call.clone(), 1).await, Probe::NotHappened);
    let answer = world.perform(call.clone(), 1).await.unwrap();
    assert_eq!(world.probe(call.clone(), 1).await, Probe::Happened(answer.clone()));
    assert_eq!(world.perform(call.clone(), 1).await.unwrap(), answer);
    assert_eq!(world.server().records().len(), 1, "nothing answered is requested again");

    // Other calls, and this call of a rewound run with another input.
    assert_eq!(world.probe(call.clone(), 2).await, Probe::NotHappened);
    let other = ModelCall { model: "scripted-2".into(), ..call };
    assert_eq!(world.probe(other.clone(), 1).await, Probe::NotHappened);
    assert_eq!(world.perform(other, 1).await.unwrap().model, "scripted-2");
}

#[tokio::test]
async fn a_damaged_answer_is_requested_again() {
    let world = world();
    let call = world.call(Protocol::Anthropic);
    world.perform(call.clone(), 1).await.unwrap();
    std::fs::write(file(&world, "answer-1.0.json"), "{\"call\":").unwrap();
    assert_eq!(world.probe(call.clone(), 1).await, Probe::NotHappened);
    world.perform(call, 1).await.unwrap();
    assert_eq!(world.server().records().len(), 2);
    assert_eq!(world.server().repeated().len(), 1, "the server's own count shows it");
}

#[tokio::test]
async fn an_interrupted_request_has_not_landed() {
    let hold = Hold::new();
    let held = hold.clone();
    let world = World::new(Options::default(), move |request| {
        let answer = Answer::text("Some words of an answer");
        if request.repeats == 0 { answer.hold_after(4, &held) } else { answer }.into()
    });
    let call = world.call(Protocol::Anthropic);
    let (handler, first) = (world.handler(), call.clone());
    let lost = tokio::spawn(async move { handler.perform(first, &attempt(1)).await });
    world.wait_for(Outcome::Open, 1).await;
    lost.abort();
    assert!(lost.await.unwrap_err().is_cancelled());
    world.wait_for(Outcome::Broken, 1).await;
    assert_eq!(world.probe(call.clone(), 1).await, Probe::NotHappened);
    world.perform(call, 1).await.unwrap();
    assert_eq!(world.server().count(Outcome::Answered), 1);
    assert_eq!(world.server().repeated(), Vec::<String>::new());
    hold.release();
}

#[tokio::test]
async fn files_of_calls_are_where_a_run_is_pruned() {
    let world = world();
    let answer = world.perform(world.call(Protocol::Anthropic), 3).await.unwrap();
    let mut names: Vec<String> = std::fs::read_dir(file(&world, ""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 4, "start, user, model and the answer: {names:?}");
    assert!(names.contains(&answer.head) && names.contains(&"answer-3.0.json".to_owned()));
    let mut others = std::fs::read_dir(world.data()).unwrap();
    assert_eq!(others.next().unwrap().unwrap().file_name(), "sessions");
    assert!(others.next().is_none(), "nothing else is left");
}
