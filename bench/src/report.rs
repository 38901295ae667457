//! The report, as JSON and for people, and the targets.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use schemars::JsonSchema;
use serde::Serialize;

use super::batch::Batch;
use super::ceiling::Rate;
use super::feature::Overhead;
use super::machine::Machine;
use super::open::Opening;
use super::scheduler::Scheduling;
use super::sessions::Sessions;
use super::steps::Steps;
use super::target::Target;
use super::waiting::{ProcessFigures, Waiting};

const MIB: u64 = 1024 * 1024;

/// The figures, and the targets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The version of this program.
    version: &'static str,
    /// Whether it was compiled with optimisation.
    optimised: bool,
    /// Whether a tenth of the work was done.
    quick: bool,
    #[serde(flatten)]
    measured: Measurements,
    /// The figures with targets.
    targets: Vec<Target>,
}

/// Everything that was measured.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Measurements {
    pub(super) machine: Machine,
    /// Steps, with more and more runs in flight.
    pub(super) steps: Vec<Steps>,
    pub(super) open: Opening,
    pub(super) waiting: Waiting,
    pub(super) scheduler: Scheduling,
    pub(super) feature: Overhead,
    pub(super) sessions: Sessions,
    pub(super) batch: Batch,
}

impl Measurements {
    fn targets(&self) -> Vec<Target> {
        let alone = self.steps.first().map_or(f64::INFINITY, |steps| steps.sled.p50_ratio);
        let many = self.steps.last().map_or(0.0, |steps| steps.sled.ratio);
        let feature = &self.feature;
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let memory = self.waiting.resident.peak_bytes as f64 / MIB as f64;
        let mut targets = vec![
            Target::at_least(
                "steps/s at 256 in flight, to those of sled alone in groups of that size",
                many,
                0.6,
            ),
            Target::at_most(
                "p50 of a step at 1 in flight, to that of one durable append by sled alone",
                alone,
                1.5,
            ),
            Target::at_most(
                "seconds to open the log and continue all active runs",
                self.open.resumed.total_seconds,
                3.0,
            ),
            Target::at_most("peak MiB of a process with all waiting runs in memory", memory, 200.0),
            Target::at_most(
                "seconds of CPU to schedule the backlog",
                self.scheduler.total_seconds(),
                5.0,
            ),
            Target::at_most(
                "wall time of a feature, to that of the shell script",
                feature.longhaul.wall_ms / feature.script.wall_ms,
                2.0,
            ),
            Target::at_most(
                "CPU time of a feature, to that of the shell script",
                feature.longhaul.cpu_ms / feature.script.cpu_ms,
                2.5,
            ),
        ];
        if let Some(calls) = feature.longhaul.calls {
            targets.push(Target::at_most("git processes of a feature", calls.git_processes, 30.0));
        }
        targets.extend(self.sessions.targets());
        targets.extend(self.batch.targets());
        targets
    }
}

