//! The demo, as a newcomer runs it.

use longhaul_tests::command::Longhaul;

#[track_caller]
fn passes(options: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_longhaul-under-test");
    let longhaul = Longhaul::new(program, place.path().join("home"));
    let project = place.path().join("reckon");
    let project = project.to_str().unwrap();
    longhaul
        .call(&[&["demo"], options, &[project]].concat())
        .exits(0)
        .says("12 of 12 features passed");
    longhaul.call(&["replay", "--all"]).exits(0).says("0 diverged");
    assert_eq!(longhaul.left_over(), Vec::<String>::new());
}

#[test]
fn the_scripted_agent_finishes_every_feature() {
    passes(&[]);
}

#[test]
fn the_built_in_agent_finishes_every_feature() {
    passes(&["--agent", "api"]);
}
