//! Performing activities: attempts, retries, limits, and what to do when nobody knows how one ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use crate::activity::{Attempt, Call, ErasedHandler, Probe};
use crate::context::Stop;
use crate::event::{EventKind, MessageBody};
use crate::failure::{Failure, FailureKind};
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::policy::Effect;
use crate::store::StoreError;
use crate::summary::Status;
use crate::verb::{CallState, Calls, Verb};

use super::attempt;
use super::life::{Life, Retirement};
use super::pools::{Place, Pools};

/// What a piece of work on one call came to.
enum Piece {
    /// An attempt may begin: a slot of the pool is free.
    Entered(Option<Place>),
    /// It was called back while it waited for a slot.
    CalledBack,
    /// An attempt ended.
    Ended(Result<Payload, Failure>),
    /// The world was asked.
    Probed(Probe<Payload>),
}

/// The activities of one command, under way.
struct Round<'a> {
    number: u32,
    calls: &'a Calls,
    states: Vec<CallState>,
    /// Set while something runs for the call.
    cancels: Vec<Option<watch::Sender<bool>>>,
    /// The calls that wait for a slot: nothing of theirs has begun.
    entering: BTreeSet<usize>,
    pieces: FuturesUnordered<BoxFuture<'static, (usize, Piece)>>,
    cancelling: bool,
}

impl Life {
    /// Performs the calls of a command from where their record ends.
    pub(super) async fn perform_calls(
        &mut self,
        number: u32,
        calls: &Calls,
        states: Option<Vec<CallState>>,
    ) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        self.write_all().await?;
        let count = calls.0.len();
        let mut states = states.unwrap_or_else(|| vec![CallState::default(); count]);
        // A life that begins tries at once what the machine could not do for the last one: it may be mended.
        for state in states.iter_mut().filter(|state| state.machine_failures > 0) {
            state.retry_at = None;
        }
        let mut round = Round {
            number,
            calls,
            states,
            cancels: vec![None; count],
            entering: BTreeSet::new(),
            pieces: FuturesUnordered::new(),
            cancelling: false,
        };
        loop {
            if self.shared.is_stopping() {
                round.cancel();
                while round.pieces.next().await.is_some() {}
                self.retire(Retirement::Stopping).await;
            }
            self.inbox.look();
            self.read_mail().await?;
            self.answer_orders(&mut round).await?;
            if let Some(results) = round.results() {
                return Ok(results);
            }
            if round.pieces.is_empty() {
                // Before anything begins: a paused run starts no attempt, not even one that is due again. What became of
                // an unknown effect can be said meanwhile.
                self.take_orders(number, calls).await?;
                if self.is_paused() {
                    self.wait(None).await;
                    continue;
                }
            }
            let is_to_pause = self.inbox.is_to_pause();
            if is_to_pause {
                round.call_back();
            }
            self.begin_due(&mut round, is_to_pause)?;
            let due = if is_to_pause { None } else { round.next_due() };
            if round.pieces.is_empty() {
                self.wait(due).await;
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let inbox = Arc::clone(&self.inbox);
            tokio::select! {
                biased;
                Some((index, piece)) = round.pieces.next() => self.take_piece(&mut round, index, piece).await?,
                Some((slot, details)) = self.progress.recv() => self.record_progress(number, slot, details).await?,
                () = inbox.arrived() => {}
                () = shared.stopped() => {}
                () = sleep_until(&*shared.clock, due) => {}
            }
        }
    }

    async fn record_progress(&mut self, number: u32, slot: Slot, details: Payload) -> Result<(), Stop> {
        if slot.command != number {
            // An attempt of a command that has ended: nobody will ask for it.
            return Ok(());
        }
        self.commit(vec![EventKind::ActivityProgressed { slot, details }], |_| ()).await
    }

    /// Starts what can start now. While a pause waits for what runs, nothing else begins; the world can be asked.
    fn begin_due(&mut self, round: &mut Round<'_>, is_to_pause: bool) -> Result<(), Stop> {
        for index in 0..round.states.len() {
            let state = &round.states[index];
            let idle = round.cancels[index].is_none() && state.result.is_none();
            let is_held = is_to_pause && !state.unknown;
            let must_wait = || is_held || state.retry_at.is_some_and(|at| at > self.shared.clock.now());
            if !idle || (state.unknown && self.parked) || round.cancelling || must_wait() {
                continue;
            }
            self.begin_piece(round, index)?;
        }
        Ok(())
    }

