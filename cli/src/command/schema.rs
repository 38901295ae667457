//! `longhaul schema`, and the registry of the documents that commands print as JSON.

use anyhow::Result;
use longhaul_server::documents;

use crate::arguments::look;
use crate::exit::{Exit, usage};
use crate::term;

documents! {
    "batch" 1 super::batch::Report,
    "check" 1 super::maintenance::CheckDocument,
    "checkpoint" 1 super::rewind::CheckpointDocument<'_>,
    "checkpoints" 1 super::rewind::CheckpointsDocument,
    "doctor" 1 super::maintenance::DoctorDocument,
    "export" 1 super::maintenance::ExportDocument<'_>,
    "feature" 1 super::feature::FeatureDocument<'_>,
    "feature_import" 1 super::feature::ImportDocument<'_>,
    "features" 1 super::feature::FeaturesDocument,
    "detached" 1 super::batch::DetachedDocument,
    "fork" 1 super::rewind::ForkDocument,
    "forks" 1 super::rewind::ForksDocument,
    "init" 1 super::init::InitDocument,
    "import" 1 super::maintenance::ImportDocument,
    "next" 1 super::feature::NextDocument,
    "progress" 1 super::batch::ProgressLine,
    "prune" 1 super::maintenance::PruneDocument,
    "replay" 1 super::maintenance::ReplayDocument,
    "restore" 1 super::maintenance::RestoreDocument,
    "rollback" 1 super::rewind::RollbackDocument<'_>,
    "rollbacks" 1 super::rewind::RollbacksDocument<'_>,
    "run" 1 super::run::RunDocument<'_>,
    "run_history" 1 super::look::HistoryDocument,
    "order" 1 super::steer::OrderDocument<'_>,
}

/// The names of all documents.
fn names() -> Vec<&'static str> {
    let mut names = [NAMES, longhaul_server::schema::NAMES, longhaul_bench::NAMES].concat();
    names.sort_unstable();
    names
}

pub(super) fn run(arguments: &look::Schema) -> Result<Exit> {
    let Some(name) = &arguments.name else {
        term::print(names().join("\n"));
        return Ok(Exit::Ok);
    };
    let schema = of(name)
        .or_else(|| longhaul_server::schema::of(name))
        .or_else(|| longhaul_bench::of(name))
        .ok_or_else(|| {
            usage(format!("there is no document `{name}`; there are {}", names().join(", ")))
        })?;
    term::print(serde_json::to_string_pretty(&schema)?);
    Ok(Exit::Ok)
}
