//! The arguments of `longhaul feature import` and `longhaul feature export`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use longhaul_backlog::export::Target;
use longhaul_backlog::import::{PriorityOrder, Shape};

use super::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureImport {
    /// The file of another tool; - for standard input
    pub(crate) file: PathBuf,
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// Read it in this format instead of the detected one
    #[arg(long = "as", value_name = "SHAPE", value_parser = shapes())]
    pub(crate) shape: Option<Shape>,
    /// Tag to import from a Task Master file; `all` imports every tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Whether low or high `priority` numbers come first, if the file does not say
    #[arg(long, value_name = "ORDER", value_parser = orders())]
    pub(crate) priority: Option<PriorityOrder>,
    /// Update entries that already exist, except their status
    #[arg(long)]
    pub(crate) update: bool,
    #[command(flatten)]
    pub(crate) repairs: Repairs,
    /// Only report the features that would be added
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show the whole report
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// What to repair instead of refusing the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Repairs {
    /// Drop dependencies on entries that are neither in the file nor in the list
    #[arg(long)]
    pub(crate) drop_dangling: bool,
    /// Give entries with an invalid or a taken id another one
    #[arg(long)]
    pub(crate) rename_ids: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureExport {
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// The target tool
    #[arg(long, value_name = "SHAPE", value_parser = targets())]
    pub(crate) to: Target,
    /// Write to this file instead of standard output
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

fn shapes() -> impl TypedValueParser<Value = Shape> {
    PossibleValuesParser::new(Shape::ALL.map(Shape::name)).try_map(|name| name.parse())
}

fn orders() -> impl TypedValueParser<Value = PriorityOrder> {
    PossibleValuesParser::new(PriorityOrder::ALL.map(PriorityOrder::name))
        .try_map(|name| name.parse())
}

fn targets() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(|name| name.parse())
}
