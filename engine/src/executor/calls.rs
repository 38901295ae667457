//! Performing activities: attempts, retries, limits, and unknown outcomes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use crate::activity::{Attempt, Call, ErasedHandler, Probe};
use crate::command::{CallState, Calls, Command};
use crate::context::Stop;
use crate::event::{EventKind, MessageBody, UnknownEffect};
use crate::failure::{Failure, FailureKind};
use crate::fault::EngineFault;
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::policy::{Effect, Policy};
use crate::summary::Status;

use super::activation::{Activation, Retirement};
use super::attempt::{self, LocalWorker};
use super::pools::{PoolSlot, Pools};

/// The result of one step of work on a call.
enum CallStep {
    /// A slot of each pool is free: an attempt may begin.
    Entered(Slots),
    /// It was preempted while it waited for a slot.
    Preempted,
    /// An attempt ended.
    Ended(Result<Payload, Failure>),
    /// A probe ended.
    Probed(Probe<Payload>),
}

/// The slots of a call: that of the outer pool, and that of its own.
type Slots = [Option<PoolSlot>; 2];

/// The activities of one command, in progress.
struct CallBatch<'a> {
    number: u32,
    calls: &'a Calls,
    states: Vec<CallState>,
    /// Set while an attempt or a probe of the call runs.
    cancels: Vec<Option<watch::Sender<bool>>>,
    /// The calls that wait for a slot: none of them has begun.
    entering: BTreeSet<usize>,
    pending: FuturesUnordered<BoxFuture<'static, (usize, CallStep)>>,
    cancelling: bool,
}