impl Report {
    pub(super) fn new(quick: bool, measured: Measurements) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let optimised = !cfg!(debug_assertions);
        let targets = measured.targets();
        Self { version, optimised, quick, measured, targets }
    }

    fn steps(&self) -> Table {
        let mut table = plain();
        table.set_header(["IN FLIGHT", "", "PER SECOND", "P50 µs", "P99 µs", "RATIO", "P50 RATIO"]);
        let mut row = |head: String, name: &str, rate: &Rate, ratios: [String; 2]| {
            let figures = [rate.steps_per_second, rate.p50_us, rate.p99_us]
                .map(|figure| format!("{figure:.0}"));
            table.add_row([head, name.to_owned()].into_iter().chain(figures).chain(ratios));
        };
        for steps in &self.measured.steps {
            row(steps.in_flight.to_string(), "steps", &steps.rate, Default::default());
            for (name, ceiling) in [("plain file", &steps.file), ("sled", &steps.sled)] {
                let ratios = [ceiling.ratio, ceiling.p50_ratio].map(|ratio| format!("{ratio:.2}"));
                row(String::new(), name, &ceiling.rate, ratios);
            }
        }
        for column in table.column_iter_mut().filter(|column| column.index != 1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    fn figures(&self) -> Table {
        let Measurements { open, waiting, scheduler, sessions, batch, .. } = &self.measured;
        let held = |held: &ProcessFigures| {
            let grown = held.after_bytes.saturating_sub(held.before_bytes) / MIB;
            format!(
                "{grown} MiB more, peak {} MiB, {} of them in memory",
                held.peak_bytes / MIB,
                held.lives
            )
        };
        let mut table = plain();
        table.add_row([
            "OPEN".to_owned(),
            format!(
                "{} events of {} runs, {} MiB{}: open in {:.2} s, {} active runs continued after \
                 {:.2} s, peak {} MiB",
                open.events,
                open.runs,
                open.log_bytes / MIB,
                if open.cold { ", cold" } else { "" },
                open.resumed.store_seconds,
                open.active,
                open.resumed.total_seconds,
                open.resumed.peak_bytes / MIB,
            ),
        ]);
        table.add_row([
            "WAITING".to_owned(),
            format!("{} runs: {}", waiting.runs, held(&waiting.usual)),
        ]);
        table.add_row([
            String::new(),
            format!("{} runs: {}", waiting.runs, held(&waiting.resident)),
        ]);
        table.add_row([
            "SCHEDULER".to_owned(),
            format!(
                "{} features, {} dependencies: {:.2} s of CPU, {:.2} s of it to build the graph",
                scheduler.features,
                scheduler.dependencies,
                scheduler.total_seconds(),
                scheduler.build_seconds,
            ),
        ]);
        let heads = std::iter::once("SESSIONS").chain(std::iter::repeat(""));
        for (head, line) in heads.zip(sessions.lines()) {
            table.add_row([head.to_owned(), line]);
        }
        table.add_row(["BATCH".to_owned(), batch.line()]);
        table
    }

    fn feature(&self) -> Table {
        let feature = &self.measured.feature;
        let mut table = plain();
        let head = format!("ONE OF {} FEATURES", feature.features);
        table.set_header([&head, "WALL ms", "CPU ms", "GIT PROCESSES", "SYNCS", "OF THE LOG"]);
        for (name, cost) in [("longhaul", &feature.longhaul), ("shell script", &feature.script)] {
            let calls = cost.calls.map(|calls| [calls.git_processes, calls.syncs, calls.log_syncs]);
            let calls = calls.map_or(["-"; 3].map(str::to_owned), |calls| {
                calls.map(|figure| format!("{figure:.1}"))
            });
            let times = [cost.wall_ms, cost.cpu_ms].map(|figure| format!("{figure:.0}"));
            table.add_row([name.to_owned()].into_iter().chain(times).chain(calls));
        }
        for column in table.column_iter_mut().filter(|column| column.index != 0) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    fn targets(&self) -> Table {
        let mut table = plain();
        table.set_header(["", "TARGET", "WANTED", "FIGURE"]);
        for target in &self.targets {
            let reached = if target.reached { "reached" } else { "missed" };
            table.add_row([reached, target.name, &target.wanted, &format!("{:.2}", target.figure)]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { os, model, cores, memory_bytes, directory, file_system } =
            &self.measured.machine;
        let quick = if self.quick { ", a tenth of the work" } else { "" };
        let debug = if self.optimised { "" } else { ", NOT OPTIMISED" };
        writeln!(formatter, "longhaul {}{quick}{debug}", self.version)?;
        writeln!(
            formatter,
            "{cores} cores, {model}, {} MiB\n{os}\n{directory} ({file_system})\n",
            memory_bytes / MIB
        )?;
        let tables = [self.steps(), self.figures(), self.feature(), self.targets()];
        let tables = tables.map(|table| table.to_string());
        write!(formatter, "{}", tables.join("\n\n"))
    }
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

#[cfg(test)]
mod tests {
    use longhaul_server::document::Titled;

    use super::super::ceiling::Ceiling;
    use super::super::feature::{Calls, Cost};
    use super::super::machine;
    use super::super::open::Resumed;
    use super::*;

    #[test]
    fn figures_are_shown_to_people_and_to_programs() {
        let resumed = Resumed { store_seconds: 1.0, total_seconds: 3.5, peak_bytes: 64 * MIB };
        let open =
            Opening { events: 1000, runs: 10, active: 1, log_bytes: 2 * MIB, cold: true, resumed };
        let held = || ProcessFigures {
            lives: 7,
            before_bytes: MIB,
            after_bytes: 3 * MIB,
            peak_bytes: 90 * MIB,
        };
        let waiting = Waiting { runs: 100, usual: held(), resident: held() };
        let scheduler = Scheduling {
            features: 50,
            dependencies: 150,
            build_seconds: 0.1,
            work_off_seconds: 0.2,
        };
        let sled = Ceiling { ratio: 0.7, p50_ratio: 1.6, ..Ceiling::default() };
        let steps = vec![Steps { in_flight: 256, sled, ..Steps::default() }];
        let machine = machine::describe(std::path::Path::new("/"));
        let calls = Calls { git_processes: 31.0, syncs: 40.0, log_syncs: 30.0 };
        let longhaul = Cost { wall_ms: 400.0, cpu_ms: 90.0, calls: Some(calls) };
        let script = Cost { wall_ms: 100.0, cpu_ms: 45.0, calls: None };
        let feature = Overhead { features: 5, longhaul, script };
        let sessions = Sessions::default();
        let batch = Batch { busy_agents: 6.5, seconds_in_system: 4.5, ..Batch::default() };
        let measured =
            Measurements { machine, steps, open, waiting, scheduler, feature, sessions, batch };
        let report = Report::new(true, measured);

        let text = report.to_string();
        for part in [
            "continued after 3.50 s",
            "2 MiB more, peak 90 MiB, 7 of them",
            "0.30 s of CPU",
            "31.0",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = serde_json::to_value(Titled::of(&report)).unwrap();
        let reached = json["targets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|target| target["reached"].as_bool().unwrap());
        assert_eq!(
            reached.collect::<Vec<_>>(),
            [
                true, false, false, true, true, false, true, false, true, true, false, true, true,
                false
            ]
        );
        let schema = schemars::schema_for!(Titled<Report>);
        let fields = schema.get("properties").and_then(|fields| fields.as_object()).unwrap();
        assert!(fields.keys().eq(json.as_object().unwrap().keys()), "{fields:?}");
    }
}
