//! Priority numbers of imported lists: whether the low or the high ones come first.
//!
//! Longhaul takes the highest number first, many tools the lowest. The order is taken from the
//! options, else from a text of the list that explains its priorities, else from dependencies, else
//! from the order of the file.

use serde_json::{Map, Number, Value};

use super::entry::Entry;
use crate::list::{PriorityOrder, Report, priority_of_word, stated};
use longhaul_workflows::backlog::Feature;

/// The priority numbers of a list, and the statements of the list about them.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    /// Each with the index of its entry.
    numbers: Vec<(usize, Number)>,
    /// The order that a text of the list names, with the place of the text.
    hint: Option<(PriorityOrder, String)>,
    /// The order of the format; the entries cannot contradict it.
    format: Option<PriorityOrder>,
}

impl Priorities {
    /// Removes the priority of an entry if it is a number, or a word without a meaning.
    pub(super) fn take(&mut self, index: usize, entry: &mut Entry<'_>, report: &mut Report) {
        let number = match entry.own.get("priority") {
            Some(Value::Number(number)) => number.clone(),
            Some(Value::String(text)) => match text.trim().parse::<Number>() {
                Ok(number) => number,
                Err(_) if priority_of_word(text).is_some() => return,
                Err(_) => {
                    let what = format!("the priority `{text}` is not known: read as none");
                    report.guess(what, entry.place.to_string());
                    return entry.unread("priority");
                }
            },
            _ => return,
        };
        entry.own.shift_remove("priority");
        self.numbers.push((index, number));
    }

    /// Fixes the order of the format.
    pub(super) fn are_of_format(&mut self, order: PriorityOrder) {
        self.format = Some(order);
    }

    /// Looks for an explanation in the keys of the list as a whole.
    pub(super) fn look_for_hint(&mut self, list: &Map<String, Value>, without: &[&str]) {
        self.hint = stated(list, without);
    }

    /// Writes the priorities into the features, and reports the order. The index of a number is the
    /// place of its feature.
    pub(super) fn settle(
        &self,
        requested: Option<PriorityOrder>,
        features: &mut [Feature],
        report: &mut Report,
    ) -> Option<PriorityOrder> {
        let first = &self.numbers.first()?.1;
        let (order, reason) = match (requested, &self.hint, self.format) {
            (Some(order), ..) => (order, "--priority".to_owned()),
            (None, Some((order, place)), _) => (*order, format!("as `{place}` says")),
            (None, None, Some(order)) => (order, "as usual in this format".to_owned()),
            (None, None, None) => self.guessed_order(features),
        };
        for (index, priority) in self.in_order(order) {
            if let Some(feature) = features.get_mut(index) {
                feature.priority = priority;
            }
        }
        // A single value for all entries has no order.
        if requested.is_none() && self.numbers.iter().any(|(_, number)| number != first) {
            let start = match order {
                PriorityOrder::LowFirst => "the lowest number in `priority` starts first",
                PriorityOrder::HighFirst => "the highest number in `priority` starts first",
            };
            report.note(format!("{start} ({reason}); --priority {} reverses it", order.reversed()));
        }
        Some(order)
    }

    /// The order by the dependencies, else by the order of the file.
    fn guessed_order(&self, features: &[Feature]) -> (PriorityOrder, String) {
        if let Some(order) = self.of_dependencies(features) {
            return (order, "as the dependencies show".to_owned());
        }
        let values: Vec<f64> = self.values().map(|(_, value)| value).collect();
        let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let falling = values.windows(2).filter(|pair| pair[0] > pair[1]).count();
        let order = PriorityOrder::of_pairs(rising, falling);
        order.map_or_else(
            || (PriorityOrder::HighFirst, "nothing in the file says so".to_owned()),
            |order| (order, "as the order of the file shows".to_owned()),
        )
    }

    fn of_dependencies(&self, features: &[Feature]) -> Option<PriorityOrder> {
        let values: std::collections::HashMap<_, _> = self
            .values()
            .filter_map(|(index, value)| Some((&features.get(index)?.id, value)))
            .collect();
        let pairs = features.iter().flat_map(|feature| {
            feature.depends_on.iter().map(|needed| (values.get(needed), values.get(&feature.id)))
        });
        let pairs: Vec<(f64, f64)> =
            pairs.filter_map(|(needed, own)| Some((*needed?, *own?))).collect();
        let rising = pairs.iter().filter(|(needed, own)| needed < own).count();
        let falling = pairs.iter().filter(|(needed, own)| needed > own).count();
        PriorityOrder::of_pairs(rising, falling)
    }

    fn values(&self) -> impl Iterator<Item = (usize, f64)> {
        self.numbers.iter().filter_map(|(index, number)| Some((*index, number.as_f64()?)))
    }

    /// The priorities as Longhaul numbers them. Fractions are replaced by their ranks.
    fn in_order(&self, order: PriorityOrder) -> Vec<(usize, i64)> {
        let whole: Option<Vec<(usize, i64)>> = self
            .numbers
            .iter()
            .map(|(index, number)| Some((*index, whole_number(number)?)))
            .collect();
        let numbers = whole.unwrap_or_else(|| {
            let mut ranks: Vec<f64> = self.values().map(|(_, value)| value).collect();
            ranks.sort_by(f64::total_cmp);
            ranks.dedup();
            let rank = |value: f64| {
                let below = ranks.partition_point(|other| *other < value);
                i64::try_from(below).unwrap_or(i64::MAX).saturating_add(1)
            };
            self.values().map(|(index, value)| (index, rank(value))).collect()
        });
        let ordered = |number: i64| match order {
            PriorityOrder::LowFirst => number.saturating_neg(),
            PriorityOrder::HighFirst => number,
        };
        numbers.into_iter().map(|(index, number)| (index, ordered(number))).collect()
    }
}

/// The integer that a number means: `2` and `2.0`.
fn whole_number(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let value = number.as_f64()?;
        // A priority beyond 2^53 has no exact fraction; such a list is ranked.
        let is_whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
        is_whole.then(|| format!("{value:.0}").parse().ok())?
    })
}
