//! What came out, and how it stands to the targets.

use schemars::JsonSchema;
use serde::Serialize;

use super::ceiling::Ceiling;
use super::feature::Overhead;
use super::machine::Machine;
use super::open::Opening;
use super::scheduler::Scheduling;
use super::waiting::Waiting;

/// One mebibyte.
pub(super) const MIB: u64 = 1024 * 1024;

/// Everything that was measured.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct Document {
    /// The version of this program.
    pub(super) version: &'static str,
    /// Whether it was compiled with optimisation.
    pub(super) optimised: bool,
    /// Whether it was a tenth of the work.
    pub(super) quick: bool,
    pub(super) machine: Machine,
    /// Steps, with more and more runs in flight.
    pub(super) steps: Vec<Steps>,
    pub(super) open: Opening,
    pub(super) waiting: Waiting,
    pub(super) scheduler: Scheduling,
    pub(super) feature: Overhead,
    /// How the figures stand to what Longhaul promises of itself.
    pub(super) targets: Vec<Target>,
}

/// Steps with so many runs in flight.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "`steps_per_second` is what it is in the document")]
pub(super) struct Steps {
    /// Runs in flight.
    pub(super) in_flight: usize,
    pub(super) steps_per_second: f64,
    /// The latency of a step that half of them stay within, in microseconds.
    pub(super) p50_us: f64,
    /// The latency that 99 of 100 stay within, in microseconds.
    pub(super) p99_us: f64,
    /// How many commits went to a sync, in the mean.
    pub(super) mean_group: f64,
    /// The size of a record, in the mean.
    pub(super) record_bytes: f64,
    /// The same with a plain file.
    pub(super) file: Ceiling,
    /// The same with sled alone.
    pub(super) sled: Ceiling,
    /// The rate, to that of the plain file.
    pub(super) of_file: f64,
    /// The rate, to that of sled.
    pub(super) of_sled: f64,
    /// The latency that half stay within, to that of the plain file.
    pub(super) p50_of_file: f64,
    /// The latency that half stay within, to that of sled.
    pub(super) p50_of_sled: f64,
}

/// What Longhaul promises of itself, and whether it is so here.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Target {
    /// What is measured, with its unit.
    pub(super) name: &'static str,
    /// What it should be.
    pub(super) wanted: &'static str,
    /// What it is here.
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
        feature: Overhead,
    ) -> Self {
        let targets = targets(&steps, &open, &waiting, &scheduler);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            optimised: !cfg!(debug_assertions),
            quick,
            machine,
            steps,
            open,
            waiting,
            scheduler,
            feature,
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

#[cfg(test)]
mod tests {
    use super::super::open::Resumed;
    use super::super::waiting::Held;
    use super::super::{machine, table};
    use super::*;
    use crate::document::Titled;

    #[test]
    fn figures_are_shown_to_people_and_to_programs() {
        let resumed = Resumed { store_seconds: 1.0, resume_seconds: 2.5, total_seconds: 3.5, peak_bytes: 64 * MIB };
        let open = Opening { events: 1000, runs: 10, in_flight: 1, log_bytes: 2 * MIB, cold: true, resumed };
        let held = || Held { lives: 7, before_bytes: MIB, after_bytes: 3 * MIB, peak_bytes: 90 * MIB };
        let waiting = Waiting { runs: 100, usual: held(), resident: held() };
        let scheduler = Scheduling { features: 50, dependencies: 150, build_seconds: 0.1, work_off_seconds: 0.2 };
        let steps = vec![Steps { in_flight: 256, of_sled: 0.7, p50_of_sled: 1.6, ..Steps::default() }];
        let machine = machine::describe(std::path::Path::new("/"));
        let feature = Overhead { features: 5, longhaul_seconds: 2.0, script_seconds: 0.5 };
        let document = Document::new(true, machine, steps, open, waiting, scheduler, feature);

        let text = table::of(&document);
        for said in [
            "gone on after 3.50 s",
            "2 MiB more, peak 90 MiB, with 7 of them",
            "0.30 s of CPU",
            "400 ms of Longhaul, 100 ms",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let given = serde_json::to_value(Titled::of(&document)).unwrap();
        let reached = given["targets"].as_array().unwrap().iter().map(|target| target["reached"].as_bool().unwrap());
        assert_eq!(reached.collect::<Vec<_>>(), [true, false, false, true, true]);
        let schema = schemars::schema_for!(Titled<Document>);
        let known = schema.get("properties").and_then(|fields| fields.as_object()).unwrap();
        assert!(known.keys().eq(given.as_object().unwrap().keys()), "{known:?}");
    }
}
