//! Classes of errors, before and within an answer.

use std::time::Duration;

use chrono::Utc;
use longhaul_engine::{Failure, FailureKind, Handler as _};
use longhaul_model_server::{Answer, Fault, Hold, Options, Outcome, Reply};
use longhaul_workflows::contracts::CallModel;
use longhaul_workflows::settings::{EnvSource, Protocol, Seconds};

use super::support::{Observer, PROTOCOLS, World};

/// The class and the code of a failure, in a word.
fn class(failure: &Failure) -> String {
    let kind = match failure.kind {
        FailureKind::Retryable => "retryable",
        FailureKind::Terminal => "terminal",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Machine => "machine",
        FailureKind::RateLimited { .. } => "limited",
    };
    failure.code.as_ref().map_or(kind.to_owned(), |code| format!("{kind} {code}"))
}

/// The class of the failure to which a reply leads.
async fn class_of(protocol: Protocol, reply: impl Into<Reply>) -> String {
    let world = World::replying(reply);
    let outcome = world.perform(world.call(protocol), 1).await;
    assert!(world.server().count(Outcome::Answered) == 0);
    outcome.map_or_else(|failure| class(&failure), |answer| format!("{answer:?}"))
}

#[tokio::test]
async fn errors_are_classified_before_and_within_a_stream() {
    let cases = [
        (Fault::Unauthorized, "terminal auth"),
        (Fault::Forbidden, "terminal auth"),
        (Fault::Billing, "terminal billing"),
        (Fault::CreditTooLow, "terminal billing"),
        (Fault::NotFound, "terminal"),
        (Fault::BadRequest, "terminal"),
        (Fault::RateLimited(Some(7)), "limited"),
        (Fault::RateLimited(None), "limited"),
        (Fault::Internal, "retryable"),
        (Fault::Overloaded, "retryable"),
    ];
    for (fault, expected) in cases {
        for protocol in PROTOCOLS {
            assert_eq!(class_of(protocol, fault.clone()).await, expected, "{fault:?}");
            let late = Answer::text("Some words before it").fault_after(2, fault.clone());
            assert_eq!(class_of(protocol, late).await, expected, "{fault:?} in the stream");
        }
    }
}

