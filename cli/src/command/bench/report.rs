//! What came out, and how it stands to the targets.

use serde::Serialize;

use super::ceiling::Ceiling;
use super::machine::Machine;
use super::open::Opening;
use super::scheduler::Scheduling;
use super::waiting::Waiting;

/// The name and version of the shape of the document.
const SCHEMA: &str = "longhaul.bench/1";

/// One mebibyte.
pub(super) const MIB: u64 = 1024 * 1024;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) optimised: bool,
    pub(super) quick: bool,
    pub(super) machine: Machine,
    pub(super) steps: Vec<Steps>,
    pub(super) open: Opening,
    pub(super) waiting: Waiting,
    pub(super) scheduler: Scheduling,
    pub(super) targets: Vec<Target>,
}

/// Steps with so many runs in flight.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "`steps_per_second` is what it is in the document")]
pub(super) struct Steps {
    pub(super) in_flight: usize,
    pub(super) steps_per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) mean_group: f64,
    pub(super) record_bytes: f64,
    pub(super) file: Ceiling,
    pub(super) sled: Ceiling,
    pub(super) of_file: f64,
    pub(super) of_sled: f64,
    pub(super) p50_of_file: f64,
    pub(super) p50_of_sled: f64,
}

/// What Longhaul promises of itself, and whether it is so here.
#[derive(Debug, Serialize)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) wanted: &'static str,
    pub(super) figure: f64,
    pub(super) reached: bool,
}

impl Document {
    pub(super) fn new(
        quick: bool,
        machine: Machine,
        steps: Vec<Steps>,
        open: Opening,
        waiting: Waiting,
        scheduler: Scheduling,
    ) -> Self {
        let targets = targets(&steps, &open, &waiting, &scheduler);
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            optimised: !cfg!(debug_assertions),
            quick,
            machine,
            steps,
            open,
            waiting,
            scheduler,
            targets,
        }
    }
}

fn targets(steps: &[Steps], open: &Opening, waiting: &Waiting, scheduler: &Scheduling) -> Vec<Target> {
    let at_most = |name, wanted, figure: f64, limit: f64| Target { name, wanted, figure, reached: figure <= limit };
    let alone = steps.first().map_or(f64::INFINITY, |steps| steps.p50_of_sled);
    let many = steps.last().map_or(0.0, |steps| steps.of_sled);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let memory = waiting.resident.peak_bytes as f64 / MIB as f64;
    vec![
        Target {
            name: "steps/s at 256 in flight, to those of sled alone in groups of that size",
            wanted: "0.60 or more",
            figure: many,
            reached: many >= 0.6,
        },
        at_most(
            "p50 of a step at 1 in flight, to that of one durable append by sled alone",
            "1.50 or less",
            alone,
            1.5,
        ),
        at_most(
            "seconds to open the log and go on with all runs in flight",
            "3.00 or less",
            open.resumed.total_seconds,
            3.0,
        ),
        at_most("MiB at most of a process with all waiting runs in memory", "200 or less", memory, 200.0),
        at_most("seconds of CPU to schedule the backlog", "5.00 or less", scheduler.total_seconds(), 5.0),
    ]
}
