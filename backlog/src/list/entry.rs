//! Converts one entry to the draft of a feature and reports oddities.

use std::collections::HashSet;
use std::num::NonZeroU64;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::criteria::{MIXED_KEYS, command_of, mixed, text_of};
use super::draft::Draft;
use super::read::{
    APPROVAL_KEYS, CHECK_KEYS, CRITERIA_KEYS, DEPENDS_KEYS, DESCRIPTION_KEYS, NAME_KEYS,
};
use super::reader::{Reader, reference_text};
use super::report::{shortened, shown};
use super::shape::{EntriesAt, spelling};
use super::update::is_extra;
use super::words::{
    CLAIMED_PASSES, PASSES_KEYS, STATUS_KEYS, TESTED_KEYS, claim, priority_of_word, status_of_word,
};
use longhaul_workflows::backlog::{Check, Feature, FeatureId, FeatureStatus};

/// Maximum length of a name that is made from a description, in characters.
const NAME_LEN: usize = 80;

impl Reader<'_> {
    /// The draft of the feature without invalid values, which are reported.
    pub(super) fn draft(mut self, at: EntriesAt) -> Draft {
        self.id = self.reference("id", self.entry.get("id"));
        let description = self.text(&DESCRIPTION_KEYS).unwrap_or_default();
        let name = self.name(&description);
        let claim = claim(self.entry);
        self.judge_claim();
        let feature = Feature {
            id: FeatureId::of_place(self.index),
            name,
            description,
            category: self.text(&["category"]),
            priority: self.priority(at),
            acceptance_criteria: self.criteria(),
            depends_on: Vec::new(),
            checks: self.checks(),
            status: claim.status,
            passes: claim.passes,
            last_tested: claim.last_tested,
            approval: self.flag(&APPROVAL_KEYS).unwrap_or(false),
            extra: self.extra(),
        };
        let depends_key = spelling(self.entry, &DEPENDS_KEYS).unwrap_or("depends_on").to_owned();
        Draft {
            depends_on: self.depends_on(),
            depends_key,
            feature,
            place: self.place,
            id: self.id,
        }
    }

    fn name(&mut self, description: &str) -> String {
        let written = self.text(&NAME_KEYS).filter(|name| !name.trim().is_empty());
        if let Some(name) = written {
            return name;
        }
        let name = name_of_description(description);
        if name.is_empty() {
            let keys: Vec<&str> = self.entry.keys().map(String::as_str).take(8).collect();
            self.problem(
                "name",
                format!("missing, and so is `description` (keys found: {})", keys.join(", ")),
                "write one of them",
            );
        }
        name
    }

    fn priority(&mut self, at: EntriesAt) -> i64 {
        let Some(value) = self.value("priority") else {
            return 0;
        };
        if let Some(number) = value.as_i64() {
            if at.small_priority_first() {
                self.report.guess(
                    "a small number in `priority` is read as sooner, as in user stories",
                    self.label(),
                );
                return number.saturating_neg();
            }
            return number;
        }
        if let Some(number) = value.as_str().and_then(priority_of_word) {
            self.report.guess(format!("the priority {value} is read as {number}"), self.label());
            return number;
        }
        let advice =
            "write a whole number, higher for sooner, or one of critical, high, medium, low";
        self.problem("priority", format!("found {}", shown(value)), advice);
        0
    }

    fn criteria(&mut self) -> Vec<String> {
        let mut criteria: Vec<String> = Vec::new();
        for key in CRITERIA_KEYS {
            criteria.extend(self.listed(key, "write a text or an array of texts", text_of));
        }
        for key in MIXED_KEYS {
            criteria.extend(self.value(key).map(|value| mixed(key, value).0).unwrap_or_default());
        }
        let mut seen = HashSet::new();
        criteria.retain(|text| seen.insert(text.clone()));
        criteria
    }

    fn depends_on(&mut self) -> Vec<String> {
        let advice = "write an array of ids or names of other entries";
        DEPENDS_KEYS.iter().flat_map(|key| self.listed(key, advice, reference_text)).collect()
    }

    fn checks(&mut self) -> Vec<Check> {
        let advice = "write a shell command, or {\"name\", \"run\", \"timeout_seconds\"} with a whole \
                      number of seconds above 0";
        let mut found: Vec<(Option<String>, Check)> =
            CHECK_KEYS.iter().flat_map(|key| self.listed(key, advice, check_of)).collect();
        for run in self.commands() {
            if found.iter().all(|(_, check)| check.run != run) {
                found.push((None, Check { run, ..Check::default() }));
            }
        }
        let mut checks: Vec<Check> = Vec::with_capacity(found.len());
        let alone = found.len() == 1;
        for (number, (name, check)) in found.into_iter().enumerate() {
            let made_up = if alone { "check".to_owned() } else { format!("check-{}", number + 1) };
            let name = name.unwrap_or(made_up);
            if checks.iter().any(|earlier| earlier.name == name) {
                self.problem(
                    "checks",
                    format!("the name \"{name}\" occurs twice"),
                    "give each check a name of its own",
                );
            }
            checks.push(Check { name, ..check });
        }
        checks
    }

    /// The commands of criteria that are objects, and of keys that hold commands or sentences.
    fn commands(&self) -> Vec<String> {
        let criteria = CRITERIA_KEYS.iter().filter_map(|key| self.value(key)?.as_array()).flatten();
        let commands = criteria.filter_map(command_of).map(str::to_owned);
        let others = MIXED_KEYS.iter().filter_map(|key| Some(mixed(key, self.value(key)?).1));
        commands.chain(others.flatten()).collect()
    }

    /// The keys that no field is read from, without claims.
    fn extra(&self) -> Map<String, Value> {
        let keys = self.entry.iter().filter(|(key, _)| is_extra(key));
        keys.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Reports wrong types in the claim, and conversions.
    fn judge_claim(&mut self) {
        let word = self.text(&STATUS_KEYS);
        let passes = self.flag(&PASSES_KEYS);
        let tested = self.text(&TESTED_KEYS);
        let status = claim(self.entry).status;
        if self.flag(&["deprecated"]) == Some(true) {
            self.report.guess("deprecated: read as blocked", self.label());
        } else if let Some(word) = word.as_deref().filter(|word| *word != status.as_str()) {
            let known = if status_of_word(word).is_some() { "" } else { "not known, " };
            self.report
                .guess(format!("the status `{word}` is {known}read as {status}"), self.label());
        }
        if let (Some(_), Some(passes)) = (&word, passes)
            && passes != (status == FeatureStatus::Completed)
            // An import writes this on purpose and keeps the claim under its own key.
            && !self.entry.contains_key(CLAIMED_PASSES)
        {
            self.report.guess(
                format!(
                    "the status {status} and passes = {passes} contradict each other: neither is \
                     believed"
                ),
                self.label(),
            );
        }
        if let Some(tested) = tested.filter(|text| !text.is_empty() && !looks_like_a_date(text)) {
            self.report.guess(
                format!("last tested at `{}`: not a date", shortened(&tested, 40)),
                self.label(),
            );
        }
    }
}

