//! The state of a run together with its unread messages. Only this module reads unread requests.

use chrono::{DateTime, Utc};
use longhaul_engine::{Message, MessageBody, RunId, RunReader, Status, StoreError, Summary};
use longhaul_workflows::feature::Approval;
use longhaul_workflows::feature::Awaited;
use longhaul_workflows::finding::{Findings, SteeringRefused};
use longhaul_workflows::project::BacklogView;
use longhaul_workflows::project::ProjectView;
use longhaul_workflows::projection::{AuditEntry, MailboxEntry, RunView, State};

/// A run and its mailbox.
pub(crate) struct RunHead {
    pub(crate) summary: Summary,
    mailbox: Vec<Message>,
}

impl RunHead {
    /// The head of a run; `None` if the log has no such run.
    pub(crate) async fn of(store: &dyn RunReader, run: &RunId) -> Result<Option<Self>, StoreError> {
        // Order matters: a run that waits after its mailbox was empty has acted on every earlier
        // message.
        let mailbox = store.mailbox(run).await?;
        Ok(store.summary(run).await?.map(|summary| Self { summary, mailbox }))
    }

    /// Whether it has work now. A run takes messages only while a process runs the log.
    pub(crate) fn is_active(&self, is_running: bool) -> bool {
        let takes = |wanted: fn(&MessageBody) -> bool| is_running && self.has(wanted);
        match &self.summary.status {
            Status::Running => true,
            Status::Waiting { until, .. } => {
                until.is_some() || takes(|body| !matches!(body, MessageBody::Reconcile { .. }))
            }
            Status::Paused(_) => {
                takes(|body| matches!(body, MessageBody::Resume(_) | MessageBody::Terminate(_)))
            }
            Status::Parked(_) => takes(|body| {
                matches!(body, MessageBody::Reconcile { .. } | MessageBody::Terminate(_))
            }),
            Status::Completed | Status::Failed(_) | Status::Cancelled => false,
        }
    }

    /// Requests of people that it has not taken yet.
    pub(crate) fn pending(&self) -> Vec<MailboxEntry> {
        MailboxEntry::of_people(&self.mailbox)
    }

    /// All messages that it has not taken yet.
    pub(crate) fn mailbox(&self) -> Vec<MailboxEntry> {
        self.mailbox.iter().map(MailboxEntry::of).collect()
    }

    /// The findings of a run, including refused steering in unread messages: a session may take
    /// hours.
    pub(crate) fn findings(&self, known: &Findings) -> Findings {
        let mut findings = known.clone();
        for message in &self.mailbox {
            if let MessageBody::Signal { name, payload, from: None, .. } = &message.body
                && name == SteeringRefused::SIGNAL
                && let Ok(refused) = payload.read::<SteeringRefused>()
            {
                findings.add(refused.into());
            }
        }
        findings
    }

    /// The machine failure after which the run waits to retry.
    pub(crate) fn machine(&self) -> Option<String> {
        match &self.summary.status {
            Status::Waiting { machine, .. } => machine.clone(),
            _ => None,
        }
    }

    /// When the run continues by itself.
    pub(crate) fn until(&self) -> Option<DateTime<Utc>> {
        match self.summary.status {
            Status::Waiting { until, .. } => until,
            _ => None,
        }
    }

    /// Whether a message of this kind is unread.
    pub(crate) fn has(&self, wanted: impl Fn(&MessageBody) -> bool) -> bool {
        self.mailbox.iter().any(|message| wanted(&message.body))
    }

    /// Whether an answer to its request for approval is unread.
    pub(crate) fn is_answered(&self) -> bool {
        self.has(
            |body| matches!(body, MessageBody::Signal { name, .. } if name == Approval::SIGNAL),
        )
    }

    /// Whether it is closed, or closes when it takes its messages.
    pub(crate) fn is_ending(&self) -> bool {
        self.summary.status.is_terminal()
            || self.has(|body| matches!(body, MessageBody::Terminate(_)))
    }

    /// The unread order that ends it.
    pub(crate) fn end_order(&self) -> Option<&'static str> {
        self.mailbox.iter().find_map(|message| match message.body {
            MessageBody::Cancel(_) => Some("cancel"),
            MessageBody::Terminate(_) => Some("terminate"),
            _ => None,
        })
    }

    /// Whether it is paused once it has taken its messages.
    pub(crate) fn is_held_by_pause(&self) -> bool {
        self.pause_order().unwrap_or(matches!(self.summary.status, Status::Paused(_)))
    }

    /// The last unread order to pause (`true`) or to resume (`false`).
    pub(crate) fn pause_order(&self) -> Option<bool> {
        self.mailbox.iter().rev().find_map(|message| match message.body {
            MessageBody::Pause(_) => Some(true),
            MessageBody::Resume(_) => Some(false),
            _ => None,
        })
    }
}

/// The state of a run by its recorded status; `waits_for_others`: a run without a deadline waits
/// for other work than its own sessions.
pub(crate) fn state_of(status: &Status, waits_for_others: bool) -> State {
    match status {
        Status::Waiting { until, machine } => {
            let waits = until.is_some() || machine.is_some() || waits_for_others;
            if waits { State::Waiting } else { State::Running }
        }
        status => State::from(status),
    }
}

/// The request that ended a cancelled or terminated run. An unreadable history has none.
pub(crate) async fn ended_by(
    store: &dyn RunReader,
    run: &RunId,
    summary: &Summary,
) -> Option<AuditEntry> {
    let history = store.read(run, summary.origin).await.unwrap_or_default();
    RunView::of(&history).ended_by().cloned()
}

/// The root of a project according to the log.
pub(crate) async fn known_root(
    store: &dyn RunReader,
    project: &RunId,
) -> Result<Option<String>, StoreError> {
    let published = store.published_except(project, BacklogView::KEY).await?;
    Ok(ProjectView::of(&published).summary.map(|summary| summary.root))
}

/// The work of a run that waits for approval.
pub(crate) async fn awaited(
    store: &dyn RunReader,
    run: &RunId,
) -> Result<Option<Awaited>, StoreError> {
    let published = store.published(run).await?;
    Ok(published.get(Awaited::KEY).and_then(|value| value.read().ok()))
}
