//! The JSON Schemas of the documents of this crate.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::document::{Document, Titled};

/// Implements `Document` for each type with a name and a version, and defines `NAMES` and `of`.
#[macro_export]
macro_rules! documents {
    ($($name:literal $version:literal $document:ty,)*) => {
        /// The names of the documents.
        pub const NAMES: &[&str] = &[$($name),*];

        $(impl $crate::document::Document for $document {
            const SCHEMA: &'static str = concat!("longhaul.", $name, "/", $version);
        })*

        /// The schema of a document; `None` if this crate has no such document.
        pub fn of(name: &str) -> Option<schemars::Schema> {
            match name {
                $($name => Some($crate::schema::schema::<$document>()),)*
                _ => None,
            }
        }
    };
}

documents! {
    "describe" 1 crate::views::DescribeDocument,
    "graph" 1 crate::views::GraphDocument,
    "handoff" 1 crate::views::HandoffDocument,
    "list" 1 crate::views::ListDocument,
    "listed" 1 crate::views::list::RunLine,
    "listed_session" 1 crate::views::SessionLine,
    "overview" 1 crate::views::OverviewDocument,
    "session" 1 crate::views::SessionDocument,
    "sessions" 1 crate::views::SessionsDocument,
    "status" 1 crate::status::StatusDocument,
    "transcript" 1 crate::views::TranscriptDocument,
    "transcript_entry" 1 longhaul_workflows::projection::TranscriptEntry,
    "tree" 1 crate::views::TreeDocument,
    "usage" 1 crate::views::UsageDocument,
    "why" 1 crate::views::WhyDocument,
}

/// The schema of a document in its serialised form, without the leniency of its parser.
pub fn schema<D: Document>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Titled<D>>()
}
