//! Approval by a person before a merge, if the settings or the feature require it.

use longhaul_engine::{Context, ContextExt, Payload, Received, Stop};
use serde::{Deserialize, Serialize};

use crate::contracts::{Problem, SessionReason};

use super::{Stage, Work};

/// The signal `approval`: a person's decision on work whose gates have passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Whether it may be merged.
    pub approved: bool,
    /// The reviewed commit: a decision on an earlier commit does not count. `None`: whatever waits.
    #[serde(default)]
    pub commit: Option<String>,
    /// The reviewer.
    #[serde(default)]
    pub by: String,
    /// The reason.
    #[serde(default)]
    pub why: String,
}

/// Published under [`Awaited::KEY`] while the run waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The commit to review.
    pub commit: String,
}

impl Approval {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "approval";
}

impl Awaited {
    /// The key under which it is published.
    pub const KEY: &'static str = "approval";
}

/// Whether this commit may be merged. The agent receives the reason of a rejection.
pub(super) async fn is_granted(
    context: &mut dyn Context,
    work: &mut Work,
    commit: &str,
) -> Result<bool, Stop> {
    let is_wanted = work.input.settings.merge.approval || work.input.feature.approval;
    if !is_wanted {
        return Ok(true);
    }
    context.set(Awaited::KEY, &Awaited { commit: commit.to_owned() }).await?;
    work.enter(context, Stage::Approval).await?;
    let approval = wait(context, work, commit).await?;
    context.publish(Awaited::KEY, Payload::null()).await?;
    if !approval.approved {
        work.take_denial(approval.by, approval.why);
        return Ok(false);
    }
    Ok(true)
}

async fn wait(context: &mut dyn Context, work: &mut Work, commit: &str) -> Result<Approval, Stop> {
    let filter = Work::notes_and(Approval::SIGNAL);
    loop {
        let Some(received) = context.receive(&filter, None).await? else { continue };
        if let Received::Signal { name, payload, .. } = &received
            && name == Approval::SIGNAL
            && let Ok(approval) = payload.read::<Approval>()
            && approval.commit.as_deref().is_none_or(|seen| seen == commit)
        {
            return Ok(approval);
        }
        work.apply_message_now(context, received).await?;
    }
}

impl Work {
    /// Approval is the last gate: a rejection counts as a failed gate.
    fn take_denial(&mut self, by: String, why: String) {
        self.progress.failed_gates += 1;
        self.reason = SessionReason::GatesFailed;
        self.feedback.problem = Some(Problem::Denied { by, why });
    }
}
