//! `longhaul doctor`: problems that keep Longhaul from working, one per line, each with its remedy.

mod data;
mod finding;
mod machine;
mod project;
mod repository;
mod runs;
mod trees;

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::counted;
use crate::arguments::{Doctor, Output};
use crate::command::terminal::Terminal;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::refuse_within_session;

use finding::{Finding, State};

/// The findings of the doctor, including successful checks.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct DoctorDocument {
    /// The findings in the order of the checks.
    findings: Vec<Finding>,
}

pub(crate) async fn run(data_dir: &Path, arguments: &Doctor) -> Result<Exit> {
    if arguments.fix {
        refuse_within_session("doctor --fix", data_dir)?;
    }
    let mut findings = vec![machine::git().await, machine::disk(data_dir), machine::sandbox()];
    findings.extend(data::directory(data_dir, arguments.fix));
    findings.extend(data::owner(data_dir, arguments.fix).await);
    findings.extend(trees::look(data_dir, arguments.fix).await);
    findings.extend(runs::look(data_dir).await);
    if arguments.dir.join(".git").exists() {
        findings.extend(repository::look(&arguments.dir, arguments.fix).await);
    }
    findings.extend(project::look(data_dir, &arguments.dir, arguments.fix).await);
    let document = DoctorDocument { findings };
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => {
            let rows: Vec<Vec<String>> = document.findings.iter().map(Finding::cells).collect();
            term::print(Terminal::here().table(&["SUBJECT", "STATE", "FINDING"], &rows));
        }
    }
    let findings = &document.findings;
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let problems = count(State::Problem);
    let warnings = count(State::Warning);
    if findings.iter().any(|finding| finding.can_be_fixed) {
        term::say("`longhaul doctor --fix` fixes the findings marked with *");
    }
    let shown = counted(problems as u64, "problem");
    let rest = counted(warnings as u64, "warning");
    term::say(format!("{shown}, {rest}"));
    Ok(if problems == 0 { Exit::Ok } else { Exit::Finding })
}
