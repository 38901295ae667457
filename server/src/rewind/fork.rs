//! Forks: a new run with a prefix of the history of another run, and the work tree of that point.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Utc;
use longhaul_activities::git::RewindTarget;
use longhaul_engine::store::{Commit, Delivery};
use longhaul_engine::{
    Diverged, Event, EventKind, EventLog, MessageBody, Payload, Position, RunId, StoreError,
    Summary, verify,
};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::feature::{
    COPIED, FORKED_FROM, FeatureInput, Note, Prefix, before_last_receive, checkpoints, prefix,
};
use longhaul_workflows::project::Forked as ForkNotice;
use longhaul_workflows::projection::{ProjectView, RunView, SessionState};

use crate::advice;
use crate::pruned;
use crate::run_kind::RunKind;

use super::{Fork, ForkPoint, Forked, edit};
use crate::request::RequestError;
use crate::service::Service;

/// The origin of a fork, with the runs of its feature.
pub(crate) struct ForkOrigin {
    pub(crate) run: RunId,
    pub(crate) segment: Vec<Event>,
    pub(crate) input: FeatureInput,
    pub(crate) last: LastRun,
    pub(crate) next: NextRun,
}

/// The last run of a feature, with its state.
pub(crate) struct LastRun {
    pub(crate) run: RunId,
    pub(crate) summary: Summary,
}

/// The run that a fork begins.
#[derive(Clone)]
pub(crate) struct NextRun {
    pub(crate) run: RunId,
    pub(crate) number: u32,
}

/// The step from which a fork continues.
struct ForkStep {
    position: u64,
    /// Its commit, if the history does not contain it.
    commit: Option<String>,
}

impl Service {
    pub(crate) async fn fork(&self, fork: Fork) -> Result<Forked, RequestError> {
        let origin = self.origin(&fork.run).await?;
        let LastRun { run: last, summary } = &origin.last;
        if !summary.status.is_terminal() {
            return Err(RequestError::Held { reason: self.under_way(last, summary).await? });
        }
        // A project that is begun again ends the runs below it.
        let project = RunId::new(&*origin.input.project.id).map_err(RequestError::refused)?;
        self.is_open(&project).await?;
        let ForkStep { position: requested, commit: kept } =
            self.step(&origin, fork.from).await.map_err(RequestError::refused)?;
        if let ForkPoint::Position(_) = fork.from {
            check_step(&origin, requested).map_err(RequestError::refused)?;
        }
        let last = if fork.note.is_some() {
            before_last_receive(&origin.segment, requested)
        } else {
            requested
        };
        let mut prefix = prefix(&origin.segment, last);
        prefix.commit = kept.or(prefix.commit);
        with_settings(&origin, &mut prefix, &fork)?;
        let invalidates = self.passed_dependents(&origin).await?;
        if fork.dry_run {
            return Ok(Forked {
                run: origin.next.run,
                origin: origin.run,
                requested,
                position: prefix.position,
                commit: prefix.commit,
                invalidates,
            });
        }
        let rewinding = self.rewinding.lock().await;
        self.git.rewind_feature(&rewind_target(&origin, prefix.commit.clone())).await?;
        let run = origin.next.run.clone();
        let commit = prefix.commit.clone();
        let position = prefix.position;
        let committed = self.commit_fork(new_run(&origin, prefix, &fork)).await;
        if matches!(committed, Ok(()) | Err(StoreError::Conflict { .. }))
            && let Err(failure) = self.git.settle_rewind(&origin.input.project, &run, true).await
        {
            tracing::warn!("{failure}");
        }
        drop(rewinding);
        match committed {
            Err(StoreError::Conflict { .. }) => {
                return Err(RequestError::held(format!(
                    "run {run} has just started: repeat the command"
                )));
            }
            other => other?,
        }
        Ok(Forked { run, origin: origin.run, requested, position, commit, invalidates })
    }

