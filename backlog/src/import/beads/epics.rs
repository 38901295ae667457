//! Epics: containers of issues. A link to an epic is a link to its issues, and a link of an epic is
//! one of each of its issues.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::links::{Kind, Link, links_of};

/// The epics with children, and their links.
#[derive(Default)]
pub(super) struct Epics<'e> {
    /// The direct children of each epic, in the order of the file.
    children: BTreeMap<&'e str, Vec<&'e str>>,
    /// The epic of each child.
    above: HashMap<&'e str, &'e str>,
    titles: HashMap<&'e str, &'e str>,
    /// The dependencies of each epic.
    needs: HashMap<&'e str, Vec<&'e str>>,
}

impl<'e> Epics<'e> {
    pub(super) fn new(issues: impl Iterator<Item = &'e Map<String, Value>> + Clone) -> Self {
        let text =
            |issue: &'e Map<String, Value>, key: &str| issue.get(key).and_then(Value::as_str);
        let is_epic = |issue: &&Map<String, Value>| {
            issue.get("issue_type").and_then(Value::as_str) == Some("epic")
        };
        let mut epics = Self::default();
        for epic in issues.clone().filter(is_epic) {
            if let Some(id) = text(epic, "id") {
                epics.children.insert(id, Vec::new());
                epics.titles.insert(id, text(epic, "title").unwrap_or_default());
                let needs = links_of(epic).filter(|link| link.kind() == Kind::Dependency);
                epics.needs.insert(id, needs.filter_map(Link::target).collect());
            }
        }
        for issue in issues {
            let Some(id) = text(issue, "id") else { continue };
            let parent = links_of(issue)
                .filter(|link| link.kind() == Kind::Parent)
                .find_map(Link::target)
                .or_else(|| text(issue, "parent"))
                // The ids of children are those of their epic with a number.
                .or_else(|| Some(id.rsplit_once('.')?.0));
            let Some(parent) = parent.filter(|parent| *parent != id) else { continue };
            if let Some((parent, _)) = epics.children.get_key_value(parent) {
                let parent = *parent;
                if !epics.above.contains_key(id) {
                    epics.above.insert(id, parent);
                    epics.children.entry(parent).or_default().push(id);
                }
            }
        }
        epics.children.retain(|_, children| !children.is_empty());
        epics
    }

    /// Whether an issue is an epic with children.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.children.contains_key(id)
    }

    /// The id and the title of the epic of an issue.
    pub(super) fn above(&self, id: &str) -> Option<(&'e str, &'e str)> {
        let epic = self.above.get(id)?;
        Some((epic, self.titles.get(epic).copied().unwrap_or_default()))
    }

    /// The issues that a dependency of an issue on `target` means: `target`, or the issues of that
    /// epic. An issue does not wait for its own epic.
    pub(super) fn issues_of(&self, id: &str, target: &'e str) -> Vec<&'e str> {
        if !self.contains(target) {
            return vec![target];
        }
        if self.ancestors(id).any(|epic| epic == target) {
            return Vec::new();
        }
        self.leaves(target).into_iter().collect()
    }

    /// The dependencies that an issue has from its epics, outside of them.
    pub(super) fn inherited(&self, id: &str) -> Vec<&'e str> {
        let mut found = Vec::new();
        for epic in self.ancestors(id) {
            let own = self.leaves(epic);
            let needs = self.needs.get(epic).into_iter().flatten();
            let issues = needs.flat_map(|target| self.issues_of(id, target));
            found.extend(issues.filter(|issue| !own.contains(issue) && *issue != id));
        }
        found
    }

    /// The epics above an issue, the nearest first.
    fn ancestors(&self, id: &str) -> impl Iterator<Item = &'e str> {
        let mut seen = BTreeSet::new();
        std::iter::successors(self.above.get(id).copied(), |epic| self.above.get(epic).copied())
            .take_while(move |epic| seen.insert(*epic))
    }

    /// All issues below an epic that are no containers.
    fn leaves(&self, epic: &'e str) -> BTreeSet<&'e str> {
        let mut leaves = BTreeSet::new();
        let mut seen = BTreeSet::from([epic]);
        let mut open = vec![epic];
        while let Some(container) = open.pop() {
            for child in self.children.get(container).into_iter().flatten() {
                if !self.contains(child) {
                    leaves.insert(*child);
                } else if seen.insert(child) {
                    open.push(child);
                }
            }
        }
        leaves
    }
}
