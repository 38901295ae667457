//! `longhaul feature export`: the list of a project as another tool reads it.

use std::path::Path;

use anyhow::Result;
use longhaul_activities::project;
use longhaul_backlog::{FeatureList, export};
use longhaul_server::{ListFile, is_same, write};

use super::terminal::counted;
use crate::arguments::FeatureExport;
use crate::command::refuse_to_write_over;
use crate::exit::{Exit, failed, usage};
use crate::place::Project;
use crate::term;

pub(super) async fn run(dir: &Path, arguments: &FeatureExport) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let loaded = project::load(&project.root).await.map_err(failed)?;
    let list_path = project.root.join(&loaded.list_file);
    let list = if list_path.exists() {
        ListFile::open(&project.root, None)?.list
    } else {
        let name = project.root.file_name().map(|name| name.to_string_lossy().into_owned());
        FeatureList::create(&name.unwrap_or_default(), &loaded.features).map_err(usage)?
    };
    let text = export::write(&list, arguments.to, &project.root.to_string_lossy());
    let Some(file) = &arguments.output_file else {
        term::print_data(text.trim_end_matches('\n'));
        return Ok(Exit::Ok);
    };
    if is_same(file, &list_path) {
        return Err(usage(format!(
            "{} is the project's own list: name another file",
            file.display()
        )));
    }
    refuse_to_write_over(file, arguments.force)?;
    write(file, &text)?;
    let features = counted(list.features().len() as u64, "feature");
    term::say(format!("wrote {features} to {} as {}", file.display(), arguments.to));
    Ok(Exit::Ok)
}
