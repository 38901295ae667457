//! The arguments of `usage`.

use clap::ValueEnum;
use longhaul_server::views::usage;

use super::ProjectScope;

#[derive(Debug, clap::Args)]
pub(crate) struct Usage {
    /// A project (its directory or its id), feature, run or session [default: all projects]
    #[arg(value_name = "DIR|FEATURE|ID")]
    pub(crate) target: Option<String>,
    /// The subject of a row
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: UsageSubject,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Ledger,
}

/// The subject of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageSubject {
    /// Features
    #[default]
    Feature,
    /// Projects
    Project,
    /// Models
    Model,
    /// Days in UTC
    Day,
    /// Providers of models; for an agent that is a program, its driver
    Provider,
    /// Labels
    Label,
}

impl From<UsageSubject> for usage::UsageBy {
    fn from(by: UsageSubject) -> Self {
        match by {
            UsageSubject::Feature => Self::Feature,
            UsageSubject::Project => Self::Project,
            UsageSubject::Model => Self::Model,
            UsageSubject::Day => Self::Day,
            UsageSubject::Provider => Self::Provider,
            UsageSubject::Label => Self::Label,
        }
    }
}

/// Output formats of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ledger {
    /// Text for people
    #[default]
    Table,
    /// One JSON document with a `schema`
    Json,
    /// Comma-separated values with a header; an unknown cost is empty
    Csv,
}
