//! `longhaul schema`, and the registry of what it knows: every document that a command prints as JSON.

use anyhow::Result;
use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::arguments::look;
use crate::document::{Document, Titled};
use crate::exit::{Exit, usage};
use crate::term;

/// Makes each type a document with this name and version, and one that `longhaul schema` knows.
macro_rules! documents {
    ($($name:literal $version:literal $document:ty,)*) => {
        /// The documents that there are.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        $(impl Document for $document {
            const SCHEMA: &'static str = concat!("longhaul.", $name, "/", $version);
        })*

        fn of(name: &str) -> Option<Schema> {
            match name {
                $($name => Some(schema::<$document>()),)*
                _ => None,
            }
        }
    };
}

documents! {
    "batch" 1 super::batch::Report,
    "bench" 1 super::bench::Document,
    "check" 1 super::carry::CheckDocument,
    "checkpoint" 1 super::again::CheckpointDocument<'_>,
    "checkpoints" 1 super::again::CheckpointsDocument,
    "describe" 1 crate::look::DescribeDocument,
    "doctor" 1 super::carry::DoctorDocument,
    "export" 1 super::carry::ExportDocument<'_>,
    "feature" 1 super::feature::FeatureDocument<'_>,
    "feature_import" 1 super::feature::ImportDocument<'_>,
    "features" 1 super::feature::FeaturesDocument,
    "fork" 1 super::again::ForkDocument<'_>,
    "graph" 1 crate::look::GraphDocument,
    "init" 1 super::init::InitDocument,
    "import" 1 super::carry::ImportDocument,
    "list" 1 crate::look::ListDocument,
    "listed" 1 crate::look::list::RunLine,
    "next" 1 super::feature::NextDocument,
    "progress" 1 super::batch::ProgressLine,
    "prune" 1 super::carry::PruneDocument,
    "replay" 1 super::carry::ReplayDocument,
    "restore" 1 super::carry::RestoreDocument,
    "rollback" 1 super::again::RollbackDocument<'_>,
    "run" 1 super::run::RunDocument<'_>,
    "status" 1 crate::status::StatusDocument,
    "told" 1 super::steer::ToldDocument<'_>,
    "tree" 1 crate::look::TreeDocument,
    "why" 1 crate::look::WhyDocument,
}

pub(super) fn run(arguments: &look::Schema) -> Result<Exit> {
    let Some(name) = &arguments.name else {
        term::print(NAMES.join("\n"));
        return Ok(Exit::Ok);
    };
    let schema = of(name).ok_or_else(|| usage(format!("there is no document `{name}`")))?;
    term::print(serde_json::to_string_pretty(&schema)?);
    Ok(Exit::Ok)
}

/// The schema of a document as it is written, not as it might be read.
fn schema<D: Document>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Titled<D>>()
}