    fn begin_piece(&mut self, round: &mut Round<'_>, index: usize) -> Result<(), Stop> {
        let call = round.call(index);
        let Some(handler) = self.shared.handlers.find(call.name).cloned() else {
            let missing = StoreError::Unusable(format!("no handler for the activity `{}` in this program", call.name));
            return Err(self.broken_by(missing.into()));
        };
        let (cancel, listen) = watch::channel(false);
        let input = call.input.clone();
        let (pools, pool, run) = (self.shared.pools.clone(), call.policy.pool, self.run.clone());
        let piece: BoxFuture<'static, (usize, Piece)> = if round.states[index].unknown {
            let attempt = self.attempt(round, index, round.states[index].attempts.max(1), listen);
            Box::pin(async move { (index, Piece::Probed(attempt::probe(handler, input, attempt).await)) })
        } else if pool.is_some() || call.policy.effect == Effect::Guarded {
            round.entering.insert(index);
            Box::pin(async move { (index, enter(&pools, pool, &run, listen).await) })
        } else {
            let attempt = self.attempt(round, index, round.states[index].attempts + 1, listen);
            to_its_end(index, call, handler, attempt, cancel.clone(), None)
        };
        round.cancels[index] = Some(cancel);
        round.pieces.push(piece);
        Ok(())
    }

    fn attempt(&self, round: &Round<'_>, index: usize, number: u32, cancel: watch::Receiver<bool>) -> Attempt {
        Attempt {
            run: self.run.clone(),
            slot: round.slot(index),
            number,
            progress: round.states[index].progress.clone(),
            cancel,
            clock: Arc::clone(&self.shared.clock),
            alive: Arc::default(),
            records: self.records.clone(),
        }
    }

    async fn take_piece(&mut self, round: &mut Round<'_>, index: usize, piece: Piece) -> Result<(), Stop> {
        if self.shared.is_stopping() {
            // What ended because the engine stops did not fail; whatever it did, the next life finds out.
            return Ok(());
        }
        match piece {
            Piece::Entered(place) if !round.is_called_back(index) && !self.inbox.is_to_pause() => {
                round.entering.remove(&index);
                self.start(round, index, place).await
            }
            Piece::Entered(_) | Piece::CalledBack => {
                round.entering.remove(&index);
                round.cancels[index] = None;
                Ok(())
            }
            Piece::Ended(result) => {
                round.cancels[index] = None;
                let attempt = round.states[index].attempts.max(1);
                let attempt = match round.call(index).policy.effect {
                    Effect::Guarded => attempt,
                    Effect::Idempotent => round.states[index].attempts + 1,
                };
                self.record_result(round, index, attempt, result).await
            }
            Piece::Probed(probe) => {
                round.cancels[index] = None;
                let attempt = round.states[index].attempts;
                match probe {
                    Probe::Landed(output) => self.record_result(round, index, attempt, Ok(output)).await,
                    Probe::NotLanded => {
                        round.states[index].unknown = false;
                        Ok(())
                    }
                    Probe::Unknown(reason) => self.park(round, index, reason).await,
                    // Recorded as the attempt that could not begin.
                    Probe::Machine(reason) => {
                        self.record_result(round, index, attempt + 1, Err(Failure::machine(reason))).await
                    }
                }
            }
        }
    }

    /// Begins an attempt; the start of a guarded one is recorded first.
    async fn start(&mut self, round: &mut Round<'_>, index: usize, place: Option<Place>) -> Result<(), Stop> {
        let call = round.call(index);
        let number = round.states[index].attempts + 1;
        if call.policy.effect == Effect::Guarded {
            let (slot, name, input) = (round.slot(index), call.name.into(), call.input.clone());
            let kind = EventKind::ActivityStarted { slot, name, input, attempt: number };
            self.commit(vec![kind], |_| ()).await?;
            round.states[index].attempts = number;
            round.states[index].retry_at = None;
        }
        let Some(cancel) = round.cancels[index].clone() else { return Ok(()) };
        let attempt = self.attempt(round, index, number, cancel.subscribe());
        let Some(handler) = self.shared.handlers.find(call.name).cloned() else { return Ok(()) };
        round.pieces.push(to_its_end(index, call, handler, attempt, cancel, place));
        Ok(())
    }

    async fn record_result(
        &mut self,
        round: &mut Round<'_>,
        index: usize,
        attempt: u32,
        result: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        let (call, slot) = (round.call(index), round.slot(index));
        let (name, input) = (call.name.to_owned(), call.input.clone());
        let failure = match result {
            Ok(output) => {
                let kind = EventKind::ActivityCompleted { slot, name, input, attempt, output: output.clone() };
                self.commit(vec![kind], |_| ()).await?;
                round.states[index].result = Some(Ok(output));
                return Ok(());
            }
            Err(failure) => failure,
        };
        if round.cancelling && failure.kind == FailureKind::Cancelled {
            round.states[index].result = Some(Err(failure));
            return Ok(());
        }
        let retry_at = call.policy.retry_at(&failure, &round.states[index], self.shared.clock.now());
        tracing::debug!(run = %self.run, activity = name, attempt, ?retry_at, %failure, "attempt failed");
        let kind = EventKind::ActivityFailed { slot, name, input, attempt, failure: failure.clone(), retry_at };
        self.commit(vec![kind], |_| ()).await?;
        // A machine that failed in the middle does not know either: the world is asked before the next attempt.
        let unknown = call.policy.effect == Effect::Guarded && failure.kind == FailureKind::Machine;
        round.states[index].record_failure(attempt, failure, retry_at);
        round.states[index].unknown |= unknown;
        Ok(())
    }

    /// Stops here until somebody says what became of the effect.
    async fn park(&mut self, round: &mut Round<'_>, index: usize, reason: String) -> Result<(), Stop> {
        self.parked = true;
        if matches!(self.summary.status, Status::Parked(_)) {
            return Ok(());
        }
        let name = round.call(index).name;
        let reason = format!(
            "nobody can tell whether `{name}` (attempt {}) happened: {reason}; find out, then say \
             `longhaul reconcile {} --landed` or `--not-landed`",
            round.states[index].attempts, self.run
        );
        self.commit(vec![EventKind::RunParked { slot: round.slot(index), reason }], |_| ()).await
    }

    /// Cancels, or settles an unknown outcome, as the mailbox says. A pause waits for the end of what runs.
    async fn answer_orders(&mut self, round: &mut Round<'_>) -> Result<(), Stop> {
        if let Some(message) = self.inbox.first_reconcile()
            && let MessageBody::Reconcile { landed, output, request } = message.body
            && let Some(index) = round.states.iter().position(|state| state.unknown && state.result.is_none())
        {
            let (call, slot) = (round.call(index), round.slot(index));
            let mut kinds = vec![EventKind::RunReconciled { slot, landed, request }];
            if landed {
                let (name, input) = (call.name.to_owned(), call.input.clone());
                let attempt = round.states[index].attempts;
                round.states[index].result = Some(Ok(output.clone()));
                kinds.push(EventKind::ActivityCompleted { slot, name, input, attempt, output });
            }
            self.commit_taking(message.seq, kinds).await?;
            round.states[index].unknown = false;
            self.parked = false;
        }
        if self.inbox.first_terminate().is_some() {
            round.cancel();
            // What does not end in this time is dropped.
            let ended = async { while round.pieces.next().await.is_some() {} };
            let _ = tokio::time::timeout(attempt::GRACE, ended).await;
            self.obey_terminate().await?;
        }
        if !round.cancelling && self.inbox.first_cancel().is_some() {
            round.cancel();
        }
        if round.cancelling && round.cancels.iter().all(Option::is_none) {
            return self.deliver_cancel(round).await;
        }
        Ok(())
    }

    /// Ends the command as cancelled, unless everything came to its end all the same.
    async fn deliver_cancel(&mut self, round: &mut Round<'_>) -> Result<(), Stop> {
        if round.states.iter().all(|state| matches!(state.result, Some(Ok(_)))) {
            return Ok(());
        }
        let Some(message) = self.inbox.first_cancel() else { return Ok(()) };
        let MessageBody::Cancel(request) = message.body else { return Ok(()) };
        let kind = EventKind::CancelDelivered { command: round.number, digest: round.calls.digest(), request };
        self.commit_taking(message.seq, vec![kind]).await?;
        Err(Stop::Cancelled)
    }
}

