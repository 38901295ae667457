//! `longhaul doctor`: what keeps Longhaul from working here, one line a matter, each with what to do.

mod data;
mod finding;
mod machine;
mod project;
mod trees;

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use crate::arguments::{Doctor, Output};
use crate::exit::Exit;
use crate::term;

use finding::{Finding, State};

pub(crate) async fn run(data_dir: &Path, arguments: &Doctor) -> Result<Exit> {
    let mut findings = vec![machine::git().await, machine::disk(data_dir)];
    findings.extend(data::directory(data_dir, arguments.fix));
    findings.extend(data::owner(data_dir, arguments.fix).await);
    findings.extend(trees::look(data_dir).await);
    findings.extend(project::look(data_dir, &arguments.dir, arguments.fix).await);
    match arguments.output {
        Output::Json => {
            let document = json!({ "schema": "longhaul.doctor/1", "findings": findings });
            term::print(serde_json::to_string_pretty(&document)?);
        }
        Output::Table => {
            let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or_default();
            for finding in &findings {
                term::print(finding.text(width));
            }
        }
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let (problems, warnings) = (count(State::Problem), count(State::Warning));
    if findings.iter().any(|finding| finding.can_be_fixed) {
        term::say("`longhaul doctor --fix` puts right what is marked with *");
    }
    term::say(format!("{problems} problems, {warnings} warnings"));
    Ok(if problems == 0 { Exit::Ok } else { Exit::Finding })
}
