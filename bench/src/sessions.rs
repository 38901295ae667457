//! Sessions of the built-in agent on a scripted model service: the time of a turn, its bytes in the
//! log, and the memory of sessions that wait for a person.
//!
//! The engine, the log, the session workflow and the handler of model calls are those that also run
//! projects; no git is involved. The model answers with the tool `note`, which the workflow itself
//! performs. The time of a turn is that between the answer of the model and the arrival of its next
//! request: the answer is received and recorded, the note taken, the next call recorded and sent.

mod agent;
mod model;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use longhaul_engine::{EventLog, Options, RunId, Status};
use longhaul_storage::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use super::ceiling::percentile;
use super::target::Target;
use super::waiting::ProcessFigures;
use super::{Part, machine, workload};

use model::{Model, Sample, Script};

/// Concurrent sessions.
const SESSIONS: usize = 50;
/// Turns of each.
const TURNS: usize = 100;
/// The mean time of an answer. Real models take seconds.
const ANSWER: Duration = Duration::from_millis(200);
/// Turns of the long session.
const LONG: usize = 1000;
/// Sessions that wait for a person.
const WAITING: usize = 500;
/// Turns of such a session before its question.
const BEFORE: usize = 10;
/// How long to wait for a part.
const PATIENCE: Duration = Duration::from_mins(5);

/// Sessions of the built-in agent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Sessions {
    /// One session, whose model answers at once.
    pub(super) alone: Turns,
    /// The requests of that session, sent by a client that does nothing else: the part of the
    /// service and of the connection in the time of a turn.
    pub(super) bare: Turns,
    /// Many sessions, whose model takes its time.
    pub(super) many: Turns,
    /// As many, whose model answers at once: the most turns per second.
    pub(super) saturated: Turns,
    pub(super) long: LongSession,
    pub(super) waiting: AskingSessions,
}

/// The turns of concurrent sessions.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Turns {
    /// Concurrent sessions.
    pub(super) sessions: usize,
    /// Turns of all of them.
    pub(super) count: usize,
    /// The mean time of an answer of the model, which is not part of the time of a turn.
    pub(super) answer_ms: u64,
    /// Turns per second.
    pub(super) per_second: f64,
    /// The median time of a turn without the model, in microseconds.
    pub(super) p50_us: f64,
    /// The time that 99 of 100 turns stay within, in microseconds.
    pub(super) p99_us: f64,
}

/// A long session.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct LongSession {
    /// Its turns.
    pub(super) turns: usize,
    /// Of the second tenth.
    pub(super) early: TurnTenth,
    /// Of the last tenth.
    pub(super) late: TurnTenth,
}

impl LongSession {
    /// The growth of a turn in the log from the second to the last tenth.
    pub(super) fn growth(&self) -> f64 {
        self.late.log_bytes_per_turn / self.early.log_bytes_per_turn
    }
}

/// A tenth of the turns of a long session.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct TurnTenth {
    /// The bytes of a turn in the log.
    pub(super) log_bytes_per_turn: f64,
    /// The commits of a turn to the log.
    pub(super) commits_per_turn: f64,
    /// The median time of a turn without the model, in microseconds.
    pub(super) p50_us: f64,
}

/// Sessions that wait for the answer of a person.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct AskingSessions {
    /// The number of sessions.
    pub(super) sessions: usize,
    /// With the default limits.
    pub(super) usual: ProcessFigures,
    /// With all of them in memory.
    pub(super) resident: ProcessFigures,
}

impl AskingSessions {
    /// The memory of a session.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(super) fn kib_each(&self, held: &ProcessFigures) -> f64 {
        let grown = held.after_bytes.saturating_sub(held.before_bytes);
        let grown = grown as f64;
        let sessions = self.sessions.max(1) as f64;
        grown / 1024.0 / sessions
    }
}

impl Sessions {
    pub(super) fn targets(&self) -> [Target; 4] {
        [
            Target::at_most("p50 in ms of a turn of one session", self.alone.p50_us / 1000.0, 2.0),
            Target::at_most("p50 in ms of a turn of 50 sessions", self.many.p50_us / 1000.0, 2.0),
            Target::at_most(
                "bytes of a turn in the log: the last of ten parts of a session to the second",
                self.long.growth(),
                1.05,
            ),
            Target::at_most(
                "KiB of memory of a session that waits for a person",
                self.waiting.kib_each(&self.waiting.resident),
                256.0,
            ),
        ]
    }

