//! The owner's side: starts a program under a supervisor, follows its output, and ends it when
//! required.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_engine::{Attempt, Failure};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::Instant;

use crate::machine::{self, Operation};

use super::finished::Finished;
use super::follow::{Running, StopReason};
use super::life::Liveness;
use super::observer::{Observer, Unobserved};
use super::output::Output;
use super::refusal::{lost_task, not_confined, not_started, stopped_by_others, supervisor_lost};
use super::sandbox::Confined;
use super::spawn_request::SpawnRequest;
use super::verdict::Ending;
use super::{
    CALL_VARIABLE, OWNER_VARIABLE, Spec, Supervisor, available, outcome, output, owner_id, places,
    sweep,
};

/// Runs programs for the owner of a data directory.
#[derive(Debug, Clone)]
pub struct Runner {
    data_dir: PathBuf,
    owner: Arc<str>,
    supervisor: Arc<Supervisor>,
    /// The calls whose processes may still run: those of this process without a verdict, and those
    /// that an earlier owner left.
    open_calls: Arc<Mutex<Option<HashSet<String>>>>,
}

/// The ending of a program whose observer gave up.
const GIVEN_UP: &str = "waited in vain";

/// The directories and files of one attempt.
#[derive(Clone, Copy)]
struct RunPlaces<'a> {
    /// Its temporary files; `None`: without a sandbox.
    temporary: Option<&'a Path>,
    /// The file for the outcome, if it is kept.
    outcome: Option<&'a Path>,
}

