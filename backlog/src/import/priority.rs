//! Priority numbers of imported lists: whether the low or the high ones come first.
//!
//! Longhaul takes the highest number first, many tools the lowest. The order is taken from the
//! options, else from a text of the list that explains its priorities, else from dependencies, else
//! from the order of the file.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::entry::Entry;
use super::error::ImportError;
use crate::list::{Report, priority_of_word};
use longhaul_workflows::backlog::Feature;

/// The key of a list that names the order of its priority numbers.
pub(crate) const PRIORITY_ORDER: &str = "priority_order";

/// The order of priority numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityOrder {
    /// The lowest number is the most urgent.
    LowFirst,
    /// The highest number is the most urgent.
    HighFirst,
}

impl PriorityOrder {
    /// Both orders.
    pub const ALL: [Self; 2] = [Self::LowFirst, Self::HighFirst];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LowFirst => "low-first",
            Self::HighFirst => "high-first",
        }
    }

    fn reversed(self) -> Self {
        match self {
            Self::LowFirst => Self::HighFirst,
            Self::HighFirst => Self::LowFirst,
        }
    }

    /// The order that most pairs show, if it is clear.
    fn of_pairs(rising: usize, falling: usize) -> Option<Self> {
        if rising > 0 && rising >= falling * 4 {
            Some(Self::LowFirst)
        } else if falling > 0 && falling >= rising * 4 {
            Some(Self::HighFirst)
        } else {
            None
        }
    }
}

impl fmt::Display for PriorityOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl std::str::FromStr for PriorityOrder {
    type Err = ImportError;

    fn from_str(name: &str) -> Result<Self, ImportError> {
        let unknown = || ImportError::Priority { name: name.to_owned() };
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or_else(unknown)
    }
}

/// The priority numbers of a list and what the list says about them.
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
        asked: Option<PriorityOrder>,
        features: &mut [Feature],
        report: &mut Report,
    ) -> Option<PriorityOrder> {
        let first = &self.numbers.first()?.1;
        let (order, reason) = match (asked, &self.hint, self.format) {
            (Some(order), ..) => (order, "--priority".to_owned()),
            (None, Some((order, place)), _) => (*order, format!("as `{place}` says")),
            (None, None, Some(order)) => (order, "as usual in this format".to_owned()),
            (None, None, None) => self.found(features),
        };
        for (index, priority) in self.in_order(order) {
            if let Some(feature) = features.get_mut(index) {
                feature.priority = priority;
            }
        }
        // A single value for all entries has no order.
        if asked.is_none() && self.numbers.iter().any(|(_, number)| number != first) {
            let start = match order {
                PriorityOrder::LowFirst => "the lowest number in `priority` starts first",
                PriorityOrder::HighFirst => "the highest number in `priority` starts first",
            };
            report.note(format!("{start} ({reason}); --priority {} reverses it", order.reversed()));
        }
        Some(order)
    }

    /// The order by the dependencies, else by the order of the file.
    fn found(&self, features: &[Feature]) -> (PriorityOrder, String) {
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

/// The order that the keys of a list name, beside its entries, with the place of the text.
pub(crate) fn stated(
    list: &Map<String, Value>,
    without: &[&str],
) -> Option<(PriorityOrder, String)> {
    let mut around = list.iter().filter(|(key, _)| !without.contains(&key.as_str()));
    around.find_map(|(key, value)| hint(key, value, false))
}

/// The order that a text about priorities names. `concerns`: a key above is about priorities.
fn hint(key: &str, value: &Value, concerns: bool) -> Option<(PriorityOrder, String)> {
    let concerns = concerns || key.to_lowercase().contains("priorit");
    match value {
        Value::String(text) => {
            let text = text.to_lowercase();
            let order = (concerns || text.contains("priorit")).then(|| order_in(&text))??;
            Some((order, key.to_owned()))
        }
        Value::Array(values) => values.iter().find_map(|value| hint(key, value, concerns)),
        Value::Object(values) => {
            let legend = || concerns.then(|| legend(values))?.map(|order| (order, key.to_owned()));
            values
                .iter()
                .find_map(|(inner, value)| hint(inner, value, concerns))
                .map(|(order, inner)| (order, format!("{key}.{inner}")))
                .or_else(legend)
        }
        _ => None,
    }
}

/// The order that a sentence names.
fn order_in(text: &str) -> Option<PriorityOrder> {
    const LOW: [&str; 20] = [
        "lower number",
        "lowest number",
        "lower is",
        "lower =",
        "lower first",
        "low-first",
        "low first",
        "lowest first",
        "lower value",
        "smaller number",
        "smallest first",
        "ascending",
        "1 first",
        "0 first",
        "1 is first",
        "1 = first",
        "1 is most",
        "1 = most",
        "1 is the most",
        "1 is urgent",
    ];
    const HIGH: [&str; 15] = [
        "higher number",
        "highest number",
        "higher is",
        "higher =",
        "higher first",
        "high-first",
        "high first",
        "highest first",
        "higher value",
        "larger number",
        "larger first",
        "greater number",
        "greater first",
        "descending",
        "highest number",
    ];
    let is_in = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let lowest_is_top = ["0", "1"].iter().any(|number| names_top(text, number));
    let is_reversed = |word: &str, meaning: &str| text.contains(word) && text.contains(meaning);
    if is_reversed("higher number", "lower priority") || lowest_is_top {
        Some(PriorityOrder::LowFirst)
    } else if is_reversed("lower number", "lower priority") {
        Some(PriorityOrder::HighFirst)
    } else if is_in(&LOW) || text.trim() == "asc" {
        Some(PriorityOrder::LowFirst)
    } else if is_in(&HIGH) || text.trim() == "desc" {
        Some(PriorityOrder::HighFirst)
    } else {
        None
    }
}

/// Whether a text says `1 = highest`, `1 is critical`, `1: urgent`.
fn names_top(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let alone = !text[..at].ends_with(|before: char| before.is_ascii_digit() || before == '.');
        let rest = text[at + number.len()..].trim_start();
        let rest = ["is the", "is", "=", ":", "-", "–", "("]
            .iter()
            .find_map(|link| rest.strip_prefix(link))
            .map(|rest| rest.trim_start_matches([' ', '>', '"', '\'']));
        let tops = ["highest", "high", "critical", "urgent", "most", "top"];
        alone && rest.is_some_and(|rest| tops.iter().any(|top| rest.starts_with(top)))
    })
}

/// The order of a table such as `{"1": "critical", "4": "low"}`.
fn legend(values: &Map<String, Value>) -> Option<PriorityOrder> {
    let mut meanings: Vec<(f64, i64)> = values
        .iter()
        .filter_map(|(key, value)| {
            let word = value.as_str()?;
            let word = word.split(|letter: char| !letter.is_alphanumeric()).next()?;
            Some((key.trim_start_matches(['p', 'P']).parse().ok()?, priority_of_word(word)?))
        })
        .collect();
    meanings.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (low, high) = (meanings.first()?.1, meanings.last()?.1);
    match low.cmp(&high) {
        std::cmp::Ordering::Greater => Some(PriorityOrder::LowFirst),
        std::cmp::Ordering::Less => Some(PriorityOrder::HighFirst),
        std::cmp::Ordering::Equal => None,
    }
}
