//! Answers of both protocols, and the requests that lead to them.

use std::sync::{Arc, Mutex};

use longhaul_engine::Handler as _;
use longhaul_model_server::{Answer, Fault, Options, Overflow, Part, Request, Side, Stop};
use longhaul_workflows::contracts::{Block, Message, ModelStop, ToolCall, Usage};
use longhaul_workflows::settings::Protocol;
use serde_json::{Value, json};

use super::support::{KEY, Observer, PROTOCOLS, World, next, results, user};

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

/// The inputs of the tool calls of an answer.
fn inputs(blocks: &[Block]) -> Vec<&str> {
    let input = |block| match block {
        &Block::ToolUse(ToolCall { ref input, .. }) => Some(input.as_str()),
        _ => None,
    };
    blocks.iter().filter_map(input).collect()
}

/// The requests that a server received.
type Seen = Arc<Mutex<Vec<Request>>>;

/// A world that keeps its requests.
fn watched(
    options: Options,
    script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (World, Seen) {
    let seen = Seen::default();
    let keep = Arc::clone(&seen);
    let world = World::new(options, move |request| {
        keep.lock().unwrap().push(request.clone());
        script(request).into()
    });
    (world, seen)
}

#[tokio::test]
async fn a_conversation_with_a_tool_works_in_both_protocols_and_any_pieces() {
    for protocol in PROTOCOLS {
        for piece in [None, Some(1), Some(7)] {
            converse(protocol, piece).await;
        }
    }
}

async fn converse(protocol: Protocol, piece: Option<usize>) {
    let options = Options { piece, key: Some(KEY.into()), ..Options::default() };
    let (world, seen) = watched(options, |request| match request.results() {
        0 => Answer::text("Ich prüfe — ✓ first.")
            .and_call("shell", "{\"command\": \"make\"}")
            .and_call("shell", ""),
        _ => Answer::text("Done."),
    });
    let observer = Observer::new();
    let call = world.call(protocol);
    let first = world.handler().perform(call.clone(), &observer.attempt(1)).await.unwrap();
    assert_eq!(first.blocks[0], text("Ich prüfe — ✓ first."));
    assert_eq!(inputs(&first.blocks), ["{\"command\": \"make\"}", "{}"]);
    assert_eq!(first.stop, ModelStop::ToolUse);
    assert_eq!((first.model.as_str(), first.request_id.as_deref()), ("scripted-1", Some("req_1")));
    assert_eq!(observer.text(), "Ich prüfe — ✓ first.[shell][shell]");

    let call = next(&call, &first, results(&first, "all good"));
    let second = world.perform(call, 2).await.unwrap();
    assert_eq!(
        (second.blocks.as_slice(), &second.stop),
        (&[text("Done.")][..], &ModelStop::EndTurn)
    );

    let seen = seen.lock().unwrap();
    assert_eq!(
        (seen[0].system.as_str(), seen[0].tools.as_slice()),
        ("You write code.", &["shell".to_owned()][..])
    );
    let (last, before) = (seen[1].turns.last().unwrap(), &seen[1].turns[1]);
    assert_eq!((seen[1].last_result(), seen[1].results()), (Some("all good"), 2));
    assert_eq!((last.side, before.side), (Side::User, Side::Model));
    let calls = before.parts.iter().filter(|part| matches!(part, Part::Call { .. })).count();
    assert_eq!(calls, 2);
    // The second request begins with the first, which the provider has in its cache.
    assert_eq!(second.usage.cache_read, seen[0].tokens);
    assert_eq!(second.usage.total() - second.usage.output, seen[1].tokens);
    assert_eq!(world.server().repeated(), Vec::<String>::new());
}

#[tokio::test]
async fn reasoning_is_sent_back_as_it_came() {
    let (world, seen) = watched(Options::default(), |request| {
        Answer::default()
            .and_thinking("Let me see")
            .and_call("shell", &json!({ "command": request.number }).to_string())
    });
    let call = world.call(Protocol::Anthropic);
    let first = world.perform(call.clone(), 1).await.unwrap();
    let Block::Opaque { json } = &first.blocks[0] else { panic!("{:?}", first.blocks) };
    let thinking: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        thinking,
        json!({ "type": "thinking", "thinking": "Let me see", "signature": "c2lnbmVk" })
    );
    world.perform(next(&call, &first, results(&first, "ok")), 2).await.unwrap();
    assert_eq!(seen.lock().unwrap()[1].turns[1].parts[0], Part::Other(thinking));

    // Chat completions have no place for it; it is shown only.
    let observer = Observer::new();
    let call = world.call(Protocol::Openai);
    let answer = world.handler().perform(call, &observer.attempt(3)).await.unwrap();
    assert_eq!(answer.blocks.len(), 1);
    assert_eq!(observer.text(), "Let me see[shell]");
}