impl<'a> Round<'a> {
    fn slot(&self, index: usize) -> Slot {
        let number = |count| u16::try_from(count).expect("the port admits no more calls than a slot can number");
        Slot { command: self.number, call: number(index), calls: number(self.states.len()) }
    }

    fn call(&self, index: usize) -> &'a Call {
        &self.calls.0[index]
    }

    fn cancel(&mut self) {
        self.cancelling = true;
        for cancel in self.cancels.iter().flatten() {
            cancel.send_replace(true);
        }
    }

    /// Has what waits for a slot come back: nothing of it has begun.
    fn call_back(&self) {
        for cancel in self.entering.iter().filter_map(|index| self.cancels[*index].as_ref()) {
            cancel.send_replace(true);
        }
    }

    fn is_called_back(&self, index: usize) -> bool {
        self.cancelling || self.cancels[index].as_ref().is_some_and(|cancel| *cancel.borrow())
    }

    fn results(&self) -> Option<Vec<Result<Payload, Failure>>> {
        if self.cancelling && self.cancels.iter().any(Option::is_some) {
            return None;
        }
        self.states.iter().map(|state| state.result.clone()).collect()
    }

    /// When the next attempt is due that waits for its time.
    fn next_due(&self) -> Option<DateTime<Utc>> {
        let waiting =
            self.states.iter().zip(&self.cancels).filter(|(state, cancel)| state.result.is_none() && cancel.is_none());
        waiting.filter_map(|(state, _)| state.retry_at).min()
    }
}

/// An attempt, which keeps its place until it has ended.
fn to_its_end(
    index: usize,
    call: &Call,
    handler: Arc<dyn ErasedHandler>,
    attempt: Attempt,
    cancel: watch::Sender<bool>,
    place: Option<Place>,
) -> BoxFuture<'static, (usize, Piece)> {
    let (input, policy) = (call.input.clone(), call.policy.clone());
    Box::pin(async move {
        let _place = place;
        (index, Piece::Ended(attempt::run(handler, input, attempt, policy, cancel).await))
    })
}

/// Waits for a place, unless it is called back first.
async fn enter(pools: &Pools, pool: Option<&str>, run: &RunId, mut cancel: watch::Receiver<bool>) -> Piece {
    tokio::select! {
        biased;
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Piece::CalledBack,
        place = pools.enter(pool, run) => Piece::Entered(place),
    }
}

async fn sleep_until(clock: &dyn crate::clock::Clock, until: Option<DateTime<Utc>>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => std::future::pending().await,
    }
}
