//! The ways to ask a supervisor to stop.

use std::io;
use std::os::fd::AsFd;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// The ways to ask a supervisor to stop.
pub(super) struct Stop {
    control: pipe::Receiver,
    signals: [SignalStream; 3],
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        let control = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let [terminate, interrupt, hangup] =
            [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        Ok(Self { control, signals: [signal(terminate)?, signal(interrupt)?, signal(hangup)?] })
    }

    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.control.read_u8() => {}
            () = signalled(&mut self.signals) => {}
        }
    }

    /// While it stops, a signal ends the grace period.
    pub(super) async fn asked_again(&mut self) {
        signalled(&mut self.signals).await;
    }
}

async fn signalled([terminate, interrupt, hangup]: &mut [SignalStream; 3]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
}
