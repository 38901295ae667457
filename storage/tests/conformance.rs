//! The semantics of every event log, tested on disk and in memory.

use std::sync::Arc;

use crate::common::{
    append, completed, creation, end, large, published, run, signal, start, started, summary_of,
    values,
};
use longhaul_engine::store::Commit;
use longhaul_engine::{EventLog, MessageBody, Payload, Status, StoreError};
use longhaul_storage::{MemoryStore, SledStore};

/// A shared log under test.
type Log = Arc<dyn EventLog>;

conformance! {
    what_was_appended_is_read,
    an_append_that_is_not_at_the_end_is_refused,
    a_refused_commit_leaves_nothing_behind,
    a_stale_writer_loses,
    a_birth_happens_once,
    messages_reach_living_runs_only,
    a_consumed_message_is_gone,
    messages_are_numbered_upwards,
    published_values_stay_until_removed,
    runs_are_found_by_prefix,
    large_payloads_come_back,
    many_writers_at_once,
    writers_of_one_run_take_turns,
    long_histories,
    times_are_kept_to_the_microsecond,
}

async fn what_was_appended_is_read(log: Log) {
    let a = run("a");
    assert!(log.read(&a, 0).await.unwrap().is_empty());
    assert_eq!(log.summary(&a).await.unwrap(), None);
    log.commit(start("a")).await.unwrap();
    let two = vec![published(1, &Payload::of(&1)), published(2, &Payload::of(&2))];
    log.commit(Commit::of(a.clone(), two.clone())).await.unwrap();
    let all = [vec![started()], two.clone()].concat();
    assert_eq!(log.read(&a, 0).await.unwrap(), all);
    assert_eq!(log.read(&a, 1).await.unwrap(), two);
    assert!(log.read(&a, 3).await.unwrap().is_empty());
    assert!(log.read(&a, u64::MAX).await.unwrap().is_empty());
    assert_eq!(log.summary(&a).await.unwrap(), Some(summary_of(&[started()])));
    assert!(log.read(&run("a/b"), 0).await.unwrap().is_empty(), "a run is not its neighbour");
}

async fn an_append_that_is_not_at_the_end_is_refused(log: Log) {
    let refused = |position, end| Err(StoreError::Conflict { run: run("a"), position, end });
    let null = Payload::null();
    assert_eq!(log.commit(append("a", 1, &null)).await, refused(1, 0));
    log.commit(start("a")).await.unwrap();
    assert_eq!(log.commit(start("a")).await, refused(0, 1));
    assert_eq!(log.commit(append("a", 2, &null)).await, refused(2, 1));
    let gap = vec![published(1, &null), published(3, &null)];
    assert_eq!(log.commit(Commit::of(run("a"), gap)).await, refused(3, 2));
    log.commit(append("a", 1, &null)).await.unwrap();
}

async fn a_refused_commit_leaves_nothing_behind(log: Log) {
    log.commit(start("a")).await.unwrap();
    let message = log.deliver(signal("a", "stay")).await.unwrap().unwrap();
    let stale = Commit {
        summary: Some(summary_of(&[started(), completed(1)])),
        consumed: vec![message.seq],
        published: vec![("key".into(), Some(Payload::null()))],
        deliveries: vec![signal("a", "no")],
        creations: vec![creation("b")],
        ..append("a", 5, &Payload::null())
    };
    assert!(matches!(
        log.commit(stale).await,
        Err(StoreError::Conflict { position: 5, end: 1, .. })
    ));
    assert_eq!(log.read(&run("a"), 0).await.unwrap().len(), 1);
    assert_eq!(log.mailbox(&run("a")).await.unwrap(), [message]);
    assert!(log.published(&run("a")).await.unwrap().is_empty());
    assert_eq!(log.summary(&run("a")).await.unwrap().unwrap().status, Status::Running);
    assert!(log.read(&run("b"), 0).await.unwrap().is_empty());
}

async fn a_stale_writer_loses(log: Log) {
    log.commit(start("a")).await.unwrap();
    let tasks = (0..20).map(|writer: u64| {
        let log = Arc::clone(&log);
        tokio::spawn(
            async move { (writer, log.commit(append("a", 1, &Payload::of(&writer))).await) },
        )
    });
    let mut winners = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            (writer, Ok(_)) => winners.push(Payload::of(&writer)),
            (_, Err(error)) => {
                assert_eq!(error, StoreError::Conflict { run: run("a"), position: 1, end: 2 });
            }
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(values(&log.read(&run("a"), 0).await.unwrap()), winners);
}

