//! Showing what happens in a batch.

use std::collections::BTreeMap;

use serde_json::json;

use crate::arguments::Shown;
use crate::command::run::Progress;
use crate::status::StatusDocument;
use crate::term;

/// What was shown last.
pub(super) enum Changes {
    Text(Progress),
    /// The states of projects and of their features, by name.
    Json(BTreeMap<(String, String), String>),
    None,
}

impl Changes {
    pub(super) fn new(shown: Shown) -> Self {
        match shown {
            Shown::Text => Self::Text(Progress::new()),
            Shown::Json => Self::Json(BTreeMap::new()),
            Shown::None => Self::None,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Shows that a project is in another state.
    pub(super) fn project(&mut self, name: &str, state: &str) {
        let Self::Json(known) = self else { return };
        if known.insert((name.to_owned(), String::new()), state.to_owned()).as_deref() != Some(state) {
            line(&json!({ "project": name, "state": state }));
        }
    }

    /// Shows what changed in the features of a project.
    pub(super) fn features(&mut self, name: &str, document: &StatusDocument) {
        match self {
            Self::Text(progress) => progress.show(document),
            Self::None => {}
            Self::Json(known) => {
                for feature in
                    document.features.iter().filter(|feature| feature.run.is_some() || feature.reason.is_some())
                {
                    let shown = json!({
                        "project": name, "feature": feature.id, "status": feature.status, "passes": feature.passes,
                        "step": feature.step, "reason": feature.reason, "run": feature.run,
                    });
                    let text = shown.to_string();
                    let key = (name.to_owned(), feature.id.clone());
                    if known.get(&key) != Some(&text) {
                        line(&shown);
                        known.insert(key, text);
                    }
                }
            }
        }
    }

    pub(super) fn finish(&mut self) {
        if let Self::Text(progress) = self {
            progress.finish();
        }
    }
}

fn line(what: &serde_json::Value) {
    let mut line = json!({ "schema": "longhaul.progress/1", "at": chrono::Utc::now() });
    if let (Some(line), Some(what)) = (line.as_object_mut(), what.as_object()) {
        line.extend(what.clone());
    }
    term::print(line);
}
