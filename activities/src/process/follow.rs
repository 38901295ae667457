//! Follows a running program: reads its output, enforces its limits, waits for its end.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin};
use tokio::time::Instant;

use super::finished::Stopped;
use super::life::Liveness;
use super::output::Output;
use super::verdict::Verdict;
use super::{Limits, Observer};

/// How long a supervisor may take beyond its grace to end a tree before it is given up.
const SUPERVISOR_LATE: Duration = Duration::from_secs(30);
/// How long to read the output of processes that could not be ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why Longhaul ends a program.
#[derive(Debug, Clone, Copy)]
pub(super) enum StopReason {
    TooLong(Duration),
    Silent(Duration),
    /// Its observer gave up.
    GivenUp,
    Asked,
}

impl StopReason {
    /// Why Longhaul ended it.
    pub(super) fn kind(self) -> Stopped {
        match self {
            Self::GivenUp => Stopped::GivenUp,
            Self::TooLong(_) | Self::Silent(_) | Self::Asked => Stopped::Limit,
        }
    }
}

/// A running supervisor. Dropping this closes the control pipe, which ends the program.
pub(super) struct Running {
    pub(super) supervisor: Child,
    pub(super) control: Option<ChildStdin>,
    pub(super) report: ChildStderr,
    pub(super) stream: Option<pipe::Receiver>,
    pub(super) output: Output,
    /// Signs of life besides the output.
    pub(super) life: Liveness,
    /// The supervisor's own output, on its standard error.
    pub(super) report_bytes: Vec<u8>,
    /// Whether its observer asked it to end by itself.
    pub(super) is_asked_to_end: bool,
}

impl Running {
    /// Follows the program until its supervisor reports. Returns why the supervisor was asked to
    /// stop, if it was.
    pub(super) async fn follow(
        &mut self,
        limits: &Limits,
        grace: Duration,
        stop: impl Future<Output = ()>,
        alive: impl Fn(),
        observer: &mut dyn Observer,
    ) -> Option<StopReason> {
        tokio::pin!(stop);
        let mut why = None;
        let mut buffer = vec![0; 64 * 1024];
        let too_long =
            limits.total.map(|limit| (Instant::now() + limit, StopReason::TooLong(limit)));
        let silent =
            || limits.silence.map(|limit| (Instant::now() + limit, StopReason::Silent(limit)));
        let mut deadlines = [too_long, silent(), None];
        let mut end_at = None;
        let mut give_up_at = None;
        loop {
            deadlines[2] = observer.gives_up_at().map(|at| (at, StopReason::GivenUp));
            let next = deadlines
                .iter()
                .flatten()
                .min_by_key(|(at, _)| *at)
                .copied()
                .filter(|_| why.is_none());
            let reason = tokio::select! {
                piece = read(&mut self.stream, &mut buffer) => {
                    match piece {
                        Some(length) => {
                            self.output.take(&buffer[..length]);
                            observer.take(&buffer[..length]);
                        }
                        None => self.stream = None,
                    }
                    alive();
                    deadlines[1] = silent();
                    continue;
                }
                read = self.report.read_buf(&mut self.report_bytes) => match read {
                    Ok(1..) => continue,
                    _ => return why,
                },
                () = &mut stop, if why.is_none() => StopReason::Asked,
                () = until(next.map(|(at, _)| at)) => match next {
                    Some((_, reason)) => reason,
                    None => continue,
                },
                () = until(end_at) => {
                    end_at = None;
                    give_up_at = Some(self.end(grace));
                    continue;
                }
                () = until(give_up_at) => return why,
            };
            let is_alive = match reason {
                StopReason::Silent(silence) => {
                    self.take_pending_output(&mut buffer, observer).await
                        || self.life.is_seen(silence).await
                }
                StopReason::GivenUp => self.take_pending_output(&mut buffer, observer).await,
                StopReason::TooLong(_) | StopReason::Asked => false,
            };
            if is_alive {
                alive();
                deadlines[1] = silent();
                continue;
            }
            why = Some(reason);
            let grace = observer.ask_to_end();
            self.is_asked_to_end = grace.is_some();
            end_at = Some(Instant::now() + grace.unwrap_or_default());
        }
    }

    /// Asks the supervisor to end the program; returns when to stop waiting for that.
    fn end(&mut self, grace: Duration) -> Instant {
        self.control = None;
        Instant::now() + grace + SUPERVISOR_LATE
    }

    /// Takes pending output, if any: Longhaul may have been held up, and not the program.
    async fn take_pending_output(
        &mut self,
        buffer: &mut [u8],
        observer: &mut dyn Observer,
    ) -> bool {
        let waiting = tokio::time::timeout(Duration::ZERO, read(&mut self.stream, buffer)).await;
        let Ok(Some(length)) = waiting else { return false };
        self.output.take(&buffer[..length]);
        observer.take(&buffer[..length]);
        true
    }

    /// The supervisor's verdict, after the rest of the output. `None`: it died, or never ended.
    pub(super) async fn verdict(&mut self, observer: &mut dyn Observer) -> Option<Verdict> {
        self.control = None;
        let last = Instant::now() + LAST_WORDS;
        let mut buffer = vec![0; 64 * 1024];
        while self.stream.is_some() {
            match tokio::time::timeout_at(last, read(&mut self.stream, &mut buffer)).await {
                Ok(Some(length)) => {
                    self.output.take(&buffer[..length]);
                    observer.take(&buffer[..length]);
                }
                Ok(None) | Err(_) => self.stream = None,
            }
        }
        // With the variables of the agent, the loader can write lines of its own.
        let mut lines = self.report_bytes.rsplit(|byte| *byte == b'\n');
        let verdict = lines.find_map(|line| serde_json::from_slice(line).ok());
        if verdict.is_none() {
            let _ = self.supervisor.start_kill();
        }
        let _ = self.supervisor.wait().await;
        verdict
    }
}

/// The length of the next chunk of output; `None` at its end; pends forever after that.
async fn read(stream: &mut Option<pipe::Receiver>, buffer: &mut [u8]) -> Option<usize> {
    match stream {
        Some(stream) => stream.read(buffer).await.ok().filter(|length| *length > 0),
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
