//! Assigns the ids of drafts, and resolves their dependencies.

use std::collections::HashMap;

use super::draft::{Draft, SLUG_LEN, slug};
use super::rename::NewIds;
use super::report::Report;
use crate::error::{Problem, Repair};
use longhaul_workflows::backlog::{Feature, FeatureId};

/// Problems of drafts that are repaired instead of reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Repairs {
    /// Drop dependencies on entries that do not exist, and on the entry itself.
    pub(crate) drop_dangling: bool,
    /// Give entries with an invalid or a taken id another one.
    pub(crate) rename_ids: bool,
}

/// The features of drafts.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// In the order of the drafts.
    pub(crate) features: Vec<Feature>,
    /// The dropped dependencies, as written, with the indexes of their drafts.
    pub(crate) dropped: Vec<(usize, String)>,
}

/// Resolves the ids and dependencies of all drafts, also to `known` features. Failures are
/// reported, and a feature may then be missing.
pub(crate) fn resolve(
    drafts: Vec<Draft>,
    known: &[Feature],
    repairs: Repairs,
    report: &mut Report,
) -> Resolved {
    let ids = assign_ids(&drafts, repairs, report);
    let index = Index::new(&drafts, &ids, known);
    let mut dropped = Vec::new();
    let mut dependencies = Vec::with_capacity(drafts.len());
    for (place, (draft, id)) in drafts.iter().zip(&ids).enumerate() {
        let mut found = index.depends_on(draft, id, report);
        if repairs.drop_dangling {
            let dangling = std::mem::take(&mut found.problems);
            dropped.extend(dangling.into_iter().map(|(written, _)| (place, written)));
        }
        found.problems.into_iter().for_each(|(_, problem)| report.problem(problem));
        dependencies.push(found.ids);
    }
    let parts = drafts.into_iter().zip(ids).zip(dependencies);
    let features = parts
        .map(|((draft, id), depends_on)| Feature { id, depends_on, ..draft.feature })
        .collect();
    Resolved { features, dropped }
}

/// Ids in the file's order. A generated id depends only on earlier entries, so appending never
/// changes one.
fn assign_ids(drafts: &[Draft], repairs: Repairs, report: &mut Report) -> Vec<FeatureId> {
    let mut taken: HashMap<String, usize> = HashMap::with_capacity(drafts.len());
    let mut ids = Vec::with_capacity(drafts.len());
    let mut names = repairs.rename_ids.then(|| NewIds::new(drafts));
    for (index, draft) in drafts.iter().enumerate() {
        let mut id = match &draft.id {
            None => made_up(draft, index, &taken, report),
            Some(written) => match (FeatureId::new(written.clone()), &mut names) {
                (Ok(id), _) => id,
                (Err(_), Some(names)) => names.renamed(draft, written, index, report),
                (Err(error), None) => {
                    report.problem(draft.invalid_id(written, &error));
                    FeatureId::of_place(index)
                }
            },
        };
        if let Some(names) = &mut names
            && taken.contains_key(&id.folded())
        {
            id = names.renamed(draft, id.as_str(), index, report);
        }
        if let Some(&earlier) = taken.get(&id.folded()) {
            let other = &drafts[earlier];
            let origin = if other.id.is_some() { "has it" } else { "got it from its name" };
            let found = format!(
                "\"{id}\" is taken: {} {origin} (capital letters do not count)",
                other.label()
            );
            report.problem(Problem {
                repair: Some(Repair::RenameIds),
                ..draft.problem("id", found, "give one of the two another id".to_owned())
            });
        } else {
            taken.insert(id.folded(), index);
        }
        ids.push(id);
    }
    ids
}

fn made_up(
    draft: &Draft,
    index: usize,
    taken: &HashMap<String, usize>,
    report: &mut Report,
) -> FeatureId {
    let base = slug(&draft.feature.name, SLUG_LEN);
    let base = if base.is_empty() { FeatureId::of_place(index).into() } else { base };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let free = std::iter::once(base.clone()).chain(numbered).find(|id| !taken.contains_key(id));
    let id = free
        .and_then(|text| FeatureId::new(text).ok())
        .unwrap_or_else(|| FeatureId::of_place(index));
    report.guess(
        "no id: one was made from the name or the description",
        format!("{} -> `{id}`", draft.place),
    );
    id
}

