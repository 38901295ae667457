//! Collects the entries of all shapes: drafts of features, and an account of each key.

use serde_json::{Map, Value, json};

use super::entry::{DroppedParts, Entry, Leftover};
use super::error::ImportError;
use super::place::Place;
use super::priority::Priorities;
use super::shape::Shape;
use super::source::Source;
use super::source::Syntax;
use super::{Imported, Item, KeptKey, MappedKey, Options, claim};
use crate::list::{
    Draft, EntriesAt, Repairs, Report, Resolved, draft, no_object, resolve, share_check,
};
use longhaul_workflows::backlog::Feature;

/// Keys with file paths in known list formats.
const PATH_KEYS: [&str; 6] = ["scope", "files", "relatedFiles", "artifacts", "planFiles", "tests"];

/// Collects entries.
pub(super) struct Intake<'o> {
    pub(super) options: &'o Options<'o>,
    pub(super) report: Report,
    drafts: Vec<Draft>,
    /// The additional data of each draft.
    besides: Vec<(Place, Vec<Leftover>)>,
    list_keys: Vec<(Place, String, Value)>,
    mapped: Vec<MappedKey>,
    pub(super) not_mapped: DroppedParts,
    /// The default check of entries without one.
    verify: Option<String>,
    pub(super) priorities: Priorities,
}

impl<'o> Intake<'o> {
    pub(super) fn new(options: &'o Options<'o>) -> Self {
        Self {
            options,
            report: Report::default(),
            drafts: Vec::new(),
            besides: Vec::new(),
            list_keys: Vec::new(),
            mapped: Vec::new(),
            not_mapped: DroppedParts::default(),
            verify: None,
            priorities: Priorities::default(),
        }
    }

    /// The entries that are objects; others are reported.
    pub(super) fn objects<'v>(
        &mut self,
        entries: Vec<(Place, &'v Value)>,
    ) -> Vec<(Place, &'v Map<String, Value>)> {
        let mut objects = Vec::with_capacity(entries.len());
        for (place, entry) in entries {
            match entry {
                Value::Object(entry) => objects.push((place, entry)),
                other => self.report.problem(no_object(place.to_string(), other)),
            }
        }
        objects
    }

    /// Adds an entry. `at` gives the direction of priority numbers.
    pub(super) fn add(&mut self, shape: Shape, entry: Entry<'_>, at: EntriesAt) {
        self.add_with(shape, entry, at, None);
    }

    /// Adds an entry and a kept part that is no key of it.
    pub(super) fn add_with(
        &mut self,
        shape: Shape,
        entry: Entry<'_>,
        at: EntriesAt,
        more: Option<Leftover>,
    ) {
        let mut leftovers = entry.leftovers(shape.name());
        leftovers.extend(more);
        let draft =
            draft(&entry.own, self.drafts.len(), entry.place.to_string(), at, &mut self.report);
        entry.mapped.iter().for_each(|(from, to)| self.map(from, to));
        self.not_mapped.0.extend(entry.not_mapped.0);
        self.add_draft(entry.place, draft, leftovers);
    }

    /// Adds an entry whose priority number has no fixed meaning.
    pub(super) fn add_ranked(&mut self, shape: Shape, mut entry: Entry<'_>, at: EntriesAt) {
        self.priorities.take(self.drafts.len(), &mut entry, &mut self.report);
        self.add(shape, entry, at);
    }

    /// Adds a draft that was not read from keys.
    pub(super) fn add_draft(&mut self, place: Place, draft: Draft, leftovers: Vec<Leftover>) {
        for leftover in
            leftovers.iter().filter(|leftover| PATH_KEYS.contains(&leftover.key.as_str()))
        {
            if leads_out(&leftover.value) {
                let what = format!(
                    "a path in `{}` leads out of the project: kept, and never followed",
                    leftover.key
                );
                self.report.guess(what, draft.label());
            }
        }
        self.drafts.push(draft);
        self.besides.push((place, leftovers));
    }

    /// Counts a key that was read into a field.
    pub(super) fn map(&mut self, from: &str, to: &str) {
        match self.mapped.iter_mut().find(|mapped| mapped.from == from && mapped.to == to) {
            Some(mapped) => mapped.entries += 1,
            None => {
                self.mapped.push(MappedKey {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    entries: 1,
                });
            }
        }
    }

