//! `longhaul schema`.

use anyhow::Result;

use crate::arguments::look::Schema;
use crate::exit::{Exit, usage};
use crate::look::schema;
use crate::term;

pub(super) fn run(arguments: &Schema) -> Result<Exit> {
    let Some(name) = &arguments.name else {
        term::print(schema::NAMES.join("\n"));
        return Ok(Exit::Ok);
    };
    let schema = schema::of(name).ok_or_else(|| usage(format!("there is no document `{name}`")))?;
    term::print(serde_json::to_string_pretty(&schema)?);
    Ok(Exit::Ok)
}
