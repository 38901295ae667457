//! Prints documents as JSON.

use anyhow::Result;

use crate::term;

pub(crate) use longhaul_server::document::{Document, Titled};

/// Prints a document on standard output.
pub(crate) fn print(document: impl Document) -> Result<()> {
    term::print_data(serde_json::to_string_pretty(&Titled::of(document))?);
    Ok(())
}

/// Prints a document as one line, for JSON lines.
pub(crate) fn print_line(document: impl Document) -> Result<()> {
    term::print_data(serde_json::to_string(&Titled::of(document))?);
    Ok(())
}
