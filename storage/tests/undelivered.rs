//! Logs in which a run has lost the end of its history: messages sent to it meanwhile are
//! redelivered.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_engine::event::{Cause, CommandDigest, RequestedBy};
use longhaul_engine::store::{Commit, Delivery};
use longhaul_engine::{
    Event, EventKind, EventLog, Message, MessageBody, Outcome, Payload, Position, RunReader,
};
use longhaul_storage::SledStore;

use crate::check::said;
use crate::common::{completed, now, run, started, summary_of};

/// An event at a second of its own: messages are identified by their time.
fn at(second: i64, position: Position, kind: EventKind) -> Event {
    Event { position, at: now() + chrono::Duration::seconds(second), kind }
}

/// The first event of a run that another one has started.
fn child_of(parent: &str) -> Event {
    let mut event = started();
    if let EventKind::RunStarted { parent: known, .. } = &mut event.kind {
        *known = Some(run(parent));
    }
    event
}

fn sent(to: &str, name: &str) -> EventKind {
    EventKind::SignalSent { command: 0, to: run(to), name: name.into(), payload: payload(name) }
}

fn cancelled(to: &str) -> EventKind {
    EventKind::CancelSent { command: 0, to: run(to), request: request() }
}

fn request() -> RequestedBy {
    RequestedBy { by: "longhaul".into(), why: "removed".into() }
}

fn payload(name: &str) -> Payload {
    Payload::of(&name)
}

/// A signal as its receiver finds it.
fn from(sender: &str, name: &str, second: i64) -> Delivery {
    let body = MessageBody::signal_from(&run(sender), name, payload(name));
    Delivery { to: run("project"), at: at(second, 0, started().kind).at, body }
}

fn taken(seq: u64, delivery: Delivery) -> EventKind {
    let Delivery { at, body, .. } = delivery;
    EventKind::MessageReceived { command: 1, message: Some(Message { seq, at, body }) }
}

fn begun(run: &str) -> EventKind {
    EventKind::ChildStarted {
        command: 0,
        run: self::run(run),
        workflow: "test".into(),
        input: Payload::null(),
    }
}

fn again(cause: Cause) -> EventKind {
    let workflow = "test".into();
    let labels = BTreeMap::new();
    EventKind::RunStarted { workflow, input: Payload::null(), parent: None, labels, cause }
}

/// A project whose history lost its end, and its feature runs, whose messages the project no longer
/// has.
async fn forgetful(directory: &Path) {
    let store = SledStore::open(directory).unwrap();
    let put = async |id: &str, events: Vec<Event>| {
        let commit = Commit { summary: Some(summary_of(&events)), ..Commit::of(run(id), events) };
        store.commit(commit).await.unwrap();
    };
    let project = vec![
        at(0, 0, started().kind),
        at(1, 1, begun("at_work")),
        at(1, 2, begun("over")),
        at(1, 3, begun("known")),
        at(4, 4, taken(1, from("at_work", "request", 3))),
        at(5, 5, taken(2, Delivery { body: outcome("known"), ..from("known", "", 5) })),
    ];
    put("project", project).await;
    let at_work = vec![
        child_of("project"),
        at(3, 1, sent("project", "request")),
        at(3, 2, cancelled("late")),
        at(6, 3, sent("project", "ready")),
        at(7, 4, sent("project", "waits in the mailbox")),
        at(8, 5, sent("over", "to a run that is over")),
        at(8, 6, sent("gone", "to no run")),
    ];
    put("at_work", at_work).await;
    put("over", vec![child_of("project"), at(9, 1, completed(1).kind)]).await;
    put("known", vec![child_of("project"), at(5, 1, completed(1).kind)]).await;
    // Messages of an earlier life of a run, or copied by a fork, were sent by others.
    let restarted =
        vec![started(), at(6, 1, sent("project", "early")), at(7, 2, again(Cause::Restarted))];
    put("restarted", restarted).await;
    put(
        "fork",
        vec![
            at(9, 0, started().kind),
            at(6, 1, sent("project", "copied")),
            at(6, 2, begun("over")),
        ],
    )
    .await;
    // Messages sent before the restart were for the previous life of the run.
    put("late", vec![started(), at(9, 1, again(Cause::Restarted))]).await;
    let to_late = vec![
        started(),
        at(8, 1, sent("late", "early")),
        at(9, 2, begun("over")),
        at(10, 3, cancelled("project")),
        at(10, 4, cancelled("told")),
    ];
    put("other", to_late).await;
    let (digest, request) = (CommandDigest([0; 32]), request());
    let told = at(11, 1, EventKind::CancelDelivered { command: 0, digest, request });
    put("told", vec![started(), told]).await;
    store.deliver(from("at_work", "waits in the mailbox", 7)).await.unwrap();
    store
        .deliver(Delivery { to: run("other"), body: outcome("over"), ..from("over", "", 9) })
        .await
        .unwrap();
    store.close();
}

fn outcome(id: &str) -> MessageBody {
    MessageBody::ChildEnded { run: run(id), outcome: Outcome::Completed(Payload::null()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_and_is_lost_is_delivered_once_more() {
    let directory = tempfile::tempdir().unwrap();
    forgetful(directory.path()).await;
    let expected = [
        "mailbox of run project: the message `ready` of at_work, sent 2023-11-14 22:13:26 UTC, is neither here nor in \
         the history of the run",
        "mailbox of run project: the outcome of over, sent 2023-11-14 22:13:29 UTC, is neither here nor in the history \
         of the run",
        "mailbox of run project: the request to cancel of other, sent 2023-11-14 22:13:30 UTC, is neither here \
         nor in the history of the run",
    ];
    assert_eq!(said(directory.path(), false).await.0, expected);
    let (_, report) = said(directory.path(), true).await;
    let repair = "deliver the message again, as it was sent";
    assert!(
        report.damages.iter().all(|damage| damage.repaired && damage.repair == repair),
        "{report:?}"
    );
    assert_eq!(
        said(directory.path(), true).await.0,
        Vec::<String>::new(),
        "nothing is delivered twice"
    );
    let store = SledStore::open(directory.path()).unwrap();
    let mail = store.mailbox(&run("project")).await.unwrap();
    let mail: Vec<_> = mail.into_iter().map(|message| (message.at, message.body)).collect();
    let deliveries = [
        from("at_work", "waits in the mailbox", 7),
        from("at_work", "ready", 6),
        Delivery { body: outcome("over"), ..from("over", "", 9) },
        Delivery { body: MessageBody::Cancel(request()), ..from("other", "", 10) },
    ];
    assert_eq!(mail, deliveries.map(|delivery| (delivery.at, delivery.body)));
}
