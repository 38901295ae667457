//! The first exchange of the Agent Client Protocol, without a session: it costs nothing.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use longhaul_workflows::settings::AgentSettings;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::process::Environment;

use super::acp::{Answer, initialize};
use super::{AgentDriver, program};

/// How long an agent may take to answer. One that takes longer may be installed first.
const LONGEST: Duration = Duration::from_secs(20);

/// The version of an agent, if it states one, or why it is none.
pub(super) async fn handshake(
    driver: &dyn AgentDriver,
    agent: &AgentSettings,
    root: &Path,
    env: &Environment,
) -> Result<Option<String>, &'static str> {
    let Ok((program, mut args)) = program(driver, agent, root) else { return Ok(None) };
    args.extend(agent.args.iter().map(OsString::from));
    let mut command = Command::new(program);
    command.args(args).current_dir(root).env_clear().envs(env.iter());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(LONGEST, exchange(command)).await {
        Ok(Some(Answer::Version(version))) => Ok(version),
        Ok(Some(Answer::Refused)) => Err("speaks another version of the Agent Client Protocol"),
        Ok(None) => Err("does not speak the Agent Client Protocol"),
        Err(_) => Ok(None),
    }
}

/// The answer of an agent; `None` if it ends without one.
async fn exchange(mut command: Command) -> Option<Answer> {
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    input.write_all(initialize().as_bytes()).await.ok()?;
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(answer) = Answer::of(&line) {
            return Some(answer);
        }
    }
    None
}
