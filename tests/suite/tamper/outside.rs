//! What an owner may do and an agent should not: the sandbox prevents it; without it, it is
//! recorded and shown. And what no sandbox prevents: weak checks, and programs that change what
//! judges them.

use serde_json::json;

use super::{HONEST, Sandbox, Tampered};

/// A feature passes by a change outside of its tree, if it can be made: then `status`, `why` and
/// the history tell of it.
#[track_caller]
fn prevented_or_detected(session: &str, finding: &str) {
    for sandbox in Sandbox::all() {
        let tampered = Tampered::new(&[("outsider", session)], sandbox, "");
        tampered.world.run();
        let findings = tampered.world.json("status .")["findings"].to_string();
        if sandbox == Sandbox::Bubblewrap {
            tampered.is_sound(&HONEST);
            assert_eq!(findings, "[]");
            continue;
        }
        assert!(findings.contains(finding), "{findings}");
        let why = tampered.world.call("why <project>").exits(0).stdout.clone();
        assert!(why.contains(finding), "{why}");
        let history = tampered.world.call("history <project> --full").exits(0).stdout.clone();
        assert!(history.contains("findings"), "{history}");
    }
}

#[test]
fn checks_that_are_edited_in_the_checkout() {
    let session = "sed -i 's/sh acceptance.accept.sh outsider/true/' \"$P/feature_list.json\" || exit 0
         until \"$LONGHAUL\" --data-dir \"$DATA\" status \"$P\" | grep -q 'list was edited'; do sleep 0.05; done";
    prevented_or_detected(session, "the list was edited while");
}

#[test]
fn a_weaker_script_that_is_committed_to_the_target() {
    let session =
        "echo 'exit 0' >\"$P/acceptance/accept.sh\" && git -C \"$P\" commit -qam 'Weaker'";
    prevented_or_detected(session, "`main` was moved from");
}

#[test]
fn settings_that_are_edited_in_the_checkout() {
    let session = "printf '[[gate]]\\nname = \"x\"\\nrun = \"true\"\\n' >>\"$P/longhaul.toml\" || exit 0
         until \"$LONGHAUL\" --data-dir \"$DATA\" status \"$P\" | grep -q 'gates in longhaul'; do sleep 0.05; done";
    prevented_or_detected(session, "gates in longhaul.toml changed while");
}

#[test]
fn a_program_that_rewrites_the_script_while_gates_run() {
    let gate = "[[gate]]\nname = \"own\"\nrun = \"sh own.sh\"\n";
    for sandbox in Sandbox::all() {
        let session = "echo 'echo exit 0 >acceptance/accept.sh' >own.sh";
        let tampered = Tampered::new(&[("rewriter", session)], sandbox, gate);
        tampered.world.project.write("own.sh", "true\n");
        tampered.world.project.commit("Own tests");
        tampered.world.run().exits(1);
        let feature = tampered.feature("rewriter");
        assert_eq!(feature["status"], "blocked");
        let finding = "protected files were changed where gates run, and put back before";
        assert!(feature["findings"].to_string().contains(finding), "{feature:#}");
        tampered.world.call("why rewriter").exits(0).says(finding);
        let evidence = tampered.world.json("describe rewriter")["evidence"].clone();
        assert!(
            evidence.to_string().contains("\"put_back\":[\"acceptance/accept.sh\"]"),
            "{evidence:#}"
        );
    }
}

#[test]
fn checks_that_pass_before_any_work_are_reported() {
    let tampered =
        Tampered::new(&[("all", "true"), ("some", "echo finished >some.txt")], Sandbox::Off, "");
    let project = &tampered.world.project;
    let mut list: serde_json::Value =
        serde_json::from_str(&project.read("feature_list.json")).unwrap();
    list["features"][1]["checks"] = json!(["true"]);
    list["features"][2]["checks"] = json!(["test -f README.md", "sh acceptance/accept.sh some"]);
    project.write("feature_list.json", &list.to_string());
    project.commit("Weak checks");
    tampered.world.run().exits(0);
    let findings_of = |name: &str| tampered.feature(name)["findings"].clone();
    assert_eq!(findings_of("honest-1"), json!([]));
    assert_eq!(
        findings_of("all"),
        json!(["all its checks passed before any work: that they pass is no evidence"])
    );
    assert_eq!(
        findings_of("some"),
        json!(["passed before any work, so no evidence of it: `check-1`"])
    );
    tampered.world.call("why all").exits(0).says("no evidence");
    tampered
        .world
        .call("status .")
        .exits(0)
        .says("noticed on all: all its checks passed before any work");
}
