//! What several verbs take in the same way.

use std::path::PathBuf;

use longhaul_engine::RequestedBy;

/// Who asks for something, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// Why; kept in the history
    #[arg(long, alias = "reason", default_value = "", value_name = "TEXT")]
    pub(crate) why: String,
    /// Who says so [default: the user]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl Asked {
    /// By their own word or that of the system.
    pub(crate) fn request(&self) -> RequestedBy {
        let user = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".into());
        let by = self.by.clone().unwrap_or_else(user);
        RequestedBy { by, why: self.why.clone() }
    }
}

/// Where features are found.
#[derive(Debug, clap::Args)]
pub(crate) struct Within {
    /// The project in which a feature is looked for by its id
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// One run.
#[derive(Debug, clap::Args)]
pub(crate) struct OneRun {
    /// The run: its id, or a part that only one has; or a feature of the project: its last run
    #[arg(value_name = "RUN|FEATURE")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) within: Within,
}
