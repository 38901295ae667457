//! The signals that a person may send, validated before delivery.

use longhaul_engine::{Payload, RequestedBy};

use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{BatchWorkflow, StateReport, Submit};
use longhaul_workflows::feature::{
    Approval, Edited, FeatureWorkflow, MergeLease, MergeRequest, Note, PassRefuted,
};
use longhaul_workflows::finding::SteeringRefused;
use longhaul_workflows::project::{
    BlockRequest, Forked, ProjectWorkflow, Rollback, SyncRequest, signal,
};
use longhaul_workflows::session::{
    ANSWER, HandoffAcknowledged, HandoffDecision, HandoffPrepared, SessionWorkflow,
};

/// A signal that a person may send.
struct OpenSignal {
    name: &'static str,
    /// Description of its payload for the user.
    shape: &'static str,
    is_readable: fn(&Payload) -> bool,
}

/// A signal that only runs and Longhaul send, with the alternative for a person.
struct InternalSignal {
    name: &'static str,
    instead: &'static str,
}

const PROJECT: &[OpenSignal] = &[
    OpenSignal {
        name: signal::SYNC,
        shape: r#"{"id": TEXT} or {"id": TEXT, "only": ["FEATURE", ...]}"#,
        is_readable: |payload| payload.read::<SyncRequest>().is_ok(),
    },
    OpenSignal {
        name: signal::RELOAD,
        shape: "a text, its id",
        is_readable: |payload| payload.read::<String>().is_ok(),
    },
    OpenSignal {
        name: signal::HALT,
        shape: r#"{"by": TEXT, "why": TEXT}"#,
        is_readable: |payload| payload.read::<RequestedBy>().is_ok(),
    },
    OpenSignal {
        name: signal::BLOCK,
        shape: r#"{"feature": "FEATURE", "reason": TEXT}"#,
        is_readable: |payload| payload.read::<BlockRequest>().is_ok(),
    },
    OpenSignal {
        name: signal::UNBLOCK,
        shape: r#""FEATURE""#,
        is_readable: |payload| payload.read::<FeatureId>().is_ok(),
    },
];

const FEATURE: &[OpenSignal] = &[
    OpenSignal {
        name: Note::SIGNAL,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<Note>().is_ok(),
    },
    OpenSignal {
        name: Approval::SIGNAL,
        shape: r#"{"approved": true or false, "commit": TEXT, "by": TEXT, "why": TEXT}"#,
        is_readable: |payload| payload.read::<Approval>().is_ok(),
    },
];

const SESSION: &[OpenSignal] = &[
    OpenSignal {
        name: Note::SIGNAL,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<Note>().is_ok(),
    },
    OpenSignal {
        name: ANSWER,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<String>().is_ok(),
    },
];

const INTERNAL: &[InternalSignal] = &[
    InternalSignal {
        name: HandoffPrepared::SIGNAL,
        instead: "a session sends it when its context is full",
    },
    InternalSignal { name: HandoffAcknowledged::SIGNAL, instead: "a new session sends it" },
    InternalSignal { name: HandoffDecision::SIGNAL, instead: "the run of the feature sends it" },
    InternalSignal {
        name: MergeRequest::SIGNAL,
        instead: "only the run of a feature sends it to its project",
    },
    InternalSignal {
        name: MergeLease::RELEASED,
        instead: "only the run of a feature sends it to its project",
    },
    InternalSignal {
        name: PassRefuted::SIGNAL,
        instead: "only the run of a feature sends it to its project",
    },
    InternalSignal {
        name: MergeLease::GRANTED,
        instead: "only its project sends it to the run of a feature",
    },
    InternalSignal { name: Edited::SIGNAL, instead: "edit the feature list" },
    InternalSignal { name: Forked::SIGNAL, instead: "`longhaul fork` sends it" },
    InternalSignal { name: Rollback::SIGNAL, instead: "`longhaul rollback` sends it" },
    InternalSignal { name: signal::MOVED, instead: "`longhaul run` in the new place sends it" },
    InternalSignal {
        name: signal::HELD,
        instead: "`longhaul pause` and `longhaul resume` lead to it",
    },
    InternalSignal {
        name: signal::CALLED_DONE,
        instead: "`longhaul feature unblock` sends it for finished work",
    },
    InternalSignal { name: signal::OVERRIDE, instead: "`longhaul batch` sends it" },
    InternalSignal { name: signal::LABEL, instead: "`longhaul batch` sends it" },
    InternalSignal {
        name: SteeringRefused::SIGNAL,
        instead: "only the process that runs the log sends it",
    },
    InternalSignal { name: Submit::SIGNAL, instead: "`longhaul batch` sends it" },
    InternalSignal {
        name: StateReport::SIGNAL,
        instead: "only the process that runs the log sends it",
    },
];