async fn a_birth_happens_once(log: Log) {
    log.commit(start("parent")).await.unwrap();
    let mut bearing = append("parent", 1, &Payload::null());
    bearing.creations = vec![creation("child"), creation("parent"), creation("child")];
    bearing.deliveries = vec![signal("child", "welcome")];
    let committed = log.commit(bearing).await.unwrap();
    assert_eq!(committed.created, [true, false, false]);
    assert!(committed.delivered[0].is_some(), "a run that is created can be written to at once");
    log.commit(end("child")).await.unwrap();
    let again =
        Commit { creations: vec![creation("child")], ..append("parent", 2, &Payload::null()) };
    assert_eq!(log.commit(again).await.unwrap().created, [false]);
    assert_eq!(log.read(&run("child"), 0).await.unwrap(), [started(), completed(1)]);
    assert_eq!(log.summary(&run("child")).await.unwrap().unwrap().status, Status::Completed);
    let wrong = completed(3);
    let wrong = Commit {
        creations: vec![longhaul_engine::store::Creation { event: wrong, ..creation("other") }],
        ..append("parent", 3, &Payload::null())
    };
    assert!(matches!(
        log.commit(wrong).await,
        Err(StoreError::Conflict { position: 3, end: 0, .. })
    ));
}

async fn messages_reach_living_runs_only(log: Log) {
    assert_eq!(log.deliver(signal("a", "early")).await, Err(StoreError::UnknownRun(run("a"))));
    log.commit(start("a")).await.unwrap();
    log.commit(start("b")).await.unwrap();
    let sending = Commit {
        deliveries: vec![signal("b", "one"), signal("missing", "two"), signal("a", "self")],
        ..append("a", 1, &Payload::null())
    };
    let delivered = log.commit(sending).await.unwrap().delivered;
    assert!(delivered[0].is_some() && delivered[1].is_none() && delivered[2].is_some());
    log.commit(end("b")).await.unwrap();
    assert_eq!(log.deliver(signal("b", "late")).await, Ok(None));
    let late = Commit { deliveries: vec![signal("b", "late")], ..append("a", 2, &Payload::null()) };
    assert_eq!(log.commit(late).await.unwrap().delivered, [None]);
    let last = Commit {
        summary: Some(summary_of(&[started(), completed(3)])),
        deliveries: vec![signal("a", "to an end")],
        ..Commit::of(run("a"), vec![completed(3)])
    };
    assert_eq!(
        log.commit(last).await.unwrap().delivered,
        [None],
        "the summary of the same commit counts"
    );
}

