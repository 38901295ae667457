//! No part of a key reaches a failure, a live event or a file.

use std::fs;
use std::path::Path;

use longhaul_engine::Handler as _;
use longhaul_model_server::{Answer, Fault, Overflow, Reply};
use longhaul_workflows::contracts::ModelCall;
use longhaul_workflows::settings::Protocol;

use super::support::{KEY, Observer, PROTOCOLS, World};

/// Whether a text has a part of the key.
fn leaks(text: &[u8]) -> bool {
    let parts: Vec<&[u8]> = KEY.as_bytes().windows(6).collect();
    text.windows(6).any(|window| parts.contains(&window))
}

fn leaking_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            leaking_files(&path, found);
        } else if leaks(&fs::read(&path).unwrap()) {
            found.push(path.display().to_string());
        }
    }
}

/// Performs a call, and checks its failure and all files.
async fn check(world: &World, call: ModelCall, subject: &str) {
    let observer = Observer::new();
    let outcome = world.handler().perform(call, &observer.attempt(1)).await;
    if let Err(failure) = &outcome {
        assert!(!leaks(format!("{failure:?}").as_bytes()), "{subject}: {failure:?}");
    }
    assert!(!leaks(observer.text().as_bytes()), "{subject}");
    let mut found = Vec::new();
    leaking_files(&world.data(), &mut found);
    assert_eq!(found, Vec::<String>::new(), "{subject}");
}

#[tokio::test]
async fn a_key_stays_where_it_is() {
    let echo = |status, body: String| Fault::Other { status, headers: Vec::new(), body };
    let faults = [
        Fault::Unauthorized,
        Fault::Billing,
        Fault::CreditTooLow,
        Fault::Forbidden,
        Fault::NotFound,
        Fault::BadRequest,
        Fault::RateLimited(None),
        Fault::Internal,
        Fault::Overloaded,
        Fault::Overflow(Overflow::PromptTooLong),
        echo(500, format!("the key {KEY} in plain text")),
        echo(400, format!("{{\"error\":{{\"type\":\"{KEY}\",\"message\":\"{}\"}}}}", &KEY[..12])),
        echo(400, format!("{{\"error\":{{\"echo\":[\"Bearer {KEY}\"]}}}}")),
    ];
    for fault in faults {
        for protocol in PROTOCOLS {
            let late = Answer::text("Some words").fault_after(2, fault.clone());
            for reply in [Reply::from(fault.clone()), late.into()] {
                let world = World::replying(reply);
                check(&world, world.call(protocol), &format!("{fault:?}")).await;
            }
        }
    }
    for reply in [Reply::Close, Reply::Garbage, Answer::text("Done.").into()] {
        let world = World::replying(reply.clone());
        check(&world, world.call(Protocol::Anthropic), &format!("{reply:?}")).await;
    }
}

#[tokio::test]
async fn a_key_in_the_wrong_place_is_not_shown_either() {
    let world = World::replying(Answer::text("Done."));
    let mut call = world.call(Protocol::Anthropic);
    call.api.url = Some(format!("http://127.0.0.1:9/{KEY}"));
    check(&world, call.clone(), "in the URL").await;
    call.api.url = Some(format!("nonsense {KEY}"));
    check(&world, call, "in a wrong URL").await;
    // The server repeats it as the name of the model.
    let mut call = world.call(Protocol::Anthropic);
    call.model = KEY.into();
    let answer = world.perform(call, 2).await.unwrap();
    assert!(!leaks(answer.model.as_bytes()), "{}", answer.model);
}

#[test]
fn a_part_of_a_key_would_be_found() {
    assert!(leaks(format!("a{}b", &KEY[3..9]).as_bytes()) && !leaks(b"sk-Zq"));
}
