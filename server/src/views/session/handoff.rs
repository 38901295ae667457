//! The handoff of a session: the package that it has written, or received.

use longhaul_workflows::contracts::Handoff;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::View;
use super::FoundSession;
use crate::advice;
use crate::request::RequestError;

/// A handoff between two sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffDocument {
    /// The session that was named.
    pub session: String,
    /// blake3 of the package, which the successor acknowledges.
    pub digest: String,
    /// The package.
    pub package: Handoff,
    /// The package as text for people.
    pub document: String,
}

impl View<'_> {
    pub(in crate::views) fn handoff(found: FoundSession) -> Result<HandoffDocument, RequestError> {
        let FoundSession { run, view, .. } = found;
        let received = view.start.and_then(|start| start.handoff);
        let package = view.package.or(received).ok_or_else(|| {
            RequestError::refused(format!(
                "session {run} has neither written nor received a package; {} shows the notes of \
                 its agent",
                advice::command(["session", "show", run.as_str()])
            ))
        })?;
        Ok(HandoffDocument {
            session: run.to_string(),
            digest: package.digest(),
            document: package.document(),
            package,
        })
    }
}
