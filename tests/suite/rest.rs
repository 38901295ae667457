//! Commands to runs at rest, and a second request to stop: on the real program.

use std::time::{Duration, Instant};

use longhaul_tests::project::plain;
use longhaul_tests::wait::until;

use crate::world::World;

/// A project whose agent was at work on `parser` when the process that ran it got SIGTERM.
fn cut() -> World {
    let world = World::new(&[plain("parser", &[], 3)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.terminate();
    run.exits(3);
    world.project.let_go("parser");
    world
}

#[test]
fn a_feature_at_rest_has_a_reason() {
    let world = cut();
    let status = world.json("status .");
    let line = &status["features"][0];
    assert_eq!((&line["status"], &line["is_open"]), (&"waiting".into(), &true.into()));
    let listed = world.json("list --feature parser --kind feature");
    assert_eq!(line["reason"], "no process runs it");
    assert_eq!(listed["runs"][0]["reason"], line["reason"], "{listed:#}");
}

#[test]
fn a_pause_at_rest_starts_no_agent() {
    for command in ["pause parser", "pause ."] {
        let world = cut();
        let sessions = world.project.marks().len();
        world.call(command).exits(0).says("when its project runs next");
        world.run().exits(3);
        assert_eq!(world.project.marks().len(), sessions, "{command}: no agent is started");
        // Nor when it is run once more.
        world.run().exits(3);
        assert_eq!(world.project.marks().len(), sessions, "{command}: no agent is started");
        let listed = world.json("list --feature parser");
        assert_eq!(listed["runs"][0]["status"], "paused", "{listed:#}");
        world.call(&command.replace("pause", "resume")).exits(0);
        world.run().exits(0);
        assert_eq!(
            world.json("describe parser")["cost"]["sessions"],
            2,
            "{command}: both attempts were paid for"
        );
    }
}

#[test]
fn a_paused_project_can_be_cancelled_and_terminated_at_rest() {
    for verb in ["cancel", "terminate"] {
        let world = cut();
        world.call("pause .").exits(0);
        world.run().exits(3);
        world.call(&format!("{verb} .")).exits(0).says("when its project runs next");
        world.run().exits(0);
        let first = world.json(&format!("describe {}/parser/1", world.project_id()));
        assert_eq!(first["status"], "cancelled", "{verb}: {first:#}");
    }
}

#[test]
fn the_finished_work_of_a_terminated_project_is_not_paid_again() {
    let world = World::with_untaken_session(".");
    world.call("terminate .").exits(0);
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1, "one session");
}

#[test]
fn the_finished_work_of_a_terminated_feature_is_not_paid_again() {
    for verb in ["resume", "feature unblock"] {
        let world = World::with_untaken_session(".");
        world.call("terminate parser").exits(0);
        world.call("resume .").exits(0);
        world.run().exits(3);
        world.call(&format!("{verb} parser")).exits(0);
        world.run().exits(0);
        assert_eq!(world.project.marks().len(), 1, "{verb}: one session");
    }
}

#[test]
fn the_finished_work_of_a_terminated_feature_of_a_cancelled_project_is_not_paid_again() {
    for requests in [["terminate parser", "cancel ."], ["cancel .", "terminate parser"]] {
        let world = World::with_untaken_session("parser");
        for request in requests {
            world.call(request).exits(0);
        }
        world.run().exits(0);
        assert_eq!(world.project.marks().len(), 1, "{requests:?}: one session");
    }
}

#[test]
fn landed_work_that_was_blocked_is_not_paid_again_after_a_terminate() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.run().exits(0);
    world.call("feature block parser --why later").exits(0);
    world.run().exits(1);
    world.call("terminate .").exits(0);
    world.run().exits(1);
    world.call("feature unblock parser").exits(0);
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1, "one session");
    assert_eq!(world.project.landed("main"), ["parser"]);
}

/// The numbers of the runs of a removed feature stay used.
#[test]
fn a_feature_that_returns_after_a_terminate_is_not_taken_for_its_old_run() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.run().exits(0);
    let list = world.project.read("feature_list.json");
    world.project.write_list(&[plain("parser", &[], 1)]);
    world.run().exits(0);
    world.call("terminate .").exits(0);
    world.run().exits(0);
    let never = list.replace("grep -q finished table.txt", "false");
    assert_ne!(never, list);
    world.project.write("feature_list.json", &never);
    world.project.commit("Another feature with the same id");
    world.run().exits(1).says("table  blocked");
}

/// How long agents are given to end by themselves.
const GRACE: Duration = Duration::from_secs(10);

#[test]
fn who_wants_it_to_stop_twice_does_not_wait_for_agents() {
    // A busy machine may take as long for other reasons, but not every time.
    assert!((0..3).any(|_| stop_twice() < GRACE));
}

/// How long it takes to stop with an agent that does not want to end.
fn stop_twice() -> Duration {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let plan = world.project.read("plan/parser");
    world.project.write("plan/parser", &format!("trap '' TERM INT HUP\n{plan}"));
    world.project.commit("An agent that does not want to end");
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.terminate();
    until("it says that it stops", || run.output().contains("once more, and they are killed"));
    let begun = Instant::now();
    run.terminate();
    run.exits(3);
    let taken = begun.elapsed();
    assert!(run.output().contains("killing the agents"), "{}", run.output());
    until("its agent is gone", || world.longhaul.left_over().is_empty());
    taken
}
