//! Hand-made logs of projects, and when they settle.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use longhaul_engine::event::Cause;
use longhaul_engine::store::{Commit, Creation, Delivery};
use longhaul_engine::{Event, EventKind, EventLog, MessageBody, Payload, RunReader, Summary};
use longhaul_storage::MemoryStore;
use longhaul_workflows::project::{Phase, ProjectSummary, SessionsPaused, SyncRequest, signal};

use crate::owner::Owner;

use super::*;
use crate::status::of_project;

const PROJECT: &str = "shop";

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn view() -> ProjectSummary {
    ProjectSummary {
        root: "/shop".into(),
        target: "main".into(),
        list_file: "feature_list.json".into(),
        phase: Phase::Idle,
        halted: None,
        synced: String::new(),
        problem: None,
        waits_on_next: None,
        paused: None,
        over_budget: None,
        merging: Vec::new(),
        merge_queue: Vec::new(),
        parallel: 1,
        features: 0,
        passed: 0,
        in_progress: 0,
        blocked: 0,
    }
}

/// The summary of the project run in its log.
struct Shop(MemoryStore);

impl Shop {
    async fn begin() -> Self {
        let shop = Self(MemoryStore::new());
        let kind = EventKind::RunStarted {
            workflow: "project".into(),
            input: Payload::null(),
            parent: None,
            labels: BTreeMap::new(),
            cause: Cause::Started,
        };
        let event = Event { position: 0, at: Utc::now(), kind };
        let summary = Summary::begin(&event).unwrap();
        let mut commit = Commit::of(id(PROJECT), Vec::new());
        commit.creations.push(Creation { run: id(PROJECT), event, summary });
        shop.0.commit(commit).await.unwrap();
        shop
    }

    /// The project takes a message, publishes this, and waits for the next message or a timer.
    async fn acts(
        &self,
        message: Option<u64>,
        view: &ProjectSummary,
        timer: Option<DateTime<Utc>>,
    ) {
        let end = self.0.read(&id(PROJECT), 0).await.unwrap().len() as u64;
        let mut summary = self.0.summary(&id(PROJECT)).await.unwrap().unwrap();
        let event = Event {
            position: end,
            at: Utc::now(),
            kind: EventKind::MessageAwaited { command: 1, deadline: timer },
        };
        summary.apply(&event);
        let published = vec![(ProjectSummary::KEY.to_owned(), Some(Payload::of(view)))];
        let consumed = message.into_iter().collect();
        let commit = Commit {
            summary: Some(summary),
            published,
            consumed,
            ..Commit::of(id(PROJECT), vec![event])
        };
        self.0.commit(commit).await.unwrap();
    }

    async fn tell(&self, sync: &str) -> u64 {
        let body = MessageBody::signal(signal::SYNC, Payload::of(&SyncRequest::of_all(sync)));
        let delivery = Delivery { to: id(PROJECT), at: Utc::now(), body };
        self.0.deliver(delivery).await.unwrap().unwrap().seq
    }

    async fn is_settled(&self, watched: &mut Watched) -> bool {
        let owner = Owner { is_running: true, served: vec![id(PROJECT)], ..Owner::default() };
        let document = of_project(&self.0, &id(PROJECT), &owner, None).await.unwrap();
        is_settled(watched, &document)
    }
}

/// Sync ids are created before they are sent, so they arrive in any order and do not show which
/// message was read.
#[tokio::test]
async fn a_project_has_settled_when_it_has_read_all_that_it_was_sent() {
    let shop = Shop::begin().await;
    let mut watched = Watched::new(id(PROJECT));
    shop.acts(None, &ProjectSummary { synced: "2".into(), ..view() }, None).await;
    assert!(shop.is_settled(&mut watched).await);
    let earlier = shop.tell("1").await;
    assert!(!shop.is_settled(&mut watched).await, "the sync of another run is in its mailbox");
    shop.acts(
        Some(earlier),
        &ProjectSummary { synced: "1".into(), phase: Phase::Working, ..view() },
        None,
    )
    .await;
    assert!(!shop.is_settled(&mut watched).await, "it works");
    shop.acts(None, &ProjectSummary { synced: "1".into(), ..view() }, None).await;
    assert!(shop.is_settled(&mut watched).await);
}

#[tokio::test]
async fn an_agent_that_cannot_work_is_waited_for_as_long_as_the_machine() {
    let shop = Shop::begin().await;
    let now = Utc::now();
    let limit = TimeDelta::from_std(machine_wait()).unwrap();
    let paused = |since, needs_person| {
        let paused = SessionsPaused {
            until: Some(now),
            reason: "not logged in".into(),
            since,
            needs_person,
        };
        ProjectSummary { phase: Phase::Working, paused: Some(paused), ..view() }
    };
    let watched_since = |begun| Watched { begun, ..Watched::new(id(PROJECT)) };
    let long_ago = now - limit * 2;
    shop.acts(None, &paused(long_ago, true), Some(now)).await;
    assert!(shop.is_settled(&mut watched_since(now - limit)).await);
    assert!(!shop.is_settled(&mut watched_since(now)).await, "this run waits since now only");
    shop.acts(None, &paused(now, true), Some(now)).await;
    assert!(!shop.is_settled(&mut watched_since(long_ago)).await);
    shop.acts(None, &paused(long_ago, false), Some(now)).await;
    assert!(!shop.is_settled(&mut watched_since(long_ago)).await, "an outage ends by itself");
}
