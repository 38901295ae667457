//! A connection to an MCP server, and the server itself if it is a program.
//!
//! A program runs in the sandbox of the agent, under a supervisor. Its standard output reaches the
//! client through an observer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::{Attempt, Failure};
use rmcp::ServiceExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::process::{Fifo, Finished, Runner, Spec, logs_of};

use super::http::call_error;
use super::output::output;
use super::{Client, PATIENCE, no_answer};

/// The time in which a program has to end once its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// A connection to a server.
pub(super) struct Connection {
    client: Client,
    program: Option<Program>,
}

/// A server that Longhaul started.
struct Program {
    run: JoinHandle<Result<Finished, Failure>>,
    input: Fifo,
    /// Ends it after this time.
    end: oneshot::Sender<Duration>,
    /// For its logs.
    data_dir: PathBuf,
    attempt: Attempt,
    name: String,
}

impl Connection {
    pub(super) fn over_http(client: Client) -> Self {
        Self { client, program: None }
    }

    /// Starts a server and connects to it.
    ///
    /// # Errors
    /// What is wrong with the server, as the rest of a sentence about it; a failure of the machine.
    pub(super) async fn to_program(
        runner: &Runner,
        spec: Spec,
        input: Fifo,
        attempt: &Attempt,
    ) -> Result<Result<Self, String>, Failure> {
        // The server outlives the call that starts it.
        let attempt = Attempt::detached(attempt.run.clone(), attempt.slot);
        let (mut observer, output) = output();
        let (end, mut has_to_end) = oneshot::channel();
        let runner = runner.clone();
        let data_dir = runner.data_dir().to_owned();
        let name = spec.name.clone();
        let of_run = attempt.clone();
        let run = tokio::spawn(async move {
            let stop = async {
                let grace = (&mut has_to_end).await.unwrap_or_default();
                tokio::time::sleep(grace).await;
            };
            runner.run_observed(&spec, &of_run, stop, &mut observer).await
        });
        let writing = match input.sender() {
            Ok(writing) => writing,
            Err(error) => return Ok(Err(format!("has no input: {error}"))),
        };
        let mut program = Program { run, input, end, data_dir, attempt, name };
        let connected = tokio::select! {
            biased;
            client = tokio::time::timeout(PATIENCE, ().serve((output, writing))) => client,
            ran = &mut program.run => return program.ended_early(ran).map(Err),
        };
        match connected {
            Ok(Ok(client)) => Ok(Ok(Self { client, program: Some(program) })),
            Ok(Err(error)) => {
                let why = format!("gives no valid answer: {error}");
                program.explain(why).await.map(Err)
            }
            Err(_) => {
                program.stop(Duration::ZERO).await;
                Ok(Err(no_answer()))
            }
        }
    }

    /// Speaks to the server. After an error the connection is of no more use.
    ///
    /// # Errors
    /// As of [`Connection::to_program`].
    pub(super) async fn speak<T>(
        &mut self,
        speak: impl AsyncFnOnce(&Client) -> Result<T, rmcp::ServiceError>,
    ) -> Result<Result<T, String>, Failure> {
        let spoken = tokio::time::timeout(PATIENCE, speak(&self.client));
        let spoken = match &mut self.program {
            None => spoken.await,
            Some(program) => tokio::select! {
                biased;
                spoken = spoken => spoken,
                ran = &mut program.run => return program.ended_early(ran).map(Err),
            },
        };
        match spoken {
            Ok(Ok(answer)) => Ok(Ok(answer)),
            Ok(Err(error)) => Ok(Err(format!("gives no valid answer: {}", call_error(&error)))),
            Err(_) => Ok(Err(no_answer())),
        }
    }

    /// Whether the server has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.client.is_closed()
            || self.program.as_ref().is_some_and(|program| program.run.is_finished())
    }

    /// Ends it. A program that ignores the end of its input is killed.
    pub(super) async fn close(self) {
        let _ = self.client.cancel().await;
        if let Some(program) = self.program {
            program.stop(GRACE).await;
        }
    }

    /// Ends it at once.
    pub(super) async fn kill(self) {
        drop(self.client);
        if let Some(program) = self.program {
            program.stop(Duration::ZERO).await;
        }
    }
}

/// The time in which a program that ended is seen to have ended.
const NOTICE: Duration = Duration::from_secs(1);

impl Program {
    /// The reason of an error: the program may have ended.
    async fn explain(mut self, why: String) -> Result<String, Failure> {
        if let Ok(ran) = tokio::time::timeout(NOTICE, &mut self.run).await {
            return self.ended_early(ran);
        }
        self.stop(Duration::ZERO).await;
        Ok(why)
    }

    fn ended_early(
        &self,
        ran: Result<Result<Finished, Failure>, tokio::task::JoinError>,
    ) -> Result<String, Failure> {
        self.remove_logs();
        let ran = ran.map_err(|error| Failure::retryable(format!("a task is lost: {error}")))??;
        Ok(format!("ended early ({}): {}", ran.ending(), ran.output_tail.trim()))
    }

    async fn stop(self, grace: Duration) {
        let Self { run, input, end, data_dir, attempt, name } = self;
        drop(input);
        // It may have ended.
        let _ = end.send(grace);
        let _ = run.await;
        remove_logs(&data_dir, &attempt, &name);
    }

    fn remove_logs(&self) {
        remove_logs(&self.data_dir, &self.attempt, &self.name);
    }
}

fn remove_logs(data_dir: &Path, attempt: &Attempt, name: &str) {
    for log in logs_of(data_dir, attempt, name) {
        let _ = std::fs::remove_file(log);
    }
}