    /// The figures for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let times = |turns: &Turns| {
            format!("p50 {:.2} ms, p99 {:.2} ms", turns.p50_us / 1000.0, turns.p99_us / 1000.0)
        };
        let Self { alone, bare, many, saturated, long, waiting } = self;
        vec![
            format!(
                "a turn of {} session: {}; of a client that only sends the same: {}",
                alone.sessions,
                times(alone),
                times(bare)
            ),
            format!(
                "a turn of {} sessions, {} ms to an answer: {}, {:.0} turns/s",
                many.sessions,
                many.answer_ms,
                times(many),
                many.per_second
            ),
            format!(
                "a turn of {} sessions, answers at once: {}, {:.0} turns/s",
                saturated.sessions,
                times(saturated),
                saturated.per_second
            ),
            format!(
                "{} turns of one session: {:.0} commits a turn; in the second tenth {:.0} bytes of \
                 log, in the last {:.0}; p50 {:.2} ms, {:.2} ms",
                long.turns,
                long.late.commits_per_turn,
                long.early.log_bytes_per_turn,
                long.late.log_bytes_per_turn,
                long.early.p50_us / 1000.0,
                long.late.p50_us / 1000.0,
            ),
            format!(
                "{} sessions that wait for a person: {:.0} KiB each, {} of them in memory; \
                 {:.0} KiB each, {} in memory",
                waiting.sessions,
                waiting.kib_each(&waiting.usual),
                waiting.usual.lives,
                waiting.kib_each(&waiting.resident),
                waiting.resident.lives
            ),
        ]
    }
}

pub(super) async fn measure(directory: &Path, scale: usize) -> Result<Sessions> {
    std::fs::create_dir_all(directory)?;
    let turns = TURNS / scale;
    let script = Script { turns, pace: Duration::ZERO, asks: false, keeps: false };
    let (alone, model) = run(&directory.join("alone"), 1, Script { keeps: true, ..script }).await?;
    let bodies = model.bodies();
    let bare = tokio::task::spawn_blocking(move || bare(&bodies, script)).await??;
    let (many, _) =
        run(&directory.join("many"), SESSIONS, Script { pace: ANSWER, ..script }).await?;
    let (saturated, _) = run(&directory.join("saturated"), SESSIONS, script).await?;
    let turns = LONG / scale;
    let (_, model) = run(&directory.join("long"), 1, Script { turns, ..script }).await?;
    let samples = model.samples();
    let tenth = turns / 10;
    let long = LongSession {
        turns,
        early: TurnTenth::of(&samples[tenth..=2 * tenth]),
        late: TurnTenth::of(&samples[turns - 1 - tenth..]),
    };
    let waiting = measure_waiting(directory, WAITING / scale).await?;
    std::fs::remove_dir_all(directory)?;
    Ok(Sessions { alone, bare, many, saturated, long, waiting })
}

/// Runs sessions to their end.
async fn run(directory: &Path, sessions: usize, script: Script) -> Result<(Turns, Model)> {
    let store = workload::store(directory).await?;
    let model = Model::start(script, Arc::downgrade(&store))?;
    let (engine, ended) = agent::engine(&store, directory, Options::default()).await?;
    let begun = Instant::now();
    for number in 0..sessions {
        engine.start(agent::session(number, &model.url(), directory)?).await?;
    }
    let all = u32::try_from(sessions)?;
    if tokio::time::timeout(PATIENCE, ended.acquire_many(all)).await.is_err() {
        bail!(
            "{} of {sessions} sessions ended; stuck: {:?}",
            ended.available_permits(),
            engine.stuck()
        );
    }
    let elapsed = begun.elapsed();
    engine.stop().await;
    drop(engine);
    tokio::task::spawn_blocking(move || drop(store)).await?;
    Ok((Turns::of(sessions, script, &model.samples(), elapsed), model))
}

/// Sends requests one after the other, and drops the answers.
fn bare(bodies: &[String], script: Script) -> Result<Turns> {
    let model = Model::start(script, Weak::new())?;
    let begun = Instant::now();
    model.send(bodies)?;
    Ok(Turns::of(1, script, &model.samples(), begun.elapsed()))
}

impl Turns {
    fn of(sessions: usize, script: Script, samples: &[Sample], elapsed: Duration) -> Self {
        let times = ascending(samples);
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let turns = samples.len() as f64;
        Self {
            sessions,
            count: samples.len(),
            answer_ms: u64::try_from(script.pace.as_millis()).unwrap_or(u64::MAX),
            per_second: turns / elapsed.as_secs_f64(),
            p50_us: percentile(&times, 50),
            p99_us: percentile(&times, 99),
        }
    }
}

