//! The figures, for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::ceiling::Ceiling;
use super::report::{Document, MIB};
use super::waiting::Held;

/// The whole document as text.
pub(super) fn of(document: &Document) -> String {
    let Document { machine, open, waiting, scheduler, feature, .. } = document;
    let mode = match (document.optimised, document.quick) {
        (true, false) => "",
        (true, true) => ", a tenth of the work",
        (false, false) => ", NOT OPTIMISED",
        (false, true) => ", a tenth of the work, NOT OPTIMISED",
    };
    let head = format!(
        "longhaul {}{mode}\n{} cores, {}, {} MiB\n{}\n{} ({})",
        document.version,
        machine.cores,
        machine.model,
        machine.memory_bytes / MIB,
        machine.os,
        machine.directory,
        machine.file_system,
    );
    let cache = if open.cold { "cold" } else { "perhaps cached" };
    let opening = format!(
        "{} events of {} runs, {} MiB, {cache}: open in {:.2} s, {} runs in flight gone on after {:.2} s, peak {} MiB",
        open.events,
        open.runs,
        open.log_bytes / MIB,
        open.resumed.store_seconds,
        open.in_flight,
        open.resumed.total_seconds,
        open.resumed.peak_bytes / MIB,
    );
    let held = |held: &Held| {
        let grown = held.after_bytes.saturating_sub(held.before_bytes) / MIB;
        format!("{} MiB more, peak {} MiB, with {} of them in memory", grown, held.peak_bytes / MIB, held.lives)
    };
    let scheduling = format!(
        "{} features, {} dependencies: {:.2} s of CPU, of which {:.2} s to build the graph",
        scheduler.features,
        scheduler.dependencies,
        scheduler.total_seconds(),
        scheduler.build_seconds,
    );
    let overhead = format!(
        "{} features, one after the other: {:.0} ms of Longhaul, {:.0} ms of a shell script with git, for each",
        feature.features,
        feature.milliseconds_each(feature.longhaul_seconds),
        feature.milliseconds_each(feature.script_seconds),
    );
    format!(
        "{head}\n\nSTEPS\n{}\n\nOPEN\n {opening}\n\nWAITING\n {} runs: {}\n {} runs: {}\n\nSCHEDULER\n {scheduling}\n\n\
         FEATURE\n {overhead}\n\nTARGETS\n{}",
        steps(document),
        waiting.runs,
        held(&waiting.usual),
        waiting.runs,
        held(&waiting.resident),
        targets(document),
    )
}

fn steps(document: &Document) -> Table {
    let mut table = plain();
    table.set_header(["IN FLIGHT", "", "PER SECOND", "P50 µs", "P99 µs", "GROUP", "RATIO", "P50 RATIO"]);
    for steps in &document.steps {
        table.add_row([
            steps.in_flight.to_string(),
            "steps".into(),
            format!("{:.0}", steps.steps_per_second),
            format!("{:.0}", steps.p50_us),
            format!("{:.0}", steps.p99_us),
            format!("{:.1}", steps.mean_group),
            String::new(),
            String::new(),
        ]);
        let mut ceiling = |name: &str, ceiling: &Ceiling, of: f64, p50_of: f64| {
            table.add_row([
                String::new(),
                name.into(),
                format!("{:.0}", ceiling.steps_per_second),
                format!("{:.0}", ceiling.p50_us),
                format!("{:.0}", ceiling.p99_us),
                String::new(),
                format!("{of:.2}"),
                format!("{p50_of:.2}"),
            ]);
        };
        ceiling("plain file", &steps.file, steps.of_file, steps.p50_of_file);
        ceiling("sled", &steps.sled, steps.of_sled, steps.p50_of_sled);
    }
    for column in [0, 2, 3, 4, 5, 6, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn targets(document: &Document) -> Table {
    let mut table = plain();
    table.set_header(["", "TARGET", "WANTED", "IS"]);
    for target in &document.targets {
        let word = if target.reached { "reached" } else { "missed" };
        table.add_row([word.into(), target.name.to_owned(), target.wanted.to_owned(), format!("{:.2}", target.figure)]);
    }
    table
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}