/// The dependencies of one entry.
struct Dependencies {
    ids: Vec<FeatureId>,
    /// Those that cannot be resolved, as written.
    problems: Vec<(String, Problem)>,
}

/// Entries by the ids and names that a dependency may use.
struct Index<'d> {
    ids: &'d [FeatureId],
    /// Fallback without regard to case.
    known: &'d [Feature],
    by_id: HashMap<&'d str, usize>,
    by_folded_id: HashMap<String, usize>,
    by_name: HashMap<&'d str, Vec<usize>>,
}

impl<'d> Index<'d> {
    fn new(drafts: &'d [Draft], ids: &'d [FeatureId], known: &'d [Feature]) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::with_capacity(drafts.len());
        for (place, draft) in drafts.iter().enumerate() {
            by_name.entry(draft.feature.name.trim()).or_default().push(place);
        }
        // A renamed entry is found by its old id, unless another entry has that id.
        let written = drafts.iter().enumerate();
        let mut by_id: HashMap<&str, usize> = written
            .rev()
            .filter_map(|(place, draft)| Some((draft.id.as_deref()?, place)))
            .collect();
        by_id.extend(ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)));
        let by_folded_id = ids.iter().enumerate().map(|(place, id)| (id.folded(), place)).collect();
        Self { ids, known, by_id, by_folded_id, by_name }
    }

    fn depends_on(&self, draft: &Draft, own: &FeatureId, report: &mut Report) -> Dependencies {
        let mut found: Vec<FeatureId> = Vec::with_capacity(draft.depends_on.len());
        let mut problems = Vec::new();
        for written in &draft.depends_on {
            match self.find(written) {
                Ok(id) if id == own => {
                    let advice = "take it out: a feature cannot wait for itself".to_owned();
                    let found = format!("\"{written}\" is the entry itself");
                    problems.push((written, found, advice));
                }
                Ok(id) if found.contains(id) => {
                    report.guess("a dependency is named twice: it counts once", draft.label());
                }
                Ok(id) => {
                    if self.only_letters_differ(written, id) {
                        report.guess(
                            format!("the dependency `{written}` is read as `{id}`"),
                            draft.label(),
                        );
                    }
                    found.push(id.clone());
                }
                Err((what, advice)) => problems.push((written, what, advice)),
            }
        }
        let problem = |(written, found, advice): (&String, String, String)| {
            let problem = draft.problem(&draft.depends_key, found, advice);
            (written.clone(), Problem { repair: Some(Repair::DropDangling), ..problem })
        };
        Dependencies { ids: found, problems: problems.into_iter().map(problem).collect() }
    }

    /// Whether an entry was matched without regard to case, which is a guess.
    fn only_letters_differ(&self, written: &str, id: &FeatureId) -> bool {
        id.as_str() != written
            && id.as_str().eq_ignore_ascii_case(written)
            && !self.by_name.contains_key(written.trim())
    }

    /// An entry by id, else by name, else by id without regard to case.
    fn find(&self, written: &str) -> Result<&'d FeatureId, (String, String)> {
        let by_id = self.by_id.get(written).copied();
        let named = self.by_name.get(written.trim()).map_or(&[][..], Vec::as_slice);
        let place = match (by_id, named) {
            (Some(place), _) => Some(place),
            (None, [place]) => Some(*place),
            (None, [first, second, ..]) => {
                let what = format!(
                    "\"{written}\" is the name of `{}` and of `{}`",
                    self.ids[*first], self.ids[*second]
                );
                return Err((what, "name the dependency by its id".to_owned()));
            }
            (None, []) => self.by_folded_id.get(&written.to_ascii_lowercase()).copied(),
        };
        place.map(|place| &self.ids[place]).or_else(|| self.known(written)).ok_or_else(|| {
            let advice = "add that feature, correct the id, or take the dependency out";
            (format!("\"{written}\" is no id and no name of another entry"), advice.to_owned())
        })
    }

    /// A known feature by id, with or without regard to case, else by a unique name.
    fn known(&self, written: &str) -> Option<&'d FeatureId> {
        let by_id = |feature: &&Feature| feature.id.as_str().eq_ignore_ascii_case(written);
        let mut named = self.known.iter().filter(|feature| feature.name == written.trim());
        let by_name = || named.next().filter(|_| named.next().is_none());
        self.known.iter().find(by_id).or_else(by_name).map(|feature| &feature.id)
    }
}