    /// The step, or why it does not exist.
    async fn step(&self, origin: &ForkOrigin, from: ForkPoint) -> Result<ForkStep, String> {
        let ForkPoint::Checkpoint(number) = from else {
            return Ok(ForkStep { position: position(origin, from)?, commit: None });
        };
        let run = &origin.run;
        let kept = self
            .git
            .kept_checkpoints(&origin.input.project, run)
            .await
            .map_err(|failure| failure.message)?;
        let found = kept.into_iter().find(|kept| kept.number == number);
        let kept = found.ok_or_else(|| {
            let lists = advice::on("checkpoints", run);
            format!("{run} has no checkpoint {number}; {lists} lists them")
        })?;
        Ok(ForkStep { position: kept.position, commit: Some(kept.commit) })
    }

    /// The passed features that depend on the feature, also indirectly.
    async fn passed_dependents(&self, origin: &ForkOrigin) -> Result<Vec<String>, StoreError> {
        let Ok(project) = RunId::new(origin.input.project.id.clone()) else {
            return Ok(Vec::new());
        };
        let view = ProjectView::of(&self.store.published(&project).await?);
        let mut below = BTreeSet::from([&origin.input.feature.id]);
        loop {
            let count = below.len();
            let more = view
                .backlog
                .iter()
                .filter(|one| one.depends_on.iter().any(|id| below.contains(id)));
            let more: Vec<_> = more.map(|feature| &feature.id).collect();
            below.extend(more);
            if below.len() == count {
                break;
            }
        }
        below.remove(&origin.input.feature.id);
        let passed = |id: &&FeatureId| view.feature(id).is_some_and(|known| known.passes);
        Ok(below.into_iter().filter(passed).map(ToString::to_string).collect())
    }

    async fn commit_fork(&self, commit: Commit) -> Result<(), StoreError> {
        match &self.engine {
            Some(engine) => engine.commit_new_run(commit).await,
            None => self.log.commit(commit).await.map(drop),
        }
    }

    /// The run and its feature.
    pub(crate) async fn origin(&self, run: &RunId) -> Result<ForkOrigin, RequestError> {
        let run = run.clone();
        let summary = self.existing(&run).await?;
        if RunKind::of(&summary) != RunKind::Feature {
            return Err(RequestError::refused(format!(
                "{run} is a {}, and no run of a feature",
                RunKind::of(&summary)
            )));
        }
        if let Some(at) = summary.pruned_at() {
            return Err(RequestError::refused(pruned::refusal(&run, at)));
        }
        let segment = self.store.read(&run, summary.origin).await?;
        let Some(EventKind::RunStarted { input, .. }) = segment.first().map(|event| &event.kind)
        else {
            return Err(damaged(&run, "a segment must begin with RunStarted").into());
        };
        let input: FeatureInput =
            input.read().map_err(|error| damaged(&run, &error.to_string()))?;
        let feature = format!("{}/{}", input.project.id, input.feature.id);
        let mut runs = self.numbered(&feature).await?;
        let Some((number, summary)) = runs.pop_last() else {
            return Err(RequestError::UnknownRun { run });
        };
        let id = |number: u32| {
            RunId::new(format!("{feature}/{number}"))
                .map_err(|error| damaged(&run, &error.to_string()))
        };
        let last = LastRun { run: id(number)?, summary };
        let next = NextRun { run: id(number + 1)?, number: number + 1 };
        Ok(ForkOrigin { run, segment, input, last, next })
    }

    /// The runs of a feature by number.
    async fn numbered(&self, feature: &str) -> Result<BTreeMap<u32, Summary>, StoreError> {
        let prefix = format!("{feature}/");
        let runs = self.store.runs(&prefix).await?.into_iter();
        let number = |run: &RunId| run.as_str().strip_prefix(&prefix)?.parse().ok();
        Ok(runs.filter_map(|(run, summary)| Some((number(&run)?, summary))).collect())
    }