async fn a_consumed_message_is_gone(log: Log) {
    log.commit(start("a")).await.unwrap();
    log.commit(start("b")).await.unwrap();
    let first = log.deliver(signal("a", "first")).await.unwrap().unwrap();
    let second = log.deliver(signal("a", "second")).await.unwrap().unwrap();
    log.deliver(signal("b", "other")).await.unwrap().unwrap();
    assert_eq!(log.mailbox(&run("a")).await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(log.runs_with_mail().await.unwrap(), [run("a"), run("b")]);
    let taking = |seq, at| Commit { consumed: vec![seq], ..append("a", at, &Payload::null()) };
    log.commit(taking(first.seq, 1)).await.unwrap();
    assert_eq!(log.mailbox(&run("a")).await.unwrap(), std::slice::from_ref(&second));
    log.commit(taking(second.seq, 2)).await.unwrap();
    assert!(log.mailbox(&run("a")).await.unwrap().is_empty());
    assert_eq!(log.runs_with_mail().await.unwrap(), [run("b")]);
}

async fn messages_are_numbered_upwards(log: Log) {
    log.commit(start("a")).await.unwrap();
    let mut last = 0;
    for round in 0..3 {
        let message = log.deliver(signal("a", "x")).await.unwrap().unwrap();
        assert!(message.seq > last, "also when the mailbox was empty");
        last = message.seq;
        let taking = Commit { consumed: vec![last], ..append("a", round + 1, &Payload::null()) };
        log.commit(taking).await.unwrap();
    }
    for name in ["one", "two", "three"] {
        log.deliver(signal("a", name)).await.unwrap();
    }
    let mail = log.mailbox(&run("a")).await.unwrap();
    assert!(mail.is_sorted_by_key(|message| message.seq));
    let names: Vec<_> = mail
        .iter()
        .map(|message| match &message.body {
            MessageBody::Signal { name, .. } => name.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!(names, ["one", "two", "three"]);
}

async fn published_values_stay_until_removed(log: Log) {
    log.commit(start("a")).await.unwrap();
    let publishing = |at, values: &[(&str, Option<i32>)]| Commit {
        published: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(|value| Payload::of(&value))))
            .collect(),
        ..append("a", at, &Payload::null())
    };
    log.commit(publishing(1, &[("x", Some(1)), ("y", Some(2)), ("", Some(3))])).await.unwrap();
    log.commit(publishing(2, &[("x", Some(4)), ("y", None), ("z", None)])).await.unwrap();
    let values = log.published(&run("a")).await.unwrap();
    assert_eq!(values, [(String::new(), Payload::of(&3)), ("x".into(), Payload::of(&4))].into());
    assert!(log.published(&run("a/b")).await.unwrap().is_empty());
    let long = "x".repeat(513);
    let refused = log.commit(publishing(3, &[(&long, Some(1))])).await;
    assert!(matches!(refused, Err(StoreError::Unusable(_))), "{refused:?}");
}

async fn runs_are_found_by_prefix(log: Log) {
    let ids = ["p", "p/f-1", "p/f-2", "p/f-2/s", "p-2", "q"];
    for id in ids {
        log.commit(start(id)).await.unwrap();
    }
    log.commit(Commit::of(run("p/quiet"), vec![started()])).await.unwrap();
    let found = async |prefix: &str| {
        let runs = log.runs(prefix).await.unwrap();
        runs.into_iter().map(|(run, _)| run.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("p/").await, ["p/f-1", "p/f-2", "p/f-2/s"]);
    assert_eq!(found("").await, ["p", "p-2", "p/f-1", "p/f-2", "p/f-2/s", "q"]);
    assert!(found("z").await.is_empty());
    assert_eq!(log.runs("q").await.unwrap(), [(run("q"), summary_of(&[started()]))]);
}

async fn large_payloads_come_back(log: Log) {
    log.commit(start("a")).await.unwrap();
    let sizes = [4096 - 2, 4096, 5000, 70_000, 3_000_000];
    let values: Vec<_> = sizes.iter().map(|size| Payload::of(&"x".repeat(*size))).collect();
    for (position, value) in (1..).zip(&values) {
        log.commit(append("a", position, value)).await.unwrap();
    }
    assert_eq!(crate::common::values(&log.read(&run("a"), 0).await.unwrap()), values);
    let value = large(7, 50_000);
    let mut delivery = signal("a", "big");
    delivery.body = MessageBody::signal("n".repeat(30_000), value.clone());
    let body = delivery.body.clone();
    log.deliver(delivery).await.unwrap();
    assert_eq!(log.mailbox(&run("a")).await.unwrap()[0].body, body);
    let publishing =
        Commit { published: vec![("big".into(), Some(value.clone()))], ..append("a", 6, &value) };
    log.commit(publishing).await.unwrap();
    assert_eq!(log.published(&run("a")).await.unwrap()["big"], value);
    let mut summary = summary_of(&[started()]);
    summary.status = Status::Failed("why ".repeat(20_000));
    let parking = Commit { summary: Some(summary.clone()), ..append("a", 7, &value) };
    log.commit(parking).await.unwrap();
    assert_eq!(log.summary(&run("a")).await.unwrap(), Some(summary.clone()));
    assert_eq!(log.runs("").await.unwrap(), [(run("a"), summary)]);
}

async fn many_writers_at_once(log: Log) {
    let tasks = (0..100).map(|writer: u64| {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let id = format!("w/{writer}");
            log.commit(start(&id)).await.unwrap();
            for position in 1..=10 {
                let mut commit = append(&id, position, &Payload::of(&(writer * 100 + position)));
                commit.deliveries = vec![signal(&format!("w/{}", (writer + 1) % 100), "hello")];
                log.commit(commit).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    for writer in 0..100_u64 {
        let events = log.read(&run(&format!("w/{writer}")), 0).await.unwrap();
        let expected: Vec<_> =
            (1..=10).map(|position| Payload::of(&(writer * 100 + position))).collect();
        assert_eq!(values(&events), expected);
    }
    assert_eq!(log.runs("w/").await.unwrap().len(), 100);
}

async fn writers_of_one_run_take_turns(log: Log) {
    log.commit(start("a")).await.unwrap();
    let tasks = (0..8).map(|writer: u64| {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let mut at = 1;
            for _ in 0..20 {
                while let Err(error) = log.commit(append("a", at, &Payload::of(&writer))).await {
                    let StoreError::Conflict { end, .. } = error else { panic!("{error}") };
                    at = end;
                }
                at += 1;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let events = log.read(&run("a"), 0).await.unwrap();
    assert!(events.iter().zip(0..).all(|(event, position)| event.position == position));
    assert_eq!(events.len(), 161);
}

async fn long_histories(log: Log) {
    let events: Vec<_> = std::iter::once(started())
        .chain((1..5000).map(|at| published(at, &Payload::of(&at))))
        .collect();
    log.commit(Commit::of(run("a"), events.clone())).await.unwrap();
    assert_eq!(log.read(&run("a"), 0).await.unwrap(), events);
    assert_eq!(log.read(&run("a"), 4990).await.unwrap(), events[4990..]);
    for number in 0..100 {
        log.commit(start(&format!("m/{number:03}"))).await.unwrap();
        log.deliver(signal(&format!("m/{number:03}"), "x")).await.unwrap();
    }
    assert_eq!(log.runs_with_mail().await.unwrap().len(), 100);
}

async fn times_are_kept_to_the_microsecond(log: Log) {
    let mut event = started();
    event.at += chrono::Duration::nanoseconds(789);
    let mut summary = summary_of(&[event.clone()]);
    log.commit(Commit {
        summary: Some(summary.clone()),
        ..Commit::of(run("a"), vec![event.clone()])
    })
    .await
    .unwrap();
    event.at = started().at;
    summary.started_at = started().at;
    assert_eq!(log.read(&run("a"), 0).await.unwrap(), [event]);
    assert_eq!(log.summary(&run("a")).await.unwrap(), Some(summary));
    let mut delivery = signal("a", "x");
    delivery.at += chrono::Duration::nanoseconds(789);
    let message = log.deliver(delivery).await.unwrap().unwrap();
    assert_eq!(log.mailbox(&run("a")).await.unwrap(), [message]);
}