impl Runner {
    /// A runner that keeps its logs in the data directory, which must exist.
    pub fn new(data_dir: impl AsRef<Path>, supervisor: Supervisor) -> Self {
        let data_dir = data_dir.as_ref();
        let owner = owner_id(data_dir).into();
        let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        Self { data_dir, owner, supervisor: Arc::new(supervisor), open_calls: Arc::default() }
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Runs a program to its end, or until the attempt is cancelled. All its processes have ended
    /// when this returns; when the future is dropped, they are ended soon after.
    pub async fn run(&self, spec: &Spec, attempt: &Attempt) -> Result<Finished, Failure> {
        self.run_until(spec, attempt, attempt.cancelled()).await
    }

    /// As [`Runner::run`], but ended as cancelled when `stop` resolves.
    pub async fn run_until(
        &self,
        spec: &Spec,
        attempt: &Attempt,
        stop: impl Future<Output = ()>,
    ) -> Result<Finished, Failure> {
        self.run_with(spec, attempt, stop, &mut Unobserved, None).await
    }

    /// As [`Runner::run_until`], with an observer of its output.
    pub(crate) async fn run_observed(
        &self,
        spec: &Spec,
        attempt: &Attempt,
        stop: impl Future<Output = ()>,
        observer: &mut dyn Observer,
    ) -> Result<Finished, Failure> {
        self.run_with(spec, attempt, stop, observer, None).await
    }

    /// As [`Runner::run`]. The outcome is also kept in a file the moment the program ends.
    pub(crate) async fn run_keeping(
        &self,
        spec: &Spec,
        attempt: &Attempt,
        outcome: &Path,
    ) -> Result<Finished, Failure> {
        self.run_with(spec, attempt, attempt.cancelled(), &mut Unobserved, Some(outcome)).await
    }

    async fn run_with(
        &self,
        spec: &Spec,
        attempt: &Attempt,
        stop: impl Future<Output = ()>,
        observer: &mut dyn Observer,
        outcome: Option<&Path>,
    ) -> Result<Finished, Failure> {
        let key = attempt.key();
        let (log, file) =
            places::create_log(&self.data_dir, attempt, &spec.name).map_err(|error| {
                let directory = self.data_dir.join("logs");
                let message = format!("no log can be written in {}: {error}", directory.display());
                machine::failure(&error, Operation::Files, &directory, message, Failure::retryable)
            })?;
        let temporary = match &spec.sandbox {
            Some(_) => Some(self.temporary(attempt).await?),
            None => None,
        };
        let begun = Instant::now();
        self.open_call(&key).await?;
        let mut running = self.start(
            spec,
            &key,
            RunPlaces { temporary: temporary.as_deref(), outcome },
            Output::new(log.clone(), file),
        )?;
        let alive = || attempt.heartbeat();
        let grace = self.supervisor.grace;
        let why = running.follow(&spec.limits, grace, stop, alive, observer).await;
        let verdict = running.verdict(observer).await;
        let duration = begun.elapsed();
        let output = running.output;
        let end = move || {
            temporary.as_deref().map(places::remove_temporary);
            output.finish()
        };
        let kept = tokio::task::spawn_blocking(end).await.map_err(|error| lost_task(&error))?;
        let Some(verdict) = verdict else {
            self.end_call(&key).await?;
            let lost = running.report_bytes;
            return Err(if matches!(why, Some(StopReason::Asked)) {
                Failure::cancelled()
            } else {
                supervisor_lost(spec, &lost)
            });
        };
        if verdict.left.is_empty() {
            self.lock_open_calls().get_or_insert_default().remove(&key);
        } else {
            tracing::warn!(
                program = %spec.program.display(),
                pids = ?verdict.left,
                "these processes could not be ended",
            );
        }
        let why = why.filter(|_| verdict.stopped || running.is_asked_to_end);
        let (exit_code, ended_by) = match (verdict.ending, why) {
            (Ending::NotStarted { errno, error }, _) => {
                return Err(not_started(spec, errno, &error));
            }
            (Ending::NotConfined { error }, None) => return Err(not_confined(spec, &error)),
            (_, None) if verdict.stopped => return Err(stopped_by_others(spec)),
            (_, Some(StopReason::Asked)) => return Err(Failure::cancelled()),
            (_, Some(StopReason::TooLong(limit))) => {
                (None, Some(format!("timed out after {} s", limit.as_secs_f64())))
            }
            (_, Some(StopReason::Silent(limit))) => {
                (None, Some(format!("silent for {} s", limit.as_secs_f64())))
            }
            (_, Some(StopReason::GivenUp)) => (None, Some(GIVEN_UP.into())),
            (Ending::Exited { code }, None) => (Some(code), None),
            (Ending::Signalled { signal }, None) => {
                (None, Some(format!("killed by signal {signal}")))
            }
        };
        let stopped = why.filter(|_| ended_by.is_some()).map(StopReason::kind);
        Ok(Finished {
            exit_code,
            ended_by,
            stopped,
            duration,
            output_digest: kept.digest,
            output_tail: kept.tail,
            log: self.relative(&log),
        })
    }

    /// A path in the data directory, relative to it.
    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.data_dir).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Ends the remaining processes of one call, also those of an earlier attempt.
    pub(crate) async fn end_call(&self, key: &str) -> Result<(), Failure> {
        if !self.may_be_open(key).await? {
            return Ok(());
        }
        let owner = self.owner.clone();
        let key = key.to_owned();
        let swept = tokio::task::spawn_blocking(move || sweep::end_call(&owner, &key))
            .await
            .map_err(|error| lost_task(&error))?;
        for process in swept {
            tracing::warn!(
                pid = process.pid,
                command = process.command,
                "a left-over process was ended"
            );
        }
        Ok(())
    }

    /// Whether processes of a call may still run. The processes of the machine are listed once:
    /// later ones with a mark of this owner are those of this process.
    async fn may_be_open(&self, key: &str) -> Result<bool, Failure> {
        if self.lock_open_calls().is_none() {
            let owner = self.owner.clone();
            let left = tokio::task::spawn_blocking(move || sweep::open_calls(&owner))
                .await
                .map_err(|error| lost_task(&error))?;
            self.lock_open_calls().get_or_insert_default().extend(left);
        }
        Ok(self.lock_open_calls().as_ref().is_some_and(|open| open.contains(key)))
    }

    async fn open_call(&self, key: &str) -> Result<(), Failure> {
        self.may_be_open(key).await?;
        self.lock_open_calls().get_or_insert_default().insert(key.to_owned());
        Ok(())
    }