    /// Why the run cannot be changed now.
    async fn under_way(&self, run: &RunId, summary: &Summary) -> Result<String, StoreError> {
        let is_cancelled = self
            .store
            .mailbox(run)
            .await?
            .iter()
            .any(|message| matches!(message.body, MessageBody::Cancel(_)));
        let what = if is_cancelled {
            "is cancelled and ends as soon as its project is run: repeat the command then"
                .to_owned()
        } else {
            format!("is {}: end it first with {}", summary.status.name(), advice::on("cancel", run))
        };
        Ok(format!("run {run} {what}"))
    }
}

fn damaged(run: &RunId, reason: &str) -> StoreError {
    StoreError::Damaged { record: format!("run {run}"), reason: reason.to_owned() }
}

/// The position of a step, or why it does not exist.
fn position(origin: &ForkOrigin, from: ForkPoint) -> Result<u64, String> {
    let first = &origin.segment[0];
    let last = &origin.segment[origin.segment.len() - 1];
    match from {
        ForkPoint::Start | ForkPoint::Checkpoint(_) => Ok(first.position),
        ForkPoint::Position(position) if position > last.position => {
            Err(format!("the history of {} ends at position {}", origin.run, last.position))
        }
        ForkPoint::Position(position) => Ok(position.max(first.position)),
        ForkPoint::Last => {
            let last = sealed(&origin.segment).last();
            last.ok_or_else(|| {
                format!("{} has no step with a commit; use --from start", origin.run)
            })
        }
        ForkPoint::BeforeFailure => before_failure(origin),
        ForkPoint::Session(number) => {
            let sealed = checkpoints(&origin.segment);
            let found = sealed.iter().find(|checkpoint| checkpoint.session == Some(number));
            found.map(|checkpoint| checkpoint.position).ok_or_else(|| {
                let run = &origin.run;
                let lists = advice::on("checkpoints", run);
                format!("{run} has no session {number} that was sealed; {lists} lists its steps")
            })
        }
    }
}

/// The positions of the steps with a commit from which a fork can continue.
fn sealed(segment: &[Event]) -> impl Iterator<Item = Position> {
    let steps = checkpoints(segment).into_iter().filter(|step| !step.is_landing());
    steps
        .map(|step| step.position)
        .filter(|position| prefix(segment, *position).position == *position)
        .collect::<Vec<_>>()
        .into_iter()
}

/// The last step before the session that failed, or whose work failed its checks.
fn before_failure(origin: &ForkOrigin) -> Result<Position, String> {
    let view = RunView::of(&origin.segment);
    let check = view.failed_check().map(|check| check.position);
    let mut failed = view.sessions.iter().filter(|session| session.state == SessionState::Failed);
    let session = failed.next_back().map(|session| session.record.position + 1);
    let failure = check.max(session);
    let failure =
        failure.ok_or_else(|| format!("{} has no failed check or session", origin.run))?;
    let sessions = view.sessions.iter().map(|session| session.record.position);
    let begun = sessions.rev().find(|position| *position < failure).unwrap_or(failure);
    let before = sealed(&origin.segment).filter(|position| *position < begun).last();
    Ok(before.unwrap_or(origin.segment[0].position))
}

/// Checks that a fork can start after this event; the error names the nearest valid positions.
fn check_step(origin: &ForkOrigin, requested: Position) -> Result<(), String> {
    let segment = &origin.segment;
    let before = prefix(segment, requested).position;
    if before == requested {
        return Ok(());
    }
    let mut later =
        segment.iter().map(|event| event.position).filter(|position| *position > requested);
    let nearest = match later.find(|position| prefix(segment, *position).position == *position) {
        Some(after) => format!("the nearest are {before} and {after}"),
        None => format!("the last is {before}"),
    };
    let run = &origin.run;
    let has_landed =
        checkpoints(segment).iter().any(|step| step.is_landing() && step.position <= requested);
    let back = format!(
        "; {} goes back to where it landed",
        advice::command([
            "rollback",
            origin.input.project.root.as_str(),
            "--to",
            origin.input.feature.id.as_str(),
        ])
    );
    let back = if has_landed { back } else { String::new() };
    Err(format!(
        "{run} cannot be forked after position {requested}: {nearest}; {} lists its steps{back}",
        advice::on("checkpoints", run)
    ))
}

