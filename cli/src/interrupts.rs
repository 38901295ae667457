//! Termination signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How long a command may take to notice a signal, for example while it reads from a terminal.
const PATIENCE: Duration = Duration::from_millis(500);
/// What a shell adds to the number of a signal that ended a program.
const BY_SIGNAL: i32 = 128;

/// Whether the command of this process acts on signals itself.
static IS_HANDLED: AtomicBool = AtomicBool::new(false);

/// The termination signals, for a command that acts on them.
pub(crate) struct Interrupts([std::io::Result<Signal>; 3]);

impl Interrupts {
    /// Installs the handlers.
    pub(crate) fn listen() -> Self {
        IS_HANDLED.store(true, Ordering::Relaxed);
        Self(kinds().map(signal))
    }

    /// The next signal; pending forever if the system refuses handlers.
    pub(crate) async fn next(&mut self) {
        next(&mut self.0).await;
    }
}

/// Runs a command until it ends or, if it does not act on signals, until a signal: the git commands
/// that it started end with it. They are process groups of their own, which a signal to this
/// process alone would leave behind.
pub(crate) async fn until_interrupted<T>(command: impl Future<Output = T>) -> Result<T, u8> {
    let mut signals = kinds().map(signal);
    let (send, interrupted) = oneshot::channel();
    let watching = tokio::spawn(async move {
        let number = loop {
            let number = next(&mut signals).await;
            if !IS_HANDLED.load(Ordering::Relaxed) {
                break number;
            }
        };
        let code = BY_SIGNAL + number;
        let _ = send.send(u8::try_from(code).unwrap_or(u8::MAX));
        tokio::time::sleep(PATIENCE).await;
        std::process::exit(code);
    });
    let outcome = tokio::select! {
        outcome = command => Ok(outcome),
        Ok(code) = interrupted => Err(code),
    };
    if outcome.is_ok() {
        watching.abort();
    }
    outcome
}

fn kinds() -> [SignalKind; 3] {
    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
}

/// Returns the number of the next signal.
async fn next(signals: &mut [std::io::Result<Signal>; 3]) -> i32 {
    let [Ok(interrupt), Ok(terminate), Ok(hangup)] = signals else {
        return std::future::pending().await;
    };
    let kind = tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt(),
        _ = terminate.recv() => SignalKind::terminate(),
        _ = hangup.recv() => SignalKind::hangup(),
    };
    kind.as_raw_value()
}