    fn lock_open_calls(&self) -> MutexGuard<'_, Option<HashSet<String>>> {
        self.open_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fresh directory for the temporary files of an attempt; leftovers of a lost attempt are
    /// removed.
    async fn temporary(&self, attempt: &Attempt) -> Result<PathBuf, Failure> {
        let data_dir = self.data_dir.clone();
        let attempt = attempt.clone();
        let made =
            tokio::task::spawn_blocking(move || places::make_temporary(&data_dir, &attempt)).await;
        made.map_err(|error| lost_task(&error))?.map_err(|error| {
            let directory = places::temporary_in(&self.data_dir);
            Failure::retryable(format!(
                "no temporary directory can be made in {}: {error}",
                directory.display()
            ))
        })
    }

    fn start(
        &self,
        spec: &Spec,
        key: &str,
        places: RunPlaces<'_>,
        output: Output,
    ) -> Result<Running, Failure> {
        let supervisor = self.supervisor.program.display();
        if let Some(name) = spec.env.first_invalid() {
            let message = format!(
                "the environment variable `{name}` cannot be set: its name or value is not valid"
            );
            return Err(Failure::terminal(message));
        }
        if !spec.directory.is_dir() {
            let program = spec.program.display();
            let directory = spec.directory.display();
            return Err(Failure::terminal(format!(
                "`{program}` cannot be run in {directory}: there is no such directory"
            )));
        }
        self.spawn(spec, key, places, output).map_err(|error| {
            let message = format!("the supervisor {supervisor} cannot be started: {error}");
            machine::failure(&error, Operation::Fork, &self.data_dir, message, |message| {
                match error.kind() {
                    // Longhaul's own binary failed, for example during an upgrade. The work is not
                    // at fault.
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                        Failure::machine(format!("{message}; install longhaul again"))
                    }
                    io::ErrorKind::ArgumentListTooLong => Failure::terminal(message),
                    _ => Failure::retryable(message),
                }
            })
        })
    }

    fn spawn(
        &self,
        spec: &Spec,
        key: &str,
        places: RunPlaces<'_>,
        output: Output,
    ) -> io::Result<Running> {
        let order = SpawnRequest {
            grace: self.supervisor.grace,
            input: spec.input.clone(),
            outcome: places.outcome.map(Path::to_owned),
            confined: spec.sandbox.clone().zip(places.temporary).map(|(sandbox, temporary)| {
                Confined {
                    sandbox,
                    temporary: temporary.to_owned(),
                    bwrap: available().bubblewrap.clone().unwrap_or_default(),
                }
            }),
            program: spec.program.clone(),
            args: spec.args.clone(),
        };
        let (reading, writing) = io::pipe()?;
        let mut command = Command::new(&self.supervisor.program);
        command
            .arg0("longhaul")
            .args(&self.supervisor.args)
            .args(order.to_args())
            .current_dir(&spec.directory)
            .env_clear()
            .envs(spec.env.iter())
            .env(OWNER_VARIABLE, &*self.owner)
            .env(CALL_VARIABLE, key)
            .stdin(Stdio::piped())
            .stdout(writing)
            .stderr(Stdio::piped());
        let mut supervisor = command.spawn()?;
        Ok(Running {
            control: supervisor.stdin.take(),
            life: Liveness::new(supervisor.id().unwrap_or_default().cast_signed(), &spec.directory),
            report: supervisor.stderr.take().expect("standard error was asked for as a pipe"),
            supervisor,
            stream: Some(pipe::Receiver::from_owned_fd(reading.into())?),
            output,
            report_bytes: Vec::new(),
            is_asked_to_end: false,
        })
    }
}

impl Runner {
    /// The result of a program whose outcome was kept in a file since the system was started. The
    /// output that was on its way to the killed owner is missing in it.
    pub(crate) fn kept_outcome(
        &self,
        file: &Path,
        attempt: &Attempt,
        name: &str,
    ) -> Option<Finished> {
        let outcome = outcome::read(file)?;
        let log = places::logs_of(self.data_dir(), attempt, name).pop();
        let kept = log.as_deref().and_then(|log| output::kept_in(log).ok());
        let (output_digest, output_tail) =
            kept.map_or_else(Default::default, |kept| (kept.digest, kept.tail));
        Some(Finished {
            exit_code: Some(outcome.exit_code),
            ended_by: None,
            stopped: None,
            duration: Duration::from_millis(outcome.duration_ms),
            output_digest,
            output_tail,
            log: log.map_or_else(String::new, |log| self.relative(&log)),
        })
    }
}