impl Activation {
    /// Performs the calls of a command from the end of their record.
    pub(super) async fn perform_calls(
        &mut self,
        number: u32,
        calls: &Calls,
        states: Option<Vec<CallState>>,
    ) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        // The start of a guarded call is a commit of its own, which takes the unwritten events
        // along.
        let pools = &self.shared.pools;
        let is_queued = |call: &Call| {
            let Policy { pool, within, .. } = &call.policy;
            pools.has(pool.as_deref()) || pools.has(within.as_deref())
        };
        let begins_with_commit =
            |call: &Call| call.policy.effect == Effect::Guarded && !is_queued(call);
        if !calls.0.iter().all(begins_with_commit) {
            self.write_all().await?;
        }
        let count = calls.0.len();
        let mut states = states.unwrap_or_else(|| vec![CallState::default(); count]);
        // A new activation retries at once after a machine failure: the cause may be gone.
        for state in states.iter_mut().filter(|state| state.failures.of_machine > 0) {
            state.retry_at = None;
        }
        let mut batch = CallBatch {
            number,
            calls,
            states,
            cancels: vec![None; count],
            entering: BTreeSet::new(),
            pending: FuturesUnordered::new(),
            cancelling: false,
        };
        loop {
            if self.shared.is_stopping() {
                batch.end().await;
                self.retire(Retirement::Stopping).await;
            }
            self.inbox.look();
            self.read_mail().await?;
            self.apply_control_to_calls(&mut batch).await?;
            if let Some(results) = batch.results() {
                return Ok(results);
            }
            if batch.pending.is_empty() {
                // Checked before anything begins: a paused run starts no attempt, not even a due
                // retry. Unknown outcomes can be settled during the pause.
                self.apply_control_messages(number, calls).await?;
                if self.is_paused() {
                    self.write_all().await?;
                    self.wait(None).await;
                    continue;
                }
            }
            let is_to_pause = self.inbox.is_to_pause();
            if is_to_pause {
                batch.preempt();
            }
            self.begin_due(&mut batch, is_to_pause)?;
            let due = if is_to_pause { None } else { batch.next_due() };
            if batch.pending.is_empty() {
                self.write_all().await?;
                self.wait(due).await;
                continue;
            }
            let shared = Arc::clone(&self.shared);
            let inbox = Arc::clone(&self.inbox);
            tokio::select! {
                biased;
                Some((index, step)) = batch.pending.next() => {
                    self.apply_step(&mut batch, index, step).await?;
                }
                Some((slot, details)) = self.progress.recv() => {
                    self.record_progress(number, slot, details).await?;
                }
                () = inbox.arrived() => {}
                () = shared.stopped() => {}
                () = sleep_until(&*shared.clock, due) => {}
            }
        }
    }

    async fn record_progress(
        &mut self,
        number: u32,
        slot: Slot,
        details: Payload,
    ) -> Result<(), Stop> {
        if slot.command != number {
            // From an attempt of an earlier command.
            return Ok(());
        }
        self.commit(vec![EventKind::ActivityProgressed { slot, details }], |_| ()).await
    }

    /// Starts every call that can start. While a pause waits for running attempts, only probes
    /// begin.
    fn begin_due(&mut self, batch: &mut CallBatch<'_>, is_to_pause: bool) -> Result<(), Stop> {
        for index in 0..batch.states.len() {
            let state = &batch.states[index];
            let idle = batch.cancels[index].is_none() && state.result.is_none();
            let is_held = is_to_pause && !state.unknown;
            let must_wait =
                || is_held || state.retry_at.is_some_and(|at| at > self.shared.clock.now());
            if !idle || (state.unknown && self.parked) || batch.cancelling || must_wait() {
                continue;
            }
            self.begin_step(batch, index)?;
        }
        Ok(())
    }

    fn begin_step(&mut self, batch: &mut CallBatch<'_>, index: usize) -> Result<(), Stop> {
        let call = batch.call(index);
        let handler = self.handler(call)?;
        let (cancel, listen) = watch::channel(false);
        let input = call.input.clone();
        let policy = call.policy.clone();
        let is_queued = policy.pool.is_some() || policy.within.is_some();
        let step: BoxFuture<'static, (usize, CallStep)> = if batch.states[index].unknown {
            let (attempt, _) =
                self.attempt(batch, index, batch.states[index].attempts.max(1), listen);
            Box::pin(async move {
                (index, CallStep::Probed(attempt::probe(handler, input, attempt).await))
            })
        } else if is_queued || policy.effect == Effect::Guarded {
            batch.entering.insert(index);
            let pools = self.shared.pools.clone();
            let run = self.run.clone();
            Box::pin(async move { (index, enter(&pools, &policy, &run, listen).await) })
        } else {
            let attempt = self.attempt(batch, index, batch.states[index].attempts + 1, listen);
            to_its_end(index, call, handler, attempt, cancel.clone(), Slots::default())
        };
        batch.cancels[index] = Some(cancel);
        batch.pending.push(step);
        Ok(())
    }

    fn handler(&mut self, call: &Call) -> Result<Arc<dyn ErasedHandler>, Stop> {
        let handler = self.shared.handlers.find(call.name).cloned();
        handler.ok_or_else(|| {
            self.broken_by(EngineFault::UnknownActivity(call.name.to_owned()).into())
        })
    }

    fn attempt(
        &self,
        batch: &CallBatch<'_>,
        index: usize,
        number: u32,
        cancel: watch::Receiver<bool>,
    ) -> (Attempt, Arc<LocalWorker>) {
        let run = self.run.clone();
        let slot = batch.slot(index);
        let worker = Arc::new(LocalWorker {
            slot,
            cancel,
            clock: Arc::clone(&self.shared.clock),
            alive: AtomicI64::default(),
            progress: self.records.clone(),
        });
        let progress = batch.states[index].progress.clone();
        (Attempt { run, slot, number, last_progress: progress, worker: worker.clone() }, worker)
    }

    async fn apply_step(
        &mut self,
        batch: &mut CallBatch<'_>,
        index: usize,
        step: CallStep,
    ) -> Result<(), Stop> {
        if self.shared.is_stopping() {
            // An attempt that ended because the engine stops did not fail; the next activation
            // probes or repeats it.
            return Ok(());
        }
        match step {
            CallStep::Entered(slots) if !batch.is_preempted(index) && !self.inbox.is_to_pause() => {
                batch.entering.remove(&index);
                self.start(batch, index, slots).await
            }
            CallStep::Entered(_) | CallStep::Preempted => {
                batch.entering.remove(&index);
                batch.cancels[index] = None;
                Ok(())
            }
            CallStep::Ended(result) => {
                batch.cancels[index] = None;
                let attempt = batch.states[index].attempts.max(1);
                let attempt = match batch.call(index).policy.effect {
                    Effect::Guarded => attempt,
                    Effect::Idempotent => batch.states[index].attempts + 1,
                };
                self.record_result(batch, index, attempt, result).await
            }
            CallStep::Probed(probe) => {
                batch.cancels[index] = None;
                let attempt = batch.states[index].attempts;
                match probe {
                    Probe::Happened(output) => {
                        self.record_result(batch, index, attempt, Ok(output)).await
                    }
                    Probe::NotHappened => {
                        batch.states[index].unknown = false;
                        Ok(())
                    }
                    Probe::Unknown(reason) => self.park(batch, index, reason).await,
                    // Recorded for the attempt that could not begin.
                    Probe::Machine(reason) => {
                        self.record_result(batch, index, attempt + 1, Err(Failure::machine(reason)))
                            .await
                    }
                }
            }
        }
    }

    /// Begins an attempt; records the start of a guarded one first.
    async fn start(
        &mut self,
        batch: &mut CallBatch<'_>,
        index: usize,
        slots: Slots,
    ) -> Result<(), Stop> {
        let call = batch.call(index);
        let number = batch.states[index].attempts + 1;
        if call.policy.effect == Effect::Guarded {
            let slot = batch.slot(index);
            let name = call.name.into();
            let input = call.input.clone();
            let kind = EventKind::ActivityStarted { slot, name, input, attempt: number };
            self.commit(vec![kind], |_| ()).await?;
            batch.states[index].attempts = number;
            batch.states[index].retry_at = None;
        }
        let Some(cancel) = batch.cancels[index].clone() else { return Ok(()) };
        let attempt = self.attempt(batch, index, number, cancel.subscribe());
        let handler = self.handler(call)?;
        batch.pending.push(to_its_end(index, call, handler, attempt, cancel, slots));
        Ok(())
    }

    async fn record_result(
        &mut self,
        batch: &mut CallBatch<'_>,
        index: usize,
        attempt: u32,
        result: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        let call = batch.call(index);
        let slot = batch.slot(index);
        let name = call.name.to_owned();
        let input = call.input.clone();
        let failure = match result {
            Ok(output) => {
                let kind = EventKind::ActivityCompleted {
                    slot,
                    name,
                    input,
                    attempt,
                    output: output.clone(),
                };
                self.commit(vec![kind], |_| ()).await?;
                batch.states[index].result = Some(Ok(output));
                return Ok(());
            }
            Err(failure) => failure,
        };
        if batch.cancelling && failure.kind == FailureKind::Cancelled {
            batch.states[index].result = Some(Err(failure));
            return Ok(());
        }
        let retry_at =
            call.policy.retry_at(&failure, batch.states[index].failures, self.shared.clock.now());
        let run = &self.run;
        tracing::debug!(%run, activity = name, attempt, ?retry_at, %failure, "attempt failed");
        let kind = EventKind::ActivityFailed {
            slot,
            name,
            input,
            attempt,
            failure: failure.clone(),
            retry_at,
        };
        self.commit(vec![kind], |_| ()).await?;
        // A machine failure in the middle leaves the outcome unknown: a probe precedes the next
        // attempt.
        let unknown = call.policy.effect == Effect::Guarded && failure.kind == FailureKind::Machine;
        batch.states[index].record_failure(attempt, failure, retry_at);
        batch.states[index].unknown |= unknown;
        Ok(())
    }

    /// Waits until a person settles the outcome.
    async fn park(
        &mut self,
        batch: &mut CallBatch<'_>,
        index: usize,
        reason: String,
    ) -> Result<(), Stop> {
        self.parked = true;
        if matches!(self.summary.status, Status::Parked(_)) {
            return Ok(());
        }
        let activity = batch.call(index).name.to_owned();
        let attempt = batch.states[index].attempts;
        let effect = UnknownEffect { activity, attempt, reason };
        self.commit(vec![EventKind::RunParked { slot: batch.slot(index), effect }], |_| ()).await
    }

    /// Applies cancellations and settled outcomes from the mailbox. A pause waits for the end of
    /// running attempts.
    async fn apply_control_to_calls(&mut self, batch: &mut CallBatch<'_>) -> Result<(), Stop> {
        if let Some(message) = self.inbox.first_reconcile()
            && let MessageBody::Reconcile { happened, output, request } = message.body
            && let Some(index) =
                batch.states.iter().position(|state| state.unknown && state.result.is_none())
        {
            let call = batch.call(index);
            let slot = batch.slot(index);
            let mut kinds = vec![EventKind::RunReconciled { slot, happened, request }];
            if happened {
                let name = call.name.to_owned();
                let input = call.input.clone();
                let attempt = batch.states[index].attempts;
                batch.states[index].result = Some(Ok(output.clone()));
                kinds.push(EventKind::ActivityCompleted { slot, name, input, attempt, output });
            }
            self.commit_taking(message.seq, kinds).await?;
            batch.states[index].unknown = false;
            self.parked = false;
        }
        if self.inbox.first_terminate().is_some() {
            batch.end().await;
            self.terminate_if_requested().await?;
        }
        if !batch.cancelling && self.inbox.first_cancel().is_some() {
            batch.cancel();
        }
        if batch.cancelling && batch.cancels.iter().all(Option::is_none) {
            return self.deliver_cancel(batch).await;
        }
        Ok(())
    }

    /// Ends the command as cancelled, unless all its calls have ended anyway.
    async fn deliver_cancel(&mut self, batch: &mut CallBatch<'_>) -> Result<(), Stop> {
        if batch.states.iter().all(|state| matches!(state.result, Some(Ok(_)))) {
            return Ok(());
        }
        let Some(message) = self.inbox.first_cancel() else { return Ok(()) };
        let MessageBody::Cancel(request) = message.body else { return Ok(()) };
        let kind = EventKind::CancelDelivered {
            command: batch.number,
            digest: batch.calls.digest(),
            request,
        };
        self.commit_taking(message.seq, vec![kind]).await?;
        self.inbox.set_cancelled(true);
        Err(Stop::Cancelled)
    }
}