    /// Keeps the keys of the list as a whole, except the given ones.
    pub(super) fn keep_around(
        &mut self,
        list: &Map<String, Value>,
        place: &Place,
        without: &[&str],
    ) {
        for (key, value) in list.iter().filter(|(key, _)| !without.contains(&key.as_str())) {
            self.list_keys.push((place.below(key), key.clone(), value.clone()));
        }
    }

    /// A check command for all entries of the list.
    pub(super) fn verify_with(&mut self, command: &str) {
        self.verify = Some(command.to_owned());
    }

    /// Converts the drafts to features, or returns one error with all problems.
    pub(super) fn finish(self, shape: Shape) -> Result<Imported, ImportError> {
        let Self { options, mut report, drafts, mut besides, list_keys, mapped, .. } = self;
        let Self { mut not_mapped, verify, priorities, .. } = self;
        let written: Vec<Option<String>> = drafts.iter().map(|draft| draft.id.clone()).collect();
        let repairs =
            Repairs { drop_dangling: options.drop_dangling, rename_ids: options.rename_ids };
        let Resolved { mut features, dropped } =
            resolve(drafts, options.known, repairs, &mut report);
        for (index, target) in dropped {
            let what = format!("the dependency of `{}` on `{target}`", features[index].id);
            not_mapped.add(besides[index].0.clone(), what, "there is no such entry");
        }
        for ((feature, written), (_, leftovers)) in features.iter().zip(written).zip(&mut besides) {
            if let Some(written) = written.filter(|written| written != feature.id.as_str()) {
                leftovers.push(made_up("original_id", written));
            }
        }
        let priority = priorities.settle(options.priority, &mut features, &mut report);
        if let Some(command) = &verify {
            share_check(command, &mut features, &mut report);
        }
        let mut notes = report.finish()?;
        let mut kept_extra = Vec::new();
        let mut items = Vec::with_capacity(features.len());
        for (feature, (place, leftovers)) in features.into_iter().zip(besides) {
            kept_extra
                .extend(leftovers.iter().map(|leftover| kept_key(&feature, &place, leftover)));
            items.push(item(feature, place, leftovers));
        }
        let claimed = items.iter().filter(|item| claim::is_claimed(&item.extra)).count();
        if claimed > 0 {
            notes.push(format!(
                "{claimed} of {} are said to pass: kept as `claimed_passes`, for Longhaul's gates \
                 to decide",
                items.len()
            ));
        }
        let not_mapped = not_mapped.0;
        Ok(Imported { shape, items, priority, list_keys, mapped, kept_extra, not_mapped, notes })
    }
}

/// An item with its claims separated.
fn item(mut feature: Feature, place: Place, leftovers: Vec<Leftover>) -> Item {
    let mut extra: Map<String, Value> =
        leftovers.into_iter().map(|leftover| (leftover.kept_as, leftover.value)).collect();
    claim::set_apart(&mut feature, &mut extra);
    Item { place, feature, extra }
}

fn kept_key(feature: &Feature, place: &Place, leftover: &Leftover) -> KeptKey {
    KeptKey {
        place: place.below(&leftover.key),
        id: Some(feature.id.clone()),
        key: leftover.key.clone(),
        kept_as: leftover.kept_as.clone(),
        reason: leftover.reason.to_owned(),
    }
}

/// Whether a text, or one of an array, is a path that leads out of a project.
fn leads_out(value: &Value) -> bool {
    match value {
        Value::String(path) => {
            path.starts_with(['/', '~']) || path.split(['/', '\\']).any(|part| part == "..")
        }
        Value::Array(values) => values.iter().any(leads_out),
        Value::Object(values) => values.get("path").is_some_and(leads_out),
        _ => false,
    }
}

/// A kept part that is no key of the file.
pub(super) fn made_up(key: &str, value: impl Into<Value>) -> Leftover {
    Leftover {
        key: key.to_owned(),
        kept_as: key.to_owned(),
        value: json!(value.into()),
        reason: "it describes the source",
    }
}

/// How to detect and read a shape.
pub(super) struct Rule {
    pub(super) syntax: Syntax,
    pub(super) matches: fn(&Source<'_>) -> bool,
    pub(super) read: fn(&Source<'_>, &mut Intake<'_>) -> Result<(), ImportError>,
}
