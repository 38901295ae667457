//! Partial clones of the user's: what is missing is fetched before the first session, or reported.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_tests::command::Longhaul;
use longhaul_tests::project::{Project, git, plain};

/// A project of which there is a partial clone with a sparse checkout.
fn cloned(options: &[&str]) -> (Project, PathBuf) {
    let project = Project::new(&[plain("parser", &[], 1)], 0.0);
    fs::create_dir_all(project.root().join("lib/deep")).unwrap();
    for version in ["one", "two"] {
        project.write("lib/deep/file.txt", version);
        project.commit(version);
    }
    project.git(&["config", "uploadpack.allowFilter", "true"]);
    let agent = project.read("agent.sh").replacen(
        "#!/bin/sh\n",
        "#!/bin/sh\n[ \"$(git show HEAD~2:lib/deep/file.txt)\" = one ] && cat lib/deep/file.txt >seen.txt\n",
        1,
    );
    project.write("agent.sh", &agent);
    project.commit("An agent that looks around");
    let clone = project.place().join("clone");
    let (from, to) = (format!("file://{}", project.root().display()), clone.to_str().unwrap());
    let args = [&["clone", "--quiet", "--sparse"], options, &[&from, to]].concat();
    git(&project.place(), &args).unwrap();
    for (name, value) in [("user.name", "Test"), ("user.email", "test@example.org")] {
        git(&clone, &["config", name, value]).unwrap();
    }
    (project, clone)
}

fn longhaul(home: &Path) -> Longhaul {
    Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), home)
}

#[test]
fn the_missing_files_are_fetched_before_work_begins() {
    for options in
        [&["--filter=blob:none"][..], &["--filter=tree:0"], &["--filter=blob:none", "--depth=3"]]
    {
        let (project, clone) = cloned(options);
        let (longhaul, root) = (longhaul(&project.home()), clone.to_str().unwrap());
        longhaul.call(&["doctor", root]).says("are not in this partial clone");
        longhaul.call(&["run", root]).exits(0);
        assert_eq!(git(&clone, &["show", "HEAD:seen.txt"]).unwrap(), "two", "{options:?}");
        assert!(!clone.join("lib").exists(), "the checkout is sparse");
        let output = longhaul.call(&["doctor", root]).exits(0).stdout.clone();
        assert!(!output.contains("partial"), "{output}");
    }
}

#[test]
fn a_remote_that_is_away_is_named_before_a_session_is_paid_for() {
    let (project, clone) = cloned(&["--filter=blob:none"]);
    git(&clone, &["config", "remote.origin.url", "/nowhere/at/all"]).unwrap();
    let (longhaul, root) = (longhaul(&project.home()), clone.to_str().unwrap());
    let output = longhaul.call(&["run", root]);
    output.exits(4).says("is a partial clone without").says("`origin` does not give them");
    assert_eq!(project.marks(), []);
    git(&clone, &["config", "remote.origin.url", project.root().to_str().unwrap()]).unwrap();
    longhaul.call(&["run", root]).exits(0);
}
