//! What only the history of a project says: how many features may be worked on at once, and whose turn it is to merge.

use std::collections::VecDeque;

use longhaul_engine::{Activity, Event, EventKind, MessageBody, Payload, RunId};
use longhaul_workflows::contracts::{LoadBacklog, LoadedBacklog};
use longhaul_workflows::feature::{Ready, Turn};
use serde_json::Value;

/// Who merges, who waits to, and the limit of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lane {
    /// The features that have a turn: one, and those that do not go on by themselves.
    pub(super) holders: Vec<String>,
    /// The features that wait, the next one first.
    pub(super) waiting: VecDeque<String>,
    /// How many features may be worked on at once.
    pub(super) parallel: Option<u32>,
}

impl Lane {
    /// The lane of a project, by the last segment of its history.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut lane = Self::default();
        for event in events {
            lane.take(&event.kind);
        }
        lane
    }

    fn take(&mut self, kind: &EventKind) {
        match kind {
            EventKind::RunStarted { input, .. } => *self = Self::remembered(input),
            EventKind::ActivityCompleted { name, output, .. } if name == LoadBacklog::NAME => {
                if let Ok(loaded) = output.read::<LoadedBacklog>() {
                    self.parallel = Some(loaded.settings.project.parallel.max(1));
                }
            }
            EventKind::SignalSent { to, name, .. } if name == Turn::GIVEN => {
                let Some(holder) = feature_of(to) else { return };
                self.waiting.retain(|waiting| *waiting != holder);
                self.holders.push(holder);
            }
            EventKind::MessageReceived { message: Some(message), .. } => self.hear(&message.body),
            _ => {}
        }
    }

    fn hear(&mut self, body: &MessageBody) {
        if let MessageBody::ChildEnded { run, .. } = body {
            let feature = feature_of(run);
            self.waiting.retain(|waiting| Some(waiting) != feature.as_ref());
            self.leave(feature.as_deref());
        }
        match body {
            MessageBody::Signal { name, payload, .. } if name == Ready::SIGNAL => {
                self.waiting.extend(payload.read::<Ready>().map(|ready| ready.feature.to_string()));
            }
            MessageBody::Signal { name, payload, .. } if name == Turn::GIVEN_BACK => {
                self.leave(payload.read::<String>().ok().as_deref());
            }
            _ => {}
        }
    }

    fn leave(&mut self, feature: Option<&str>) {
        self.holders.retain(|holder| Some(holder.as_str()) != feature);
    }

    /// What a segment began with. Its memory is the project's own affair: what cannot be read is not known.
    fn remembered(input: &Payload) -> Self {
        let memory = input.read::<Value>().ok().and_then(|input| input.get("memory").cloned()).unwrap_or_default();
        let waiting = memory.pointer("/queue/waiting").and_then(Value::as_array).into_iter().flatten();
        let holders = memory.pointer("/queue/holders").and_then(Value::as_object).into_iter().flatten();
        let feature = |ready: &Value| ready.get("feature").and_then(Value::as_str).map(str::to_owned);
        let parallel = memory.pointer("/settings/project/parallel").and_then(Value::as_u64);
        Self {
            holders: holders.map(|(holder, _)| holder.clone()).collect(),
            waiting: waiting.filter_map(feature).collect(),
            parallel: parallel.and_then(|parallel| u32::try_from(parallel).ok()),
        }
    }
}

/// The feature of a run `project/feature/number`.
fn feature_of(run: &RunId) -> Option<String> {
    run.as_str().rsplit('/').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;
    use longhaul_engine::Message;
    use serde_json::json;

    fn heard(name: &str, payload: &Value) -> EventKind {
        let body = MessageBody::signal(name, Payload::of(payload));
        EventKind::MessageReceived { command: 0, message: Some(Message { seq: 1, at: Utc::now(), body }) }
    }

    fn turn(feature: &str) -> EventKind {
        let to = RunId::new(format!("shop/{feature}/1")).unwrap();
        EventKind::SignalSent { command: 0, to, name: Turn::GIVEN.into(), payload: Payload::null() }
    }

    #[test]
    fn one_merges_and_the_others_wait() {
        let mut lane = Lane::default();
        let check = |lane: &Lane, holder: Option<&str>, waiting: &[&str]| {
            assert_eq!(
                (lane.holders.first().map(String::as_str), lane.waiting.iter().map(String::as_str).collect()),
                (holder, waiting.to_vec())
            );
        };
        for feature in ["login", "table"] {
            lane.take(&heard(Ready::SIGNAL, &json!({"feature": feature, "files": []})));
        }
        check(&lane, None, &["login", "table"]);
        lane.take(&turn("login"));
        check(&lane, Some("login"), &["table"]);
        lane.take(&heard(Turn::GIVEN_BACK, &json!("login")));
        check(&lane, None, &["table"]);
        lane.take(&turn("table"));
        check(&lane, Some("table"), &[]);
    }

    #[test]
    fn a_new_segment_remembers() {
        let queue = json!({"holders": {"login": 0}, "waiting": [{"feature": "table", "files": []}]});
        let memory = json!({"queue": queue,
            "settings": {"project": {"parallel": 3}}});
        let lane = Lane::remembered(&Payload::of(&json!({"project": {}, "memory": memory})));
        assert_eq!((lane.holders, lane.parallel), (vec!["login".to_owned()], Some(3)));
        assert_eq!(lane.waiting, ["table"]);
        assert_eq!(Lane::remembered(&Payload::of(&json!({"memory": null}))), Lane::default());
    }
}