/// Checks that a person may send this signal to a run of this workflow, and that its payload is
/// valid.
///
/// # Errors
/// The reason and the remedy.
pub(crate) fn check(workflow: &str, name: &str, payload: &Payload) -> Result<(), String> {
    let open: &[OpenSignal] = match workflow {
        ProjectWorkflow::NAME => PROJECT,
        FeatureWorkflow::NAME => FEATURE,
        SessionWorkflow::NAME => SESSION,
        BatchWorkflow::NAME => &[],
        // The payload format of a foreign workflow is unknown.
        _ => return Ok(()),
    };
    if let Some(open) = open.iter().find(|open| open.name == name) {
        if (open.is_readable)(payload) {
            return Ok(());
        }
        let found = payload.preview(80);
        return Err(format!("the content of the signal `{name}` is {}, not {found}", open.shape));
    }
    if let Some(internal) = INTERNAL.iter().find(|internal| internal.name == name) {
        return Err(format!("the signal `{name}` is one of Longhaul's own: {}", internal.instead));
    }
    let names: Vec<String> = open.iter().map(|open| format!("`{}`", open.name)).collect();
    let takes = if names.is_empty() {
        "takes none".to_owned()
    } else {
        format!("takes {}", names.join(", "))
    };
    Err(format!("a run of a {workflow} takes no signal `{name}`: it {takes}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn expect(workflow: &str, name: &str, payload: &Value, refusal: Option<&str>) {
        let found = check(workflow, name, &Payload::of(payload));
        match (&found, refusal) {
            (Ok(()), None) => {}
            (Err(reason), Some(part)) if reason.contains(part) => {}
            _ => panic!("{workflow} {name} {payload}: {found:?}"),
        }
    }

    #[test]
    fn a_signal_is_refused_if_its_run_could_not_read_it_or_it_is_internal() {
        expect("project", "block", &json!({"feature": "login", "reason": "too early"}), None);
        expect(
            "project",
            "block",
            &json!("a"),
            Some(r#"is {"feature": "FEATURE", "reason": TEXT}, not "a""#),
        );
        expect(
            "project",
            "block",
            &json!({"feature": "../up", "reason": "x"}),
            Some(r#""feature""#),
        );
        expect("project", "unblock", &json!("login"), None);
        expect(
            "project",
            "unblock",
            &json!({"feature": "login", "request": {"by": "ann", "why": ""}}),
            Some(r#""FEATURE""#),
        );
        expect("project", "unblock", &json!(7), Some(r#""FEATURE""#));
        expect("project", "sync", &json!({"id": "now"}), None);
        expect("project", "sync", &json!({"id": "now", "only": ["login"]}), None);
        expect("project", "sync", &json!({"id": "now", "only": ["../up"]}), Some(r#""only""#));
        expect("project", "halt", &Value::Null, Some(r#"{"by": TEXT, "why": TEXT}"#));
        expect(
            "project",
            "merge_request",
            &json!({"feature": "login", "files": []}),
            Some("Longhaul's own"),
        );
        expect("project", "rollback", &json!({}), Some("`longhaul rollback`"));
        expect(
            "project",
            "note",
            &json!("x"),
            Some("takes `sync`, `reload`, `halt`, `block`, `unblock`"),
        );
        expect("feature", "note", &json!("use the parser"), None);
        expect("feature", "note", &json!(1), Some(r#""TEXT""#));
        expect("feature", "approval", &json!({"approved": true}), None);
        expect("feature", "approval", &json!({"approved": "yes"}), Some("true or false"));
        expect(
            "feature",
            "merge_lease",
            &json!({"regression": [], "tree": 0}),
            Some("only its project"),
        );
        expect(
            "feature",
            "longhaul.cancel",
            &json!({"by": "x", "why": ""}),
            Some("takes `note`, `approval`"),
        );
        expect("batch", "state", &json!({}), Some("Longhaul's own"));
        expect("batch", "go", &json!({}), Some("takes none"));
    }
}
