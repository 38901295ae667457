//! Typed access to the keys of one entry; values of the wrong type are reported with their place.

use serde_json::{Map, Value};

use super::report::{Report, shown};
use crate::error::Problem;

/// Reads one entry and reports its problems.
pub(super) struct Reader<'a> {
    pub(super) entry: &'a Map<String, Value>,
    pub(super) index: usize,
    pub(super) place: String,
    pub(super) id: Option<String>,
    pub(super) report: &'a mut Report,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        entry: &'a Map<String, Value>,
        index: usize,
        place: String,
        report: &'a mut Report,
    ) -> Self {
        Self { entry, index, place, id: None, report }
    }

    /// The elements of an array, or the single value; invalid ones are reported. `null` counts as
    /// absent.
    pub(super) fn listed<T>(
        &mut self,
        key: &str,
        advice: &str,
        take: impl Fn(&Value) -> Option<T>,
    ) -> Vec<T> {
        let values = match self.value(key) {
            None => return Vec::new(),
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        let mut taken = Vec::with_capacity(values.len());
        for value in values.iter().filter(|value| !value.is_null()) {
            match take(value) {
                Some(item) => taken.push(item),
                None => self.problem(key, format!("found {}", shown(value)), advice),
            }
        }
        taken
    }

    pub(super) fn text(&mut self, keys: &[&str]) -> Option<String> {
        self.typed(keys, "write a text", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn flag(&mut self, keys: &[&str]) -> Option<bool> {
        self.typed(keys, "write true or false", Value::as_bool)
    }

    pub(super) fn reference(&mut self, key: &str, value: Option<&Value>) -> Option<String> {
        let value = value.filter(|value| !value.is_null())?;
        let text = reference_text(value);
        if text.is_none() {
            self.problem(key, format!("found {}", shown(value)), "write a text or a whole number");
        }
        text
    }

    /// The value of the first spelling that exists and is not `null`; a wrong type is reported.
    pub(super) fn typed<T>(
        &mut self,
        keys: &[&str],
        advice: &str,
        take: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let key = keys.iter().copied().find(|key| self.value(key).is_some())?;
        let value = self.value(key)?;
        let taken = take(value);
        if taken.is_none() {
            self.problem(key, format!("found {}", shown(value)), advice);
        }
        taken
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.entry.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn problem(&mut self, field: &str, found: String, advice: &str) {
        let place = self.place.clone();
        let id = self.id.clone();
        self.report.problem(Problem {
            place,
            id,
            field: field.to_owned(),
            found,
            advice: advice.to_owned(),
            repair: None,
        });
    }

    pub(super) fn label(&self) -> String {
        self.id.as_ref().map_or_else(|| self.place.clone(), |id| format!("{} `{id}`", self.place))
    }
}

/// An id or a name: a text or a whole number.
pub(super) fn reference_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}