/// Applies the edited brief, if the prefix of the history allows it.
fn with_settings(
    origin: &ForkOrigin,
    prefix: &mut Prefix,
    fork: &Fork,
) -> Result<(), RequestError> {
    if let Some(diverged) = differs(&origin.next.run, &prefix.events)? {
        let reason = format!("this version of Longhaul cannot continue {}: {diverged}", origin.run);
        return Err(RequestError::Diverged { reason });
    }
    if fork.set.is_empty() {
        return Ok(());
    }
    let edited = edit::edited(&origin.input, &fork.set).map_err(RequestError::refused)?;
    if let Some(EventKind::RunStarted { input, .. }) =
        prefix.events.first_mut().map(|event| &mut event.kind)
    {
        *input = Payload::of(&edited);
    }
    if let Some(diverged) = differs(&origin.next.run, &prefix.events)? {
        let keys: Vec<&str> = fork.set.iter().map(|(key, _)| key.as_str()).collect();
        let is = if keys.len() == 1 { "was" } else { "were" };
        let step = prefix.position;
        return Err(RequestError::refused(format!(
            "{} {is} used before position {step} already, so it cannot be another one there \
             ({diverged}); fork from an earlier step, or from `start`",
            keys.join(", ")
        )));
    }
    Ok(())
}

fn differs(run: &RunId, events: &[Event]) -> Result<Option<Diverged>, StoreError> {
    verify(&crate::open::workflows(), run, events)
}

fn rewind_target(origin: &ForkOrigin, commit: Option<String>) -> RewindTarget {
    RewindTarget {
        project: origin.input.project.clone(),
        feature: origin.input.feature.id.clone(),
        last: origin.last.run.clone(),
        next: origin.next.run.clone(),
        commit,
    }
}

/// The new run with its history, the message that registers it at its project, and its first note.
fn new_run(origin: &ForkOrigin, prefix: Prefix, fork: &Fork) -> Commit {
    let now = Utc::now();
    let NextRun { run, number } = origin.next.clone();
    let Prefix { mut events, position, sessions, .. } = prefix;
    let copied = events.len().to_string();
    events[0].at = now;
    if let EventKind::RunStarted { labels, .. } = &mut events[0].kind {
        labels.insert(FORKED_FROM.into(), format!("{}@{position}", origin.run));
        labels.insert(COPIED.into(), copied);
    }
    let mut summary = Summary::begin(&events[0]).expect("a segment begins with RunStarted");
    let mut published = BTreeMap::new();
    for event in &events[1..] {
        summary.apply(event);
        if let EventKind::StatusPublished { key, value, .. } = &event.kind {
            published.insert(key.clone(), (*value != Payload::null()).then(|| value.clone()));
        }
    }
    let deliver = |to: RunId, body: MessageBody| Delivery { to, at: now, body };
    let feature = origin.input.feature.id.clone();
    let forked = ForkNotice { feature, run: number, sessions, request: fork.request.clone() };
    let project =
        RunId::new(origin.input.project.id.clone()).expect("the project has a run of this id");
    let mut commit = Commit::of(run.clone(), events);
    commit.summary = Some(summary);
    commit.published = published.into_iter().collect();
    let notice = MessageBody::signal(ForkNotice::SIGNAL, Payload::of(&forked));
    commit.deliveries.push(deliver(project, notice));
    if let Some(text) = &fork.note {
        let note = Payload::of(&Note(text.clone()));
        let note = MessageBody::signal_by(Note::SIGNAL, note, fork.request.clone());
        commit.deliveries.push(deliver(run, note));
    }
    commit
}
