//! The report of an import: keys that were mapped, kept or left out, and entries that were skipped.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul_backlog::import::{DroppedPart, Imported, Item, KeptKey, KnownItem, Merged};
use longhaul_workflows::backlog::FeatureId;

/// A finished import.
pub(super) struct Report<'a> {
    pub(super) file: &'a str,
    pub(super) list: &'a Path,
    pub(super) dry_run: bool,
    pub(super) imported: &'a Imported,
    pub(super) merged: &'a Merged,
}

impl<'a> Report<'a> {
    pub(super) fn added(&self) -> impl Iterator<Item = &'a Item> {
        self.merged.added.iter().map(|index| &self.imported.items[*index])
    }

    /// The kept keys of the added entries.
    pub(super) fn kept(&self) -> Vec<&'a KeptKey> {
        let added: BTreeSet<&FeatureId> = self.added().map(|item| &item.feature.id).collect();
        self.imported
            .kept_extra
            .iter()
            .filter(|kept| kept.id.as_ref().is_some_and(|id| added.contains(id)))
            .collect()
    }

    pub(super) fn not_mapped(&self) -> impl Iterator<Item = &'a DroppedPart> {
        self.imported.not_mapped.iter().chain(&self.merged.not_mapped)
    }

    /// Its text for people.
    pub(super) fn summary(&self) -> String {
        let added = self.merged.added.len();
        let updated = self.merged.updated.len();
        let skipped = self.merged.skipped.len();
        let list = self.list.display();
        let differing =
            self.merged.skipped.iter().filter(|known| !known.differs.is_empty()).count();
        let mut text = match (added, updated, skipped) {
            (0, 0, 0) => format!("{}: nothing to add", self.file),
            (0, 0, skipped) => format!("nothing added: all {skipped} are in {list} already"),
            (0, updated, _) if self.dry_run => {
                format!("would update {} in {list}; nothing was written", features(updated))
            }
            (0, updated, _) => format!("updated {} in {list}", features(updated)),
            (added, _, _) if self.dry_run => {
                format!("would add {} to {list}; nothing was written", features(added))
            }
            (added, _, _) => format!(
                "added {} to {list}; a running Longhaul reads them at once",
                features(added)
            ),
        };
        if added > 0 && updated > 0 {
            text += &format!("; {updated} updated");
        }
        if differing > 0 {
            text += &format!("; {differing} differ there: --update takes them over");
        }
        text
    }

    /// The report for people. A section that is too long for the screen is shortened.
    pub(super) fn text(&self, room: usize) -> String {
        let Imported { shape, items, mapped, notes, .. } = self.imported;
        let added = self.added().map(|item| format!("{}  {}", item.feature.id, item.feature.name));
        let mapped = mapped
            .iter()
            .map(|mapped| format!("{} -> {} ({})", mapped.from, mapped.to, mapped.entries));
        let left =
            self.not_mapped().map(|left| format!("{}: {}: {}", left.place, left.what, left.reason));
        let updated = self.merged.updated.iter().map(|known| {
            let place = &self.imported.items[known.item].place;
            format!("{} ({place}): {}", known.id, known.differs.join(", "))
        });
        let skipped = self.merged.skipped.iter().map(|skipped| self.skipped_line(skipped));
        let title = |done: &'static str, would: &'static str| {
            if self.dry_run { would } else { done }
        };
        let sections: Vec<(&str, Vec<String>)> = [
            (title("added", "would add"), added.collect()),
            ("mapped", mapped.collect()),
            ("kept as extra", self.kept_by_key()),
            ("not mapped", left.collect()),
            (title("updated", "would update"), updated.collect()),
            ("already in the list", skipped.collect()),
            ("notes", notes.clone()),
        ]
        .into_iter()
        .filter(|(_, lines): &(&str, Vec<String>)| !lines.is_empty())
        .collect();
        let lengths: Vec<usize> = sections.iter().map(|(_, lines)| lines.len()).collect();
        let most = longest_section(&lengths, room.saturating_sub(sections.len() + 1));
        let mut text =
            format!("{}: {shape}, {}", self.file, counted(items.len(), "entry", "entries"));
        for (title, lines) in sections {
            text += &format!("\n{title}:");
            for line in first_of(lines, most) {
                text += &format!("\n  {}", printable(&line));
            }
        }
        text
    }

    /// Groups equal keys of several entries in one line.
    fn kept_by_key(&self) -> Vec<String> {
        let mut counted: Vec<(&KeptKey, usize)> = Vec::new();
        for kept in self.kept() {
            let is_same = |other: &KeptKey| other.key == kept.key && other.reason == kept.reason;
            match counted.iter_mut().find(|(other, _)| is_same(other)) {
                Some((_, count)) => *count += 1,
                None => counted.push((kept, 1)),
            }
        }
        let line = |(kept, count): &(&KeptKey, usize)| {
            let renamed = if kept.kept_as == kept.key {
                String::new()
            } else {
                format!(" as {}", kept.kept_as)
            };
            format!("{}{renamed} ({count}): {}", kept.key, kept.reason)
        };
        let around =
            self.merged.kept_keys.iter().map(|kept| format!("{}: {}", kept.place, kept.reason));
        counted.iter().map(line).chain(around).collect()
    }

    fn skipped_line(&self, skipped: &KnownItem) -> String {
        let item = &self.imported.items[skipped.item];
        let differs = if skipped.differs.is_empty() {
            String::new()
        } else {
            format!(": another {} there, left as it is", skipped.differs.join(", "))
        };
        format!("{} ({}){differs}", skipped.id, item.place)
    }
}

fn features(count: usize) -> String {
    counted(count, "feature", "features")
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// How many lines of a section are shown, so that all sections fit if possible; at least 3.
fn longest_section(lengths: &[usize], room: usize) -> usize {
    let fits = |most: &usize| {
        let shown = |length: &usize| if length > most { most + 1 } else { *length };
        lengths.iter().map(shown).sum::<usize>() <= room
    };
    let longest = lengths.iter().copied().max().unwrap_or_default();
    (3..=longest.min(room)).rev().find(fits).unwrap_or(3)
}

/// The first lines, and the number of omitted ones.
fn first_of(mut lines: Vec<String>, most: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(most);
    if more > 0 {
        lines.truncate(most);
        lines.push(format!("and {more} more (--all names all)"));
    }
    lines
}

/// Without control characters, which could steer a terminal.
fn printable(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::longest_section;

    #[test]
    fn sections_share_the_screen() {
        assert_eq!(longest_section(&[2, 5, 4], 40), 5);
        // 13 + 1 lines of the first one, 5 and 8 of the others.
        assert_eq!(longest_section(&[60_000, 5, 8], 27), 13);
        assert_eq!(longest_section(&[60_000, 50, 8], 28), 9);
        assert_eq!(longest_section(&[100, 100], 4), 3);
        assert_eq!(longest_section(&[60_000, 5], usize::MAX), 60_000);
    }
}
