//! The program of `[agent] command`.

use std::ffi::OsString;
use std::path::Path;

use longhaul_engine::Failure;

/// The program of a command line and its arguments, resolved from the user's checkout.
pub(in crate::session) fn program(
    command: &[String],
    root: &Path,
) -> Result<(OsString, Vec<OsString>), Failure> {
    let Some((program, args)) = command.split_first().filter(|(program, _)| !program.is_empty())
    else {
        let root = root.display();
        return Err(Failure::terminal(format!(
            "no agent is configured in {root}/longhaul.toml: set `[agent] command` to a program \
             and its arguments, for example command = [\"./agent.sh\"]"
        )));
    };
    let program = if program.contains('/') {
        root.join(program.trim_start_matches("./")).into()
    } else {
        program.into()
    };
    Ok((program, args.iter().map(Into::into).collect()))
}