impl<'a> CallBatch<'a> {
    fn slot(&self, index: usize) -> Slot {
        let number = |count| {
            u16::try_from(count).expect("`call_all` admits no more calls than a slot can number")
        };
        Slot { command: self.number, call: number(index), calls: number(self.states.len()) }
    }

    fn call(&self, index: usize) -> &'a Call {
        &self.calls.0[index]
    }

    /// Cancels the attempts and waits for their end. Those that take too long are dropped.
    async fn end(&mut self) {
        self.cancel();
        let ended = async { while self.pending.next().await.is_some() {} };
        let _ = tokio::time::timeout(attempt::GRACE, ended).await;
        self.pending.clear();
    }

    fn cancel(&mut self) {
        self.cancelling = true;
        for cancel in self.cancels.iter().flatten() {
            cancel.send_replace(true);
        }
    }

    /// Preempts the calls that wait for a slot: none of them has begun.
    fn preempt(&self) {
        for cancel in self.entering.iter().filter_map(|index| self.cancels[*index].as_ref()) {
            cancel.send_replace(true);
        }
    }

    fn is_preempted(&self, index: usize) -> bool {
        self.cancelling || self.cancels[index].as_ref().is_some_and(|cancel| *cancel.borrow())
    }

    fn results(&self) -> Option<Vec<Result<Payload, Failure>>> {
        if self.cancelling && self.cancels.iter().any(Option::is_some) {
            return None;
        }
        self.states.iter().map(|state| state.result.clone()).collect()
    }

    /// The time of the next retry that waits for its delay.
    fn next_due(&self) -> Option<DateTime<Utc>> {
        let waiting = self
            .states
            .iter()
            .zip(&self.cancels)
            .filter(|(state, cancel)| state.result.is_none() && cancel.is_none());
        waiting.filter_map(|(state, _)| state.retry_at).min()
    }
}

