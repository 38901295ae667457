//! A file of every shape in which backlogs are found.

use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Imported, Options, Shape};

/// The files, by their shapes.
pub(crate) const FILES: [(Shape, &str); 15] = [
    (Shape::Quickstart, include_str!("quickstart.json")),
    (Shape::Adk, include_str!("adk.json")),
    (Shape::AdkMeta, include_str!("adk-meta.json")),
    (Shape::AdkTests, include_str!("adk-tests.json")),
    (Shape::Ada, include_str!("ada.json")),
    (Shape::Ralph, include_str!("ralph.json")),
    (Shape::Beads, include_str!("beads.jsonl")),
    (Shape::TaskMaster, include_str!("task-master.json")),
    (Shape::TasksMd, include_str!("tasks-md.md")),
    (Shape::Checklist, include_str!("checklist.md")),
    (Shape::SpecKit, include_str!("spec-kit.md")),
    (Shape::Kiro, include_str!("kiro.md")),
    (Shape::Junit, include_str!("junit.xml")),
    (Shape::Github, include_str!("github.json")),
    (Shape::List, include_str!("list.json")),
];

/// A backlog that is read without complaint.
pub(crate) fn imported(text: &str) -> Imported {
    import::read(text, &Options::default()).unwrap()
}

/// A list with all that is in a backlog.
pub(crate) fn list_of(imported: &Imported) -> FeatureList {
    let mut list = FeatureList::create("p", &[]).unwrap();
    let merged = import::merge(&mut list, imported, false).unwrap();
    assert_eq!(merged.added.len(), imported.items.len());
    list
}
