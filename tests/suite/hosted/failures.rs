//! Errors of a provider: what waits, what is repaired, and what needs a person.

use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_model_server::{Answer, Fault, Options, Outcome, Overflow, Reply, Request};

use super::{Hosted, PLANS, works};

/// A model that fails in this way at these requests, counted from one.
pub(super) fn failing(
    at: &'static [usize],
    fault: impl Fn() -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        if at.contains(&number) { fault() } else { works(request) }
    }
}

#[track_caller]
fn passes(settings: &str, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Hosted {
    let hosted = Hosted::new(&PLANS[..1], settings, Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.server.repeated(), Vec::<String>::new());
    let history = hosted.world.call(&format!("history {}/parser/1", hosted.id()));
    assert_eq!(
        history.exits(0).stdout.matches("session 1 (start) begins").count(),
        1,
        "one session"
    );
    hosted.world.call("replay --all").exits(0).says("0 diverged");
    hosted
}

#[test]
fn what_passes_by_itself_costs_no_session() {
    passes("", failing(&[2], || Fault::RateLimited(Some(1)).into()));
    passes("", failing(&[2], || Fault::Overloaded.into()));
    passes("", failing(&[1], || Fault::Internal.into()));
    passes("", failing(&[3], || Reply::Close));
    passes("", failing(&[3], || Answer::text("half of an answer").cut_after(3).into()));
}

#[test]
fn a_refused_conversation_is_summarised() {
    let overflow = || Fault::Overflow(Overflow::PromptTooLong).into();
    let hosted = passes("", failing(&[3], overflow));
    let history = hosted.world.json(&format!("history {}/parser/1/1", hosted.id()));
    assert!(history.to_string().contains("pre_overflow"));
}

#[test]
fn a_refused_key_needs_a_person_and_costs_nothing() {
    let hosted = Hosted::new(
        &PLANS[..1],
        "",
        Options::default(),
        failing(&[1, 2, 3, 4, 5, 6, 7, 8, 9], || Fault::Unauthorized.into()),
    );
    let mut run = hosted.world.begin();
    longhaul_tests::wait::until("the project waits for a person", || {
        hosted.world.call("why parser").stdout.contains("refuses the key")
    });
    run.terminate();
    run.wait_for(longhaul_tests::wait::PATIENCE);
    assert_eq!(hosted.server.count(Outcome::Answered), 0);
}

#[test]
fn chat_completions_work_in_pieces_of_a_byte() {
    let options = Options { piece: Some(1), ..Options::default() };
    let hosted = Hosted::new(&PLANS, "protocol = \"openai\"\n", options, works);
    hosted.world.run().exits(0).says("2 of 2 features pass");
    assert_eq!(hosted.server.count(Outcome::Answered), 8);
}

#[test]
fn a_missing_model_or_key_is_found_before_the_first_call() {
    let hosted = Hosted::new(&PLANS[..1], "", Options::default(), works);
    let set = |agent: &str| {
        let text = format!("[agent]\ndriver = \"api\"\nsandbox = \"off\"\n{agent}");
        hosted.world.project.write("longhaul.toml", &text);
        hosted.world.project.commit("Other settings");
    };
    set("");
    hosted.world.run().exits(2).says("set `model` under [agent]");
    set("model = \"m\"\n[agent.api]\nkey_env = \"NO_SUCH_KEY\"\n");
    hosted.world.run().exits(2).says("NO_SUCH_KEY with the key of the model is not set");
    hosted.world.call("doctor .").exits(1).says("NO_SUCH_KEY");
    assert_eq!(hosted.server.records().len(), 0);
}
