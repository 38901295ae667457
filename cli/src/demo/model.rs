//! The scripted model of `longhaul demo --agent api`: it writes the prepared solutions, step by
//! step, from its conversation.

use longhaul_model_server::{Answer, Part, Reply, Request};
use longhaul_workflows::prompt::SUMMARISE;
use serde_json::json;

use super::template::TEMPLATE;

/// The reply of the model.
pub(super) fn reply(request: &Request) -> Reply {
    let Some(feature) = feature(request) else { return Answer::text("Which feature?").into() };
    let plan = Plan::of(&feature, request);
    if request.last_text().is_some_and(|text| text == SUMMARISE) {
        return plan.summary().into();
    }
    plan.next_step(request).into()
}

/// The feature of a conversation: the first word in backticks of its prompt.
fn feature(request: &Request) -> Option<String> {
    request.parts().find_map(|part| match part {
        Part::Text(text) => text.split('`').nth(1).map(str::to_owned),
        _ => None,
    })
}

/// The work on a feature: its files, and those that are written.
struct Plan {
    feature: String,
    files: Vec<(String, &'static str)>,
    written: Vec<String>,
}

impl Plan {
    fn of(feature: &str, request: &Request) -> Self {
        let folder = format!("agent/solutions/{feature}/");
        let content = |path: &str| {
            let name = format!("{folder}{path}");
            TEMPLATE.iter().find(|(known, _)| *known == name).map(|(_, content)| *content)
        };
        let steps = content("steps").unwrap_or_default().lines();
        let files: Vec<(String, &str)> = steps
            .filter_map(|step| step.split(' ').next())
            .filter_map(|path| Some((path.to_owned(), content(path)?)))
            .collect();
        let is_written = |path: &str| request.parts().any(|part| has_written(part, path));
        let written =
            files.iter().map(|(path, _)| path.clone()).filter(|path| is_written(path)).collect();
        Self { feature: feature.to_owned(), files, written }
    }

    fn summary(&self) -> Answer {
        let done: Vec<String> = self.written.iter().map(|path| format!("wrote {path}")).collect();
        let open: Vec<String> = self
            .open()
            .map(|(path, _)| format!("write {path}"))
            .chain(["run the tests".into()])
            .collect();
        let summary = json!({
            "objective": format!("The feature {} with its tests.", self.feature),
            "completed": done,
            "next_steps": open,
            "decisions": ["The acceptance tests say what is right."],
        });
        Answer::call("summary", &summary)
    }

    fn open(&self) -> impl Iterator<Item = &(String, &'static str)> {
        self.files.iter().filter(|(path, _)| !self.written.contains(path))
    }

    fn next_step(&self, request: &Request) -> Answer {
        let feature = &self.feature;
        let has_called = |name: &str| {
            request
                .parts()
                .any(|part| matches!(part, Part::Call { name: called, .. } if called == name))
        };
        if self.written.is_empty() && !has_called("read") {
            let tests = json!({ "path": format!("tests/acceptance/{feature}.rs") });
            return Answer::text("The tests first.").and_call("read", &tests.to_string());
        }
        if let Some((path, content)) = self.open().next() {
            let input = json!({ "path": path, "content": content });
            return Answer::text(format!("Now {path}.")).and_call("write", &input.to_string());
        }
        if !has_called("shell") {
            let command = format!("cargo test --quiet --offline --test acceptance {feature}::");
            return Answer::call("shell", &json!({ "command": command }));
        }
        Answer::call("finish", &json!({ "summary": format!("{feature} passes its tests.") }))
    }
}

/// Whether a part of the conversation shows that a file is written: the call, or a summary.
fn has_written(part: &Part, path: &str) -> bool {
    match part {
        Part::Call { name, input } => {
            name == "write"
                && serde_json::from_str::<serde_json::Value>(input)
                    .is_ok_and(|input| input["path"] == path)
        }
        Part::Text(text) => text.contains(&format!("wrote {path}")),
        _ => false,
    }
}