impl TurnTenth {
    /// The figures of successive turns; the first is the one before.
    fn of(samples: &[Sample]) -> Self {
        let [before, turns @ ..] = samples else { return Self::default() };
        let last = turns.last().unwrap_or(before);
        #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
        let mean = |of: fn(&Statistics) -> u64| {
            of(&last.log).saturating_sub(of(&before.log)) as f64 / turns.len().max(1) as f64
        };
        Self {
            log_bytes_per_turn: mean(|log| log.bytes),
            commits_per_turn: mean(|log| log.commits),
            p50_us: percentile(&ascending(turns), 50),
        }
    }
}

fn ascending(samples: &[Sample]) -> Vec<Duration> {
    let mut times: Vec<Duration> = samples.iter().map(|sample| sample.took).collect();
    times.sort_unstable();
    times
}

/// Measures sessions that wait, each time in a process without the model service.
async fn measure_waiting(directory: &Path, sessions: usize) -> Result<AskingSessions> {
    let script = Script { turns: BEFORE, pace: Duration::ZERO, asks: true, keeps: false };
    let model = Model::start(script, Weak::new())?;
    let held = async |resident| {
        let directory = directory.join(format!("asking-{resident}"));
        let url = model.url();
        Part::Asking { directory, url, sessions, resident }.measure().await
    };
    Ok(AskingSessions { sessions, usual: held(false).await?, resident: held(true).await? })
}

/// In the child: starts sessions, and measures when all of them wait for a person.
pub(super) async fn hold(
    directory: &Path,
    url: &str,
    sessions: usize,
    resident: bool,
) -> Result<ProcessFigures> {
    let store = workload::store(directory).await?;
    let options = if resident {
        Options { resident_waiting: sessions, idle: PATIENCE, ..Options::default() }
    } else {
        Options::default()
    };
    let limit = options.resident_waiting;
    let (engine, _) = agent::engine(&store, directory, options).await?;
    let before = machine::memory()?;
    let begun = Instant::now();
    let numbers: Vec<usize> = (0..sessions).collect();
    for numbers in numbers.chunks(SESSIONS) {
        for number in numbers {
            engine.start(agent::session(*number, url, directory)?).await?;
        }
        for number in numbers {
            while !waits(store.as_ref(), &agent::id(*number)?).await? {
                if begun.elapsed() > PATIENCE {
                    bail!("the sessions do not reach their wait; stuck: {:?}", engine.stuck());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    while engine.resident_runs() > limit && begun.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ProcessFigures::at_end_of(&engine, &before).await
}

async fn waits(store: &dyn EventLog, run: &RunId) -> Result<bool> {
    let status = store.summary(run).await?.map(|summary| summary.status);
    Ok(matches!(status, Some(Status::Waiting { until: None, machine: None })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: Script = Script { turns: 6, pace: Duration::ZERO, asks: false, keeps: true };

    #[tokio::test(flavor = "multi_thread")]
    async fn each_turn_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        let (turns, model) = run(directory.path(), 3, SCRIPT).await.unwrap();
        assert_eq!((turns.sessions, turns.count), (3, 18));
        assert!(turns.p50_us > 0.0 && turns.p50_us <= turns.p99_us, "{turns:?}");
        assert!(model.samples().iter().all(|sample| sample.log.bytes > 0));
        let bare = bare(&model.bodies()[..7], SCRIPT).unwrap();
        assert!(bare.count > 0 && bare.p50_us > 0.0, "{bare:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_turn_is_two_commits() {
        let directory = tempfile::tempdir().unwrap();
        let (_, model) = run(directory.path(), 1, SCRIPT).await.unwrap();
        // The call of the model with its result: the rest of the turn goes with these.
        let commits = TurnTenth::of(&model.samples()).commits_per_turn;
        assert!((commits - 2.0).abs() < 1e-9, "{commits}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sessions_come_to_wait_for_a_person() {
        let directory = tempfile::tempdir().unwrap();
        let model = Model::start(Script { asks: true, ..SCRIPT }, Weak::new()).unwrap();
        let held = hold(directory.path(), &model.url(), 4, true).await.unwrap();
        assert_eq!(held.lives, 4);
    }

    #[test]
    fn the_growth_of_a_turn_is_that_of_its_bytes() {
        let log = |bytes| Statistics { bytes, ..Statistics::default() };
        let sample = |bytes| Sample { took: Duration::from_millis(2), log: log(bytes) };
        let early = TurnTenth::of(&[sample(1000), sample(1100), sample(1200)]);
        let late = TurnTenth::of(&[sample(9000), sample(9150), sample(9300)]);
        let growth = LongSession { turns: 20, early, late }.growth();
        assert!((growth - 1.5).abs() < 1e-9, "{growth}");
    }
}
