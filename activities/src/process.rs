//! Starts programs so that none of their processes is left behind, whatever happens to Longhaul.
//!
//! A program never runs as a direct child. Between the two runs a *supervisor*: this same binary,
//! started again ([`supervise_main`]), in a session of its own. It holds the reading end of a pipe;
//! the writing end belongs to Longhaul. When that closes, on request or because Longhaul was
//! killed, the supervisor ends the program and everything that the program started. Processes that
//! outlive even the supervisor are found by the variables that every process inherits ([`sweep`]).

mod background;
mod environment;
mod fifo;
mod finished;
mod follow;
mod holder;
mod input;
mod life;
mod observer;
mod origin;
mod outcome;
mod output;
mod places;
mod program;
mod refusal;
mod run;
mod sandbox;
mod spawn_request;
mod spec;
mod stop;
mod stuck;
mod supervise;
mod sweep;
mod tree;
mod verdict;

pub use background::start_in_background;
pub use environment::Environment;
pub(crate) use fifo::Fifo;
pub use finished::{Finished, Stopped};
pub use holder::Holder;
pub(crate) use holder::holder_of;
pub use observer::Observer;
pub use origin::call_of;
pub(crate) use outcome::boot;
pub use places::{owner_id, run_directory_name};
pub use run::Runner;
pub use sandbox::{Available, Level, Network, Sandbox, available};
pub use spec::{Limits, Spec, Supervisor};
pub(crate) use stuck::until_stuck;
pub use supervise::supervise_main;
pub use sweep::{Swept, hurry, owned, sweep};

pub(crate) use life::has_changed;
pub(crate) use output::readable_end;
pub(crate) use places::{logs_of, make_directory_durably, write_durably};

/// The variable that marks every process started by the owner of a data directory.
pub(crate) const OWNER_VARIABLE: &str = "LONGHAUL_OWNER";

/// The variable that marks every process of one call of an activity.
pub(crate) const CALL_VARIABLE: &str = "LONGHAUL_SESSION_KEY";
