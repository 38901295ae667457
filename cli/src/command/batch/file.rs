//! The file of a batch: its format, and the resulting plan.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Result;
use longhaul_activities::files::placed::{self, LONGEST_SETTINGS, Links};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{Entry, Overrides, Plan};
use longhaul_workflows::settings::Settings;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::exit::usage;

use super::BatchRequest;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The id of the batch.
    batch: String,
    /// Concurrent agents in projects with a label.
    #[serde(default)]
    limits: BTreeMap<String, u32>,
    at_once: Option<NonZeroU32>,
    #[serde(default, rename = "project", alias = "projects")]
    projects: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Relative to the batch file.
    dir: PathBuf,
    name: Option<String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    parallel: Option<u32>,
    /// Variables for the agent: `{ file = "PATH" }`, relative to this file, or `{ env = "NAME" }`.
    #[serde(default)]
    env: Map<String, Value>,
    #[serde(default)]
    limits: Map<String, Value>,
    #[serde(default)]
    settings: Map<String, Value>,
}

/// Reads the file and checks each of its projects; one error lists all problems.
pub(super) async fn read(path: &Path) -> Result<BatchRequest> {
    let wrong = |error: String| usage(format!("{}: {error}", path.display()));
    let text = placed::read_text(path, Links::Followed, LONGEST_SETTINGS).map_err(usage)?;
    let text = text.ok_or_else(|| wrong("there is no such file".into()))?;
    let is_json = path.extension().is_some_and(|ending| ending == "json")
        || text.trim_start().starts_with('{');
    let file: File = if is_json {
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
    } else {
        toml::from_str(&text).map_err(|error| wrong(error.to_string()))?
    };
    let document =
        if is_json { serde_json::from_str(&text).ok() } else { toml::from_str(&text).ok() };
    longhaul_activities::nul::refuse(&document.unwrap_or_default()).map_err(wrong)?;
    FeatureId::new(file.batch.clone())
        .map_err(|error| wrong(format!("`batch`: {}", error.reason())))?;
    super::run_of(&file.batch)?;
    if file.projects.is_empty() {
        return Err(wrong(
            "there are no projects in it: write a [[project]] with its `dir`".into(),
        ));
    }
    if let Some(label) =
        file.limits.iter().find(|(label, limit)| !label.contains('=') || **limit == 0)
    {
        return Err(wrong(format!(
            "limits: `{}`: write \"label=value\" = a number above 0",
            label.0
        )));
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let names = names(&file.projects).map_err(wrong)?;
    let mut projects = Vec::new();
    let mut problems = Vec::new();
    for (row, name) in file.projects.iter().zip(&names) {
        match entry(directory, row, name, &file, &names).await {
            Ok(entry) => projects.push(entry),
            Err(error) => problems.push(format!("project `{name}`: {error:#}")),
        }
    }
    if problems.is_empty() {
        problems.extend(same_place(&projects));
    }
    if !problems.is_empty() {
        return Err(wrong(problems.join("\n")));
    }
    let plan = Plan { limits: file.limits, at_once: file.at_once.map(NonZeroU32::get), projects };
    plan.order().map_err(|error| wrong(error.to_string()))?;
    Ok(BatchRequest { id: file.batch, plan, file: None })
}

/// The names of the projects: the given ones, or the names of their directories.
fn names(rows: &[Row]) -> Result<Vec<FeatureId>, String> {
    let name = |row: &Row| {
        let of_dir = || {
            row.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let name = row.name.clone().unwrap_or_else(of_dir);
        FeatureId::new(name).map_err(|error| {
            format!("{}: it needs a `name` of its own: {}", row.dir.display(), error.reason())
        })
    };
    rows.iter().map(name).collect()
}

async fn entry(
    directory: &Path,
    row: &Row,
    name: &FeatureId,
    file: &File,
    names: &[FeatureId],
) -> Result<Entry> {
    let project = crate::command::run::checked(&directory.join(&row.dir)).await?;
    let mut settings = row.settings.clone();
    if let Some(env) = settings.get_mut("agent").and_then(|agent| agent.get_mut("env")) {
        locate(directory, env)?;
    }
    let mut overrides = Overrides::new(settings);
    if let Some(parallel) = row.parallel {
        overrides.set(["project", "parallel"], parallel.into());
    }
    for (limit, value) in &row.limits {
        overrides.set(["limits", limit], value.clone());
    }
    if !row.env.is_empty() {
        let mut env = Value::Object(row.env.clone());
        locate(directory, &mut env)?;
        overrides.set(["agent", "env"], env);
    }
    overrides.apply(Settings::default()).map_err(usage)?;
    let by_dir: HashMap<_, _> =
        file.projects.iter().map(|row| row.dir.to_string_lossy()).zip(names).collect();
    let after = row.after.iter().map(|after| match by_dir.get(after.as_str()) {
        Some(name) => Ok((*name).clone()),
        None => FeatureId::new(after.clone()).map_err(usage),
    });
    let mut labels = row.labels.clone();
    labels.entry("batch".into()).or_insert_with(|| file.batch.clone());
    Ok(Entry {
        name: name.clone(),
        project: project.reference(),
        after: after.collect::<Result<_>>()?,
        priority: row.priority,
        labels,
        overrides,
    })
}

/// Makes the paths of value files absolute, because they are read when a session starts.
fn locate(directory: &Path, env: &mut Value) -> Result<()> {
    for source in env.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(Value::String(file)) = source.get_mut("file") {
            *file = std::path::absolute(directory.join(&*file))?.to_string_lossy().into_owned();
        }
    }
    Ok(())
}

/// The duplicate projects of the file.
fn same_place(projects: &[Entry]) -> Option<String> {
    let mut known = HashMap::new();
    projects.iter().find_map(|entry| {
        let earlier = known.insert(entry.project.id.as_str(), &entry.name)?;
        Some(format!(
            "`{earlier}` and `{}` are the same project: {}",
            entry.name, entry.project.root
        ))
    })
}
