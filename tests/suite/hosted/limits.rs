//! Limits of tokens and money: what they stop, what they show, and how the work continues.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use longhaul_model_server::{Answer, Hold, Options, Outcome, Reply, Request};
use longhaul_tests::project::Plan;
use longhaul_tests::wait::PATIENCE;
use serde_json::json;

use super::{Hosted, PLANS, works};

/// The price of the scripted model, so that each answer costs the same.
const PRICES: &str = "[models.\"*\"]\ninput = 1000\noutput = 1000\n";

/// A project with prices.
fn priced(plans: &[Plan], limits: &str) -> Hosted {
    priced_with(plans, limits, works)
}

fn priced_with(
    plans: &[Plan],
    limits: &str,
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Hosted {
    let hosted = Hosted::new(plans, limits, Options::default(), script);
    let home = hosted.world.project.home();
    DirBuilder::new().mode(0o700).create(&home).unwrap();
    fs::write(home.join("prices.toml"), PRICES).unwrap();
    hosted
}

/// Replaces a text of the settings.
fn edit(hosted: &Hosted, from: &str, to: &str) {
    let project = &hosted.world.project;
    let text = project.read("longhaul.toml");
    assert!(text.contains(from), "{text}");
    project.write("longhaul.toml", &text.replace(from, to));
    project.commit("Other limits");
}

#[test]
fn a_feature_over_its_limit_of_money_continues_when_that_is_raised() {
    let hosted = priced(&PLANS[..1], "[limits]\ncost = 1\n");
    hosted.world.run().exits(1).says("the limit of 1.00 USD is reached; raise `[limits] cost`");
    assert_eq!(hosted.server.count(Outcome::Answered), 1, "one answer is above the limit");
    let usage = hosted.world.json("usage");
    assert!(usage["total"]["cost_usd"].as_f64().unwrap() > 1.0, "{usage}");
    hosted.world.call("why parser").says("raise `[limits] cost` in longhaul.toml");

    edit(&hosted, "cost = 1\n", "cost = 1000000\n");
    hosted.world.run().exits(0).says("1 of 1 features pass");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_project_over_its_budget_pays_for_no_session_until_that_is_raised() {
    let hosted = priced(&PLANS, "[budget]\ncost = 1\n");
    let reason = "the budget of the project, 1.00 USD, is spent; raise `[budget] cost`";
    hosted.world.run().exits(3).says(reason);
    assert_eq!(hosted.server.count(Outcome::Answered), 1, "one answer is above the budget");
    let root = hosted.world.project.root();
    hosted.world.call(&format!("status {}", root.display())).says(reason);
    hosted.world.call(&format!("why {}", hosted.id())).says(reason);
    hosted.world.run().exits(3);
    assert_eq!(hosted.server.count(Outcome::Answered), 1, "nothing is paid");

    edit(&hosted, "cost = 1\n", "cost = 1000000\n");
    hosted.world.run().exits(0).says("2 of 2 features pass");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_limit_of_tokens_ends_a_session_between_two_answers() {
    let hosted = Hosted::new(&PLANS[..1], "[limits]\nturns = 2\n", Options::default(), works);
    hosted.world.run().exits(1).says("the limit of 2 turns is reached");
    assert_eq!(hosted.server.count(Outcome::Answered), 2);
}

#[test]
fn sessions_that_only_fill_their_windows_end() {
    let script = |request: &Request| {
        if request.last_text().is_some_and(|text| text.starts_with("The context window")) {
            return Answer::call("summary", &json!({ "objective": "Look again." })).into();
        }
        let command = json!({ "command": "head -c 8000 /dev/zero | tr '\\0' x" });
        Answer::call("shell", &command).into()
    };
    let settings = "[agent.context]\nwindow = 8000\ncompactions = 0\n";
    let options = Options { window: Some(8000), ..Options::default() };
    let hosted = Hosted::new(&PLANS[..1], settings, options, script);
    hosted.world.run().exits(1).says("sessions in a row changed nothing");
    let sessions = hosted.world.json("session list");
    assert!(sessions["sessions"].as_array().unwrap().len() <= 5, "{sessions}");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

/// A model of one's own often has a smaller window than those of the large providers.
#[test]
fn the_window_is_the_one_of_the_settings_or_of_the_provider() {
    for (stated, settings, expected) in [
        (50_000, "", 50_000),
        (1_000_000, "", 200_000),
        (50_000, "[agent.context]\nwindow = 60000\n", 60_000),
    ] {
        let options = Options { window: Some(stated), ..Options::default() };
        let hosted = Hosted::new(&PLANS[..1], settings, options, works);
        hosted.world.run().exits(0);
        let shown = hosted.world.json(&format!("session show {}/parser/1/1", hosted.id()));
        assert_eq!(shown["window"], json!(expected), "{shown}");
    }
}

#[test]
fn a_cancelled_or_terminated_session_is_paid_from_the_budget() {
    for verb in ["cancel", "terminate"] {
        let hold = Hold::new();
        let holding = hold.clone();
        let script = move |request: &Request| {
            let reply = works(request);
            if request.number == 2 { Reply::Held(holding.clone(), Box::new(reply)) } else { reply }
        };
        // An answer costs more than one dollar, and less than one hundred.
        let hosted = priced_with(&PLANS[..1], "[budget]\ncost = 100\n", script);
        let mut run = hosted.world.begin();
        assert!(hosted.server.wait_for(PATIENCE, |records| records.len() == 2));
        hosted.world.call(&format!("{verb} parser")).exits(0);
        run.exits(3);
        hold.release();
        edit(&hosted, "cost = 100\n", "cost = 1\n");
        hosted.world.call("resume parser").exits(0);
        hosted.world.run().exits(3).says("the budget of the project, 1.00 USD, is spent");
        assert_eq!(hosted.server.count(Outcome::Answered), 1, "{verb}");
    }
}

#[test]
fn a_raised_limit_counts_what_the_feature_has_used_before() {
    let hosted = Hosted::new(&PLANS[..1], "[limits]\nturns = 2\n", Options::default(), works);
    hosted.world.run().exits(1).says("the limit of 2 turns is reached");
    hosted.world.call("resume parser").exits(0);
    hosted.world.run().exits(1).says("the limit of 2 turns is reached");
    assert_eq!(hosted.server.count(Outcome::Answered), 2, "nothing is left");
    edit(&hosted, "turns = 2\n", "turns = 3\n");
    hosted.world.run().exits(1).says("the limit of 3 turns is reached");
    assert_eq!(hosted.server.count(Outcome::Answered), 3, "one turn is left");
    edit(&hosted, "turns = 3\n", "turns = 100\n");
    hosted.world.run().exits(0).says("1 of 1 features pass");

    let provider = hosted.server.url().replace("http://", "");
    hosted.world.call("usage . --by provider").exits(0).says(&provider);
    hosted.world.call("usage . --by label").exits(0).says("none");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}
