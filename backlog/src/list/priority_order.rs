//! The order of priority numbers, as a list states it beside its entries.

use std::fmt;

use serde_json::{Map, Value};

use super::words::priority_of_word;

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

    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::LowFirst => Self::HighFirst,
            Self::HighFirst => Self::LowFirst,
        }
    }

    /// The order that most pairs show, if it is clear.
    pub(crate) fn of_pairs(rising: usize, falling: usize) -> Option<Self> {
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
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("there is no order `{name}`; known are low-first, high-first");
        Self::ALL.into_iter().find(|order| order.name() == name).ok_or_else(unknown)
    }
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
    let low = meanings.first()?.1;
    let high = meanings.last()?.1;
    match low.cmp(&high) {
        std::cmp::Ordering::Greater => Some(PriorityOrder::LowFirst),
        std::cmp::Ordering::Less => Some(PriorityOrder::HighFirst),
        std::cmp::Ordering::Equal => None,
    }
}