#[tokio::test]
async fn invalid_arguments_are_kept_and_do_not_spoil_the_next_request() {
    for protocol in PROTOCOLS {
        let (world, seen) = watched(Options::default(), |request| match request.results() {
            0 => Answer::default().and_call("shell", "{\"command\": make"),
            _ => Answer::text("Done."),
        });
        let call = world.call(protocol);
        let first = world.perform(call.clone(), 1).await.unwrap();
        assert_eq!(inputs(&first.blocks), ["{\"command\": make"]);
        world.perform(next(&call, &first, results(&first, "invalid")), 2).await.unwrap();
        let sent = seen.lock().unwrap()[1].turns[1].parts[0].clone();
        let Part::Call { input, .. } = sent else { panic!("{sent:?}") };
        let input: Value = serde_json::from_str(&input).unwrap();
        assert_eq!(input, json!({ "INVALID_JSON": "{\"command\": make" }));
    }
}

#[tokio::test]
async fn the_reasons_of_an_end_are_distinguished() {
    let whole = "{\"command\":\"make\"}";
    let cut = Answer::text("I").and_call("shell", whole).and_call("shell", "{\"command\":\"ma");
    let cases = [
        (Answer::text("I").stop(Stop::EndTurn), ModelStop::EndTurn, ModelStop::EndTurn, 1),
        (cut.stop(Stop::MaxTokens), ModelStop::MaxTokens, ModelStop::MaxTokens, 2),
        (
            Answer::text("I").and_call("shell", "").stop(Stop::MaxTokens),
            ModelStop::MaxTokens,
            ModelStop::MaxTokens,
            1,
        ),
        (Answer::text("No.").stop(Stop::Refusal), ModelStop::Refusal, ModelStop::Refusal, 1),
        (
            Answer::text("I").stop(Stop::Pause),
            ModelStop::Other("pause_turn".into()),
            ModelStop::Other("a_later_reason".into()),
            1,
        ),
        (
            Answer::default().and_call("shell", whole).stop(Stop::EndTurn),
            ModelStop::EndTurn,
            ModelStop::ToolUse,
            1,
        ),
    ];
    for (reply, anthropic, openai, blocks) in cases {
        let world = World::replying(reply);
        for (slot, (protocol, expected)) in
            (1..).zip([(Protocol::Anthropic, anthropic), (Protocol::Openai, openai)])
        {
            let answer = world.perform(world.call(protocol), slot).await.unwrap();
            assert_eq!((&answer.stop, answer.blocks.len()), (&expected, blocks), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_full_window_is_an_answer_without_content() {
    for overflow in Overflow::ALL {
        if overflow == Overflow::Shortened {
            continue;
        }
        let world = World::replying(Fault::Overflow(overflow));
        for (slot, protocol) in (1..).zip(PROTOCOLS) {
            let answer = world.perform(world.call(protocol), slot).await.unwrap();
            assert_eq!(
                (&answer.stop, answer.blocks.len()),
                (&ModelStop::ContextFull, 0),
                "{overflow:?}"
            );
            assert_eq!(answer.usage, Usage::default());
        }
    }
    let late = Answer::text("Some words").fault_after(3, Fault::Overflow(Overflow::OpenAi));
    let whole = Answer::text("Cut by the window").stop(Stop::WindowFull);
    for (reply, tokens) in [(late, 0), (whole, "Cut by the window".len() as u64 / 4)] {
        let world = World::replying(reply);
        let answer = world.perform(world.call(Protocol::Anthropic), 1).await.unwrap();
        assert_eq!((&answer.stop, answer.blocks.len()), (&ModelStop::ContextFull, 0));
        assert_eq!(answer.usage.output, tokens, "what was paid for is counted");
    }
}

#[tokio::test]
async fn a_window_fills_up_and_a_server_that_forgets_is_noticed() {
    for (protocol, overflow) in [
        (Protocol::Anthropic, None),
        (Protocol::Openai, None),
        (Protocol::Openai, Some(Overflow::Shortened)),
    ] {
        let options = Options { window: Some(2_000), overflow, ..Options::default() };
        let world = World::new(options, |_| Answer::text("word ".repeat(80)).into());
        let mut call = world.call(protocol);
        call.window = 2_000;
        let mut used = 0;
        let mut slot = 1;
        let last = loop {
            let answer = world.perform(call.clone(), slot).await.unwrap();
            if answer.stop == ModelStop::ContextFull {
                break answer;
            }
            assert!(answer.usage.total() > used && slot < 50, "{used} of {:?}", answer.usage);
            used = answer.usage.total();
            slot += 1;
            call = next(&call, &answer, user(&"more ".repeat(300)));
        };
        assert!((1_000..=2_100).contains(&used), "{used} tokens fit");
        assert!(last.blocks.is_empty() && slot > 2);
    }
}

#[tokio::test]
async fn the_answer_is_limited_to_what_the_window_leaves() {
    let (world, seen) = watched(Options::default(), |_| Answer::text("Done."));
    let mut call = world.call(Protocol::Anthropic);
    let limits = |call: &_, slot| {
        let call: longhaul_workflows::contracts::ModelCall = Clone::clone(call);
        let (world, seen) = (&world, &seen);
        async move {
            world.perform(call, slot).await.unwrap();
            seen.lock().unwrap().last().unwrap().body["max_tokens"].as_u64().unwrap()
        }
    };
    assert_eq!(limits(&call, 1).await, 8192);
    call.window = 8_000;
    call.new.push(user(&"x".repeat(12_000)));
    let left = limits(&call, 2).await;
    assert!((3_500..4_000).contains(&left), "{left}");
    call.new.push(user(&"x".repeat(20_000)));
    assert_eq!(limits(&call, 3).await, 256);
}

#[tokio::test]
async fn missing_usage_is_estimated() {
    for protocol in PROTOCOLS {
        let world = World::replying(Answer::text("z".repeat(400)).without_usage());
        let mut call = world.call(protocol);
        call.new.push(user(&"x".repeat(4_000)));
        let usage = world.perform(call, 1).await.unwrap().usage;
        assert!((1_000..1_100).contains(&usage.input) && usage.output == 100, "{usage:?}");
    }
}

#[tokio::test]
async fn an_empty_answer_leaves_a_conversation_that_can_go_on() {
    for protocol in PROTOCOLS {
        let (world, seen) = watched(Options::default(), |request| match request.number {
            1 => Answer::default(),
            _ => Answer::text("Done."),
        });
        let call = world.call(protocol);
        let first = world.perform(call.clone(), 1).await.unwrap();
        assert!(first.blocks.is_empty());
        world.perform(next(&call, &first, user("Go on.")), 2).await.unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen[1].turns.iter().all(|turn| turn.side == Side::User), "{:?}", seen[1].turns);
        assert!(seen[1].mentions("Begin.") && seen[1].mentions("Go on."));
    }
}

#[tokio::test]
async fn a_failed_tool_is_marked() {
    for protocol in PROTOCOLS {
        let (world, seen) = watched(Options::default(), |request| match request.results() {
            0 => Answer::call("shell", &json!({ "command": "false" })),
            _ => Answer::text("Done."),
        });
        let call = world.call(protocol);
        let first = world.perform(call.clone(), 1).await.unwrap();
        let Message::User { mut blocks } = results(&first, "exit code 1") else { unreachable!() };
        if let Block::ToolResult { is_error, .. } = &mut blocks[0] {
            *is_error = true;
        }
        world.perform(next(&call, &first, Message::User { blocks }), 2).await.unwrap();
        let body =
            seen.lock().unwrap()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
        let is_marked = match protocol {
            Protocol::Anthropic => body["content"][0]["is_error"] == true,
            Protocol::Openai => body["content"] == "The tool failed:\nexit code 1",
        };
        assert!(is_marked, "{body}");
    }
}

#[tokio::test]
async fn a_local_server_needs_no_key() {
    let (world, seen) = watched(Options::default(), |_| Answer::text("Done."));
    let mut call = world.call(Protocol::Anthropic);
    call.key = None;
    world.perform(call.clone(), 1).await.unwrap();
    // An inherited variable with a name of its own.
    call.api.key_env = Some("PATH".into());
    world.perform(call.clone(), 2).await.unwrap();
    let keys: Vec<_> = seen.lock().unwrap().iter().map(|request| request.key.clone()).collect();
    let own = std::env::var("PATH").ok();
    assert_eq!(keys, [std::env::var("ANTHROPIC_API_KEY").ok(), own]);
}
