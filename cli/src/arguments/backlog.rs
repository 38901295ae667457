//! The arguments of `longhaul feature import` and `longhaul feature export`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use longhaul_backlog::export::Target;
use longhaul_backlog::import::Shape;

use super::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureImport {
    /// The list of another tool; - for standard input
    pub(crate) file: PathBuf,
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// Read it as this, whatever it looks like
    #[arg(long = "as", value_name = "SHAPE", value_parser = shapes())]
    pub(crate) shape: Option<Shape>,
    /// Which list of a Task Master file that has several
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Say what would be added, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How the report is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureExport {
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// The tool that is to read it
    #[arg(long, value_name = "SHAPE", value_parser = targets())]
    pub(crate) to: Target,
    /// Write to this file instead of standard output
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

fn shapes() -> impl TypedValueParser<Value = Shape> {
    PossibleValuesParser::new(Shape::ALL.map(Shape::name)).try_map(|name| name.parse())
}

fn targets() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(|name| name.parse())
}
