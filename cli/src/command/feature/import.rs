//! `longhaul feature import`: adds features from the file of another tool to the list of a project.

mod json;
mod report;

use std::io::Read;
use std::path::Path;

use anyhow::Result;
use longhaul_activities::files::placed::{self, LONGEST, Links};
use longhaul_backlog::import::Options;
use longhaul_server::{ImportOutcome, ImportSource};

use crate::arguments::{FeatureImport, Output};
use crate::command::terminal;
use crate::document;
use crate::exit::{Exit, usage};
use crate::place::Project;
use crate::term;
pub(in crate::command) use json::ImportDocument;
use report::Report;

pub(super) async fn run(dir: &Path, arguments: &FeatureImport) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let name = if arguments.file == Path::new("-") {
        "standard input".to_owned()
    } else {
        arguments.file.display().to_string()
    };
    let source = ImportSource {
        name: &name,
        file: Some(&arguments.file),
        bytes: &bytes(&arguments.file, &name)?,
        options: Options {
            shape: arguments.shape,
            tag: arguments.tag.as_deref(),
            priority: arguments.priority,
            drop_dangling: arguments.repairs.drop_dangling,
            rename_ids: arguments.repairs.rename_ids,
            ..Options::default()
        },
        update: arguments.update,
        dry_run: arguments.dry_run,
    };
    let ImportOutcome { list, imported, merged, unchecked } =
        longhaul_server::import_features(&project.root, &source)?;
    let report = Report {
        file: &name,
        list: &list,
        dry_run: arguments.dry_run,
        imported: &imported,
        merged: &merged,
    };
    match arguments.output {
        Output::Table => {
            let room = if arguments.all { usize::MAX } else { terminal::rows() };
            terminal::print(report.text(room));
        }
        Output::Json => document::print(report.document())?,
    }
    term::say(report.summary());
    if unchecked > 0 {
        // Without a check the feature is blocked when it is due.
        let advice = "write `checks` into their entries, or gates for all into longhaul.toml";
        term::say(format!(
            "without a check that tells when it is done: {unchecked} of them; {advice}"
        ));
    }
    Ok(Exit::Ok)
}

fn bytes(file: &Path, name: &str) -> Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(LONGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| usage(format!("cannot read {name}: {error}")))?;
        let is_short = bytes.len() as u64 <= LONGEST;
        return if is_short {
            Ok(bytes)
        } else {
            Err(usage(format!("{name} is longer than {LONGEST} bytes")))
        };
    }
    if file.is_dir() {
        let advice = "name the file of the backlog";
        return Err(usage(format!("{name} is a directory: {advice}")));
    }
    let content = placed::read(file, Links::Followed, LONGEST);
    content
        .map_err(usage)?
        .ok_or_else(|| usage(format!("cannot read {name}: there is no such file")))
}
