//! Requests of people are shown: while they wait in the mailbox of a run at rest, and when they
//! have been applied.

use longhaul_tests::project::plain;

use crate::world::World;

const APPROVAL: &str = "[merge]\napproval = true\n";

#[test]
fn requests_at_rest_are_shown_as_pending() {
    let plans = ["parser", "table", "shell", "manual"].map(|id| plain(id, &[], 1));
    let world = World::with_settings(&plans, 0.0, APPROVAL);
    let output = world.run();
    output.exits(3).says("needs attention").says("longhaul approve");
    world.call("status .").exits(0).says("needs attention").says("longhaul approve");
    world.call("why parser").exits(0).says("a person has to agree").says("`longhaul approve");
    world.call("terminate parser --why enough --by ann").exits(0);
    world.call("deny table --why wider --by bob").exits(0);
    world.call("approve shell --by cid").exits(0);
    world.call("cancel manual --by dan --why dear").exits(0);
    let requests = [
        ("parser", "terminate by ann: enough"),
        ("table", "deny by bob: wider"),
        ("shell", "approve by cid"),
        ("manual", "cancel by dan: dear"),
    ];
    for (feature, words) in requests {
        world
            .call(&format!("why {feature}"))
            .exits(0)
            .says(&format!("Pending: {words}."))
            .says("/p` continues it");
        let described = world.json(&format!("describe {feature}"));
        let what = words.split(' ').next().unwrap();
        assert_eq!(described["pending"][0]["what"], what, "{described:#}");
        assert!(
            described["waits_for"]
                .as_array()
                .unwrap()
                .contains(&format!("Pending: {words}.").into()),
            "{described:#}"
        );
        let run = format!("{}/{feature}/1", world.project_id());
        let list = world.json("list");
        let line = list["runs"].as_array().unwrap().iter().find(|line| line["run"] == run).unwrap();
        assert_eq!(line["pending"][0]["what"], what, "{list:#}");
        let status = world.json("status .");
        let line = status["features"]
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["id"] == feature)
            .unwrap();
        // An answer that is pending is no longer needed.
        let is_answered = ["approve", "deny"].contains(&what);
        assert_eq!(
            (&line["pending"][0]["what"], &line["needs_person"]),
            (&what.into(), &(!is_answered).into()),
            "{status:#}"
        );
    }
    world.call("status .").says("pending: terminate by ann: enough");
    world.run().exits(3);

    let why = world.call("why parser").exits(0).clone();
    why.says("It was terminated by ann: enough.").says("`longhaul resume");
    let run = format!("{}/parser/1", world.project_id());
    assert_eq!(world.json(&format!("why {run}"))["reasons"][0]["by"]["by"], "ann");
    let history = world.call("history parser").exits(0).stdout.clone();
    assert!(history.trim_end().ends_with("over: terminated by ann: enough"), "{history}");
    assert!(!history.contains("paused"), "{history}");
    let described = world.json("describe parser");
    assert_eq!(
        (&described["audit"][0]["what"], &described["audit"][0]["by"]),
        (&"terminate".into(), &"ann".into()),
        "{described:#}"
    );
    world
        .call("why manual")
        .exits(0)
        .says("It was cancelled by dan: dear.")
        .says("`longhaul resume");
    assert_eq!(world.project.landed("main"), ["shell"]);
    world.call("resume parser").exits(0).says("/parser/2  ");
}

#[test]
fn what_an_agent_printed_before_it_failed_is_shown() {
    let world = World::with_settings(
        &[plain("parser", &[], 1), plain("table", &[], 1)],
        0.0,
        "[limits]\nfailed_sessions = 2\nfailed_gates = 1\n",
    );
    let talks =
        "cat \"$LONGHAUL_PROMPT_FILE\" >\"$LONGHAUL_TEST_JOURNAL/../prompt-$LONGHAUL_SESSION\"\n";
    world
        .project
        .write("plan/parser", &format!("{talks}echo starts; echo 'no disk left'; exit 9\n"));
    world.project.write("plan/table", "habit=never\n");
    world.project.commit("Fail");
    world
        .run()
        .exits(1)
        .says("2 sessions failed. It ended: exit code 9. Its last words: no disk left");
    let why = world.call("why parser").exits(0).clone();
    why.says("It was given up: 2 sessions failed. It ended: exit code 9.")
        .says("| no disk left")
        .says("| starts");
    world
        .call("status .")
        .says("Its last words: no disk left")
        .says("the gates failed once. The check");
    world.call("describe parser").says("Its last words: no disk left");
    world.call("history parser").says("Its last words: no disk left");
    world.call("why table").exits(0).says("It was given up: the gates failed once.");
    let status = world.json("status .");
    let reason = status["features"][1]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(
        reason.contains("failed once") && !reason.contains("output"),
        "its check prints nothing: {reason}"
    );
    let prompt = std::fs::read_to_string(world.project.place().join("prompt-2")).unwrap();
    assert!(
        prompt.contains("The end of its output:\n\n```\nstarts\nno disk left\n```"),
        "{prompt}"
    );
    world.project.write("plan/parser", &format!("{talks}exit 9\n"));
    world.project.commit("Fail in silence");
    world.call("restart parser").exits(0);
    world.run().exits(1);
    let prompt = std::fs::read_to_string(world.project.place().join("prompt-2")).unwrap();
    assert!(prompt.contains("exit code 9.") && !prompt.contains("end of its output"), "{prompt}");
    world.call("status .").says("2 sessions failed. It ended: exit code 9.");
    world.call("replay --all").exits(0).says("0 diverged");
}