/// The name of an entry with only a description: the beginning of its first line.
pub(crate) fn name_of_description(description: &str) -> String {
    shortened(description.trim().lines().next().unwrap_or_default(), NAME_LEN)
}

/// A check in list format.
#[derive(Deserialize)]
struct WrittenCheck {
    name: Option<String>,
    #[serde(alias = "command", alias = "cmd")]
    run: String,
    #[serde(alias = "timeout")]
    timeout_seconds: Option<NonZeroU64>,
    hidden: Option<bool>,
    message: Option<String>,
}

/// A check with its explicit name.
fn check_of(value: &Value) -> Option<(Option<String>, Check)> {
    let written = match value {
        Value::String(run) => WrittenCheck {
            name: None,
            run: run.clone(),
            timeout_seconds: None,
            hidden: None,
            message: None,
        },
        Value::Object(_) => WrittenCheck::deserialize(value).ok()?,
        _ => return None,
    };
    let WrittenCheck { name, run, timeout_seconds, hidden, message } = written;
    let is_named = name.as_ref().is_none_or(|name| !name.trim().is_empty());
    let check = Check {
        name: String::new(),
        timeout_seconds: timeout_seconds.map(NonZeroU64::get),
        hidden: hidden.unwrap_or_default(),
        message: message.map(|message| message.lines().next().unwrap_or_default().to_owned()),
        run,
    };
    (is_named && !check.run.trim().is_empty()).then_some((name, check))
}

/// Whether a text begins like `2026-01-18`.
fn looks_like_a_date(text: &str) -> bool {
    let pattern = b"0000-00-00";
    let fits = |(byte, form): (u8, &u8)| {
        if *form == b'0' { byte.is_ascii_digit() } else { byte == b'-' }
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern).all(fits)
}