/// An attempt, which keeps its slot until it has ended.
fn to_its_end(
    index: usize,
    call: &Call,
    handler: Arc<dyn ErasedHandler>,
    (attempt, worker): (Attempt, Arc<LocalWorker>),
    cancel: watch::Sender<bool>,
    slots: Slots,
) -> BoxFuture<'static, (usize, CallStep)> {
    let input = call.input.clone();
    let policy = call.policy.clone();
    Box::pin(async move {
        let _slots = slots;
        (
            index,
            CallStep::Ended(attempt::run(handler, input, attempt, worker, policy, cancel).await),
        )
    })
}

/// Waits for a slot, unless it is preempted first.
async fn enter(
    pools: &Pools,
    policy: &Policy,
    run: &RunId,
    mut cancel: watch::Receiver<bool>,
) -> CallStep {
    tokio::select! {
        biased;
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => CallStep::Preempted,
        slots = take_slots(pools, policy, run) => CallStep::Entered(slots),
    }
}

/// Waits for the slots in the same order as every other call, so that none waits in a circle.
async fn take_slots(pools: &Pools, policy: &Policy, run: &RunId) -> Slots {
    let outer = pools.enter(policy.within.as_deref(), policy.rank, run).await;
    [outer, pools.enter(policy.pool.as_deref(), policy.rank, run).await]
}

async fn sleep_until(clock: &dyn crate::clock::Clock, until: Option<DateTime<Utc>>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => std::future::pending().await,
    }
}