#[tokio::test]
async fn other_responses_are_classified_by_status() {
    let other = |status, headers: &[(&'static str, &str)], body: &str| Fault::Other {
        status,
        headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        body: body.to_owned(),
    };
    let cases = [
        (other(500, &[], "<html>bad gateway</html>"), "retryable"),
        (other(502, &[], ""), "retryable"),
        (other(408, &[], "{}"), "retryable"),
        (other(418, &[], "{\"error\":\"a teapot\"}"), "terminal"),
        (other(418, &[("x-should-retry", "true")], "{}"), "retryable"),
        (other(500, &[("x-should-retry", "false")], "{}"), "terminal"),
        (other(307, &[("location", "http://127.0.0.1:9/v1/messages")], ""), "terminal"),
        (other(402, &[], "{\"error\":{\"code\":402}}"), "terminal billing"),
        (other(401, &[], "{\"error\":{\"code\":null,\"message\":\"no\"}}"), "terminal auth"),
        (other(429, &[], "not JSON"), "limited"),
    ];
    for (fault, expected) in cases {
        for protocol in PROTOCOLS {
            assert_eq!(class_of(protocol, fault.clone()).await, expected, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_rate_limit_is_known() {
    for (after, seconds) in [(Some(90), 90), (None, 30)] {
        let world = World::replying(Fault::RateLimited(after));
        let before = Utc::now();
        let failure = world.perform(world.call(Protocol::Openai), 1).await.unwrap_err();
        let FailureKind::RateLimited { until } = failure.kind else { panic!("{failure:?}") };
        let wait = Duration::from_secs(seconds);
        assert!((before + wait..=Utc::now() + wait).contains(&until), "{until}");
        assert!(failure.message.contains("429 rate_limit_error: too many requests"), "{failure}");
    }
}

#[tokio::test]
async fn broken_and_damaged_streams_are_sent_again() {
    let words = || Answer::text("Some words of an answer");
    let replies = [
        Reply::Close,
        Reply::Garbage,
        words().cut_after(0).into(),
        words().cut_after(2).into(),
        words().garbage_after(4).into(),
    ];
    for reply in replies {
        for protocol in PROTOCOLS {
            assert_eq!(class_of(protocol, reply.clone()).await, "retryable", "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_loses_only_its_end_is_complete() {
    for protocol in PROTOCOLS {
        // The text takes two events; the reason of the end is the last that matters.
        let events = if protocol == Protocol::Anthropic { 8 } else { 4 };
        let world = World::replying(Answer::text("Some words for you").cut_after(events));
        let answer = world.perform(world.call(protocol), 1).await.unwrap();
        assert_eq!(answer.blocks.len(), 1, "{answer:?}");
        let early = Answer::text("Some words for you").cut_after(events - 1);
        assert_eq!(class_of(protocol, early).await, "retryable");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_tried_again() {
    let world = World::replying(Answer::text("Done."));
    let mut call = world.call(Protocol::Anthropic);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    call.api.url = Some(format!("http://user:password@127.0.0.1:{port}/v1/"));
    let failure = world.perform(call, 1).await.unwrap_err();
    assert_eq!(class(&failure), "retryable");
    assert!(failure.message.contains(&format!("127.0.0.1:{port} is not reached")), "{failure}");
    assert!(!failure.message.contains("password"), "{failure}");
}

#[tokio::test]
async fn a_silent_server_ends_with_the_timeout() {
    let hold = Hold::new();
    let world = World::replying(Answer::text("Some words").hold_after(3, &hold));
    let mut call = world.call(Protocol::Openai);
    call.api.timeout = Seconds(1);
    let failure = world.perform(call, 1).await.unwrap_err();
    assert_eq!(class(&failure), "retryable");
    assert!(failure.message.contains("did not answer within 1 seconds"), "{failure}");
    world.wait_for(Outcome::Broken, 1).await;
}

#[tokio::test]
async fn a_slow_answer_arrives() {
    let slow = Answer::text("Some words").paced(Duration::from_millis(20));
    let world = World::replying(slow);
    assert!(world.perform(world.call(Protocol::Anthropic), 1).await.is_ok());
}

#[tokio::test]
async fn a_cancelled_call_closes_its_connection() {
    let hold = Hold::new();
    for reply in [
        Answer::text("Some words").hold_after(3, &hold).into(),
        Reply::Held(hold.clone(), Box::new(Answer::text("Done.").into())),
    ] {
        let world = World::replying(reply);
        let observer = Observer::new();
        let (handler, attempt) = (world.handler(), observer.attempt(1));
        let call = tokio::spawn({
            let call = world.call(Protocol::Anthropic);
            async move { handler.perform(call, &attempt).await }
        });
        world.wait_for(Outcome::Open, 1).await;
        observer.cancel();
        assert_eq!(class(&call.await.unwrap().unwrap_err()), "cancelled");
        world.wait_for(Outcome::Broken, 1).await;
    }
}

#[tokio::test]
async fn a_missing_key_needs_a_person() {
    let world = World::replying(Answer::text("Done."));
    let missing = Some("LONGHAUL_TEST_NO_SUCH_KEY".to_owned());
    let cases = [
        (missing.clone(), None, "LONGHAUL_TEST_NO_SUCH_KEY"),
        (missing, Some(EnvSource::SETTINGS), "LONGHAUL_TEST_NO_SUCH_KEY"),
        (None, Some(EnvSource::File("missing".into())), "OPENAI_API_KEY"),
    ];
    for (key_env, key, name) in cases {
        let mut call = world.call(Protocol::Openai);
        call.api.key_env = key_env;
        call.key = key;
        let failure = world.perform(call, 1).await.unwrap_err();
        assert_eq!(class(&failure), "terminal auth");
        assert!(failure.message.contains(name), "{failure}");
    }
    assert_eq!(world.server().records(), []);
}

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let options = Options { key: Some("another".into()), ..Options::default() };
    let world = World::new(options, |_| Answer::text("Done.").into());
    let failure = world.perform(world.call(Protocol::Anthropic), 1).await.unwrap_err();
    assert_eq!(failure.code.as_deref(), Some(CallModel::AUTH));
    assert_eq!(failure.message, "the model service refuses the key (401 authentication_error)");
}

#[tokio::test]
async fn a_wrong_url_is_an_error_of_the_settings() {
    let world = World::replying(Answer::text("Done."));
    for url in ["", "localhost:8000", "file:///etc/passwd", "http://"] {
        let mut call = world.call(Protocol::Anthropic);
        call.api.url = Some(url.into());
        let failure = world.perform(call, 1).await.unwrap_err();
        assert_eq!(class(&failure), "terminal", "{url}: {failure}");
        assert!(failure.message.contains("[agent.api] url"), "{failure}");
    }
}
