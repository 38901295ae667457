//! A dialogue with an agent: the lines that Longhaul sends, and the pipe for them.

use std::path::PathBuf;

use longhaul_workflows::resources::Resources;
use longhaul_workflows::settings::AgentSettings;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::process::Fifo;

/// A line for an agent, with its newline.
pub(in crate::session) type Line = String;

/// What a driver needs to open the conversation with its agent.
#[derive(Debug, Clone)]
pub(in crate::session) struct Dialogue {
    pub(in crate::session) prompt: String,
    /// The work tree.
    pub(in crate::session) folder: PathBuf,
    /// The user's checkout.
    pub(in crate::session) root: PathBuf,
    /// The conversation that goes on.
    pub(in crate::session) resumed: Option<String>,
    pub(in crate::session) agent: AgentSettings,
    /// What the session may use.
    pub(in crate::session) available: Option<Resources>,
}

/// Writes lines to an agent until there are none any more; then its input ends.
pub(in crate::session) async fn write(fifo: Fifo, mut lines: UnboundedReceiver<Line>) {
    let Ok(mut input) = fifo.sender() else { return };
    while let Some(line) = lines.recv().await {
        if let Err(error) = input.write_all(line.as_bytes()).await {
            tracing::warn!(%error, "the input of an agent cannot be written");
            return;
        }
    }
}
