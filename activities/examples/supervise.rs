//! For the tests: a supervisor, and an owner that can be killed. Not useful by hand.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use longhaul_activities::process::{Environment, Limits, Runner, Spec, Supervisor, supervise_main};
use longhaul_engine::{Attempt, RunId, Slot};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|verb| verb.to_str()) {
        Some("supervise-process") => supervise_main(args),
        Some("own") => own(&args.collect::<Vec<_>>()),
        _ => ExitCode::from(2),
    }
}

/// `own DATA_DIR SCRIPT [PASSED_VARIABLE…]`: runs a script as the owner of a data directory and
/// prints its output.
fn own(args: &[OsString]) -> ExitCode {
    let [data_dir, script, passed @ ..] = args else { return ExitCode::from(2) };
    let passed: Vec<_> = passed.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let supervisor = Supervisor {
        grace: Duration::from_millis(500),
        ..Supervisor::of_this_binary().expect("a binary")
    };
    let spec = Spec {
        name: "script".into(),
        program: "sh".into(),
        args: vec!["-c".into(), script.clone()],
        directory: data_dir.into(),
        env: Environment::chosen(&passed),
        input: None,
        sandbox: None,
        limits: Limits::default(),
        remedy: "",
    };
    let attempt = Attempt::detached(RunId::new("owned").expect("a good id"), Slot::only(0));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let runner = Runner::new(data_dir, supervisor);
    let finished = runtime.block_on(runner.run(&spec, &attempt)).expect("the script runs");
    println!("{}", finished.output_tail);
    ExitCode::SUCCESS
}
