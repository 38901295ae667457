//! `run --once` and `run --max-time`: hosting by a scheduler.

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_model_server::{Fault, Hold, Options, Outcome, Reply, Request};

use super::failures::failing;
use super::{Hosted, PLANS, works};

#[test]
fn once_ends_at_a_wait_and_tells_when_the_work_continues() {
    let limited = || Fault::RateLimited(Some(3600)).into();
    let hosted = Hosted::new(&PLANS, "", Options::default(), failing(&[2], limited));
    let root = hosted.world.project.root();
    let output = hosted.world.call(&format!("run --once -o json {}", root.display()));
    let document = output.exits(3).json();
    assert_eq!(document["is_unsettled"], true);
    let due: DateTime<Utc> = document["next_due"].as_str().unwrap().parse().unwrap();
    let wait = due - Utc::now();
    assert!(wait > TimeDelta::minutes(50) && wait < TimeDelta::minutes(70), "{wait}");
    assert_eq!(hosted.server.count(Outcome::Answered), 1);
    hosted.world.call(&format!("run --once {}", root.display())).exits(3).says("before");
    assert_eq!(hosted.server.records().len(), 2, "nothing is requested before it is due");
}

#[test]
fn once_ends_as_run_does_when_all_is_done() {
    let hosted = Hosted::new(&PLANS, "", Options::default(), works);
    let root = hosted.world.project.root();
    let output = hosted.world.call(&format!("run --once {}", root.display()));
    output.exits(0).says("2 of 2 features pass");
}

#[test]
fn after_its_time_a_run_ends_and_the_next_one_continues() {
    let hold = Hold::new();
    let holding = hold.clone();
    let script = move |request: &Request| {
        if request.number == 1 {
            return Reply::Held(holding.clone(), Box::new(works(request)));
        }
        works(request)
    };
    let hosted = Hosted::new(&PLANS[..1], "", Options::default(), script);
    let root = hosted.world.project.root();
    hosted.world.call(&format!("run --max-time 2s {}", root.display())).exits(3);
    hold.release();
    hosted.world.run().exits(0).says("1 of 1 features pass");
}
