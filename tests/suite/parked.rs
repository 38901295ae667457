//! An effect with an unknown outcome: the run waits for a person, who reconciles it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use longhaul_tests::command::{Longhaul, Output};
use longhaul_tests::project::plain;

use crate::world::World;

/// Before the real git: at a wish, it kills who moves the target branch, or cannot tell what has
/// landed.
const GIT: &str = r#"#!/bin/sh
WISHES=$(dirname "$(dirname "$0")")
case "$*" in
*" merge --ff-only "*)
    if [ -e "$WISHES/kill" ]; then
        rm "$WISHES/kill"
        kill -9 $PPID
        exit 1
    fi ;;
*merge-base*--is-ancestor* | *cat-file*--batch-command*)
    if [ -e "$WISHES/blind" ]; then
        echo "fatal: the disk is away" >&2
        exit 128
    fi ;;
esac
PATH=${PATH#*:}
exec git "$@"
"#;

/// A world in which git does as is wished.
struct Wishes {
    world: World,
    longhaul: Longhaul,
    folder: PathBuf,
}

impl Wishes {
    fn new() -> Self {
        let world = World::new(&[plain("parser", &[], 1)], 0.0);
        let folder = world.project.place().join("wishes");
        let git = folder.join("bin/git");
        fs::create_dir_all(git.parent().unwrap()).unwrap();
        fs::write(&git, GIT).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
        let longhaul = world.longhaul.clone().with("PATH", &path);
        Self { world, longhaul, folder }
    }

    fn wish(&self, what: &str, is_wanted: bool) {
        let wish = self.folder.join(what);
        if is_wanted { fs::write(wish, "").unwrap() } else { fs::remove_file(wish).unwrap() }
    }

    fn run(&self) -> Output {
        self.longhaul.call(&["run", &self.world.root])
    }

    /// Its landing was cut off, and its outcome is unknown.
    fn parked() -> Self {
        let wishes = Self::new();
        wishes.wish("kill", true);
        assert_eq!(wishes.run().code(), -1, "it was killed");
        wishes.wish("blind", true);
        wishes.run().exits(3).says("it is unknown whether `land` (attempt 1) happened");
        wishes
    }
}

#[test]
fn an_unknown_outcome_waits_for_a_person_and_continues_as_reconciled() {
    let wishes = Wishes::parked();
    let call =
        |args: &[&str]| wishes.longhaul.call(&[args, &["--dir", &wishes.world.root]].concat());
    wishes
        .longhaul
        .call(&["list", "--status", "parked"])
        .exits(0)
        .says("/parser/1")
        .says("it is unknown");
    call(&["why", "parser"])
        .exits(0)
        .says("The run is parked: it is unknown whether")
        .says("longhaul reconcile");
    call(&["resume", "parser"]).exits(3).says("is parked");
    call(&["reconcile", "parser", "--not-happened", "--by", "ann", "--why", "looked at main"])
        .exits(0);
    let settled = "reconcile_not_happened by ann: looked at main";
    call(&["why", "parser"]).exits(0).says(&format!("Pending: {settled}"));
    wishes
        .longhaul
        .call(&["status", &wishes.world.root])
        .exits(0)
        .says("pending: reconcile_not_happened");
    wishes
        .longhaul
        .call(&["list", "--feature", "parser"])
        .exits(0)
        .says("pending: reconcile_not_happened");
    wishes.wish("blind", false);
    wishes.run().exits(0).says("1 of 1 features pass");
    assert_eq!(wishes.world.project.landed("main"), ["parser"]);
    call(&["history", "parser"])
        .exits(0)
        .says("reconciled by ann: the effect did not happen: looked at main");
    call(&["describe", "parser"]).exits(0).says("looked at main");
    wishes.longhaul.call(&["replay", "--all"]).exits(0);
}

#[test]
fn a_probe_that_works_again_needs_no_person() {
    let wishes = Wishes::parked();
    wishes.wish("blind", false);
    wishes.run().exits(0).says("1 of 1 features pass");
    assert_eq!(wishes.world.project.landed("main"), ["parser"]);
}
