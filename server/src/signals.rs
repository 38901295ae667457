//! The signals that a person may send, validated before delivery.

use longhaul_engine::{Payload, RequestedBy};

use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{BatchWorkflow, Now, Submit};
use longhaul_workflows::feature::{Approval, Edited, FeatureWorkflow, Note, Ready, Turn};
use longhaul_workflows::finding::SteeringRefused;
use longhaul_workflows::project::{Forked, ProjectWorkflow, Rollback, Unblock, signal};
use longhaul_workflows::session::{
    ANSWER, HandoffAcknowledged, HandoffDecision, HandoffPrepared, SessionWorkflow,
};

/// A signal that a person may send.
struct Open {
    name: &'static str,
    /// Description of its payload for the user.
    shape: &'static str,
    is_readable: fn(&Payload) -> bool,
}

/// A signal that only runs and Longhaul send, with the alternative for a person.
struct Internal {
    name: &'static str,
    instead: &'static str,
}

const PROJECT: &[Open] = &[
    Open {
        name: signal::SYNC,
        shape: "a text, its id",
        is_readable: |payload| payload.read::<String>().is_ok(),
    },
    Open {
        name: signal::RELOAD,
        shape: "a text, its id",
        is_readable: |payload| payload.read::<String>().is_ok(),
    },
    Open {
        name: signal::HALT,
        shape: r#"{"by": TEXT, "why": TEXT}"#,
        is_readable: |payload| payload.read::<RequestedBy>().is_ok(),
    },
    Open {
        name: signal::BLOCK,
        shape: r#"["FEATURE", "REASON"]"#,
        is_readable: |payload| payload.read::<(FeatureId, String)>().is_ok(),
    },
    Open {
        name: signal::UNBLOCK,
        shape: r#""FEATURE""#,
        is_readable: |payload| payload.read::<Unblock>().is_ok(),
    },
];

const FEATURE: &[Open] = &[
    Open {
        name: Note::SIGNAL,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<Note>().is_ok(),
    },
    Open {
        name: Approval::SIGNAL,
        shape: r#"{"approved": true or false, "commit": TEXT, "by": TEXT, "why": TEXT}"#,
        is_readable: |payload| payload.read::<Approval>().is_ok(),
    },
];

const SESSION: &[Open] = &[
    Open {
        name: Note::SIGNAL,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<Note>().is_ok(),
    },
    Open {
        name: ANSWER,
        shape: r#""TEXT""#,
        is_readable: |payload| payload.read::<String>().is_ok(),
    },
];

const INTERNAL: &[Internal] = &[
    Internal {
        name: HandoffPrepared::SIGNAL,
        instead: "a session sends it when its context is full",
    },
    Internal { name: HandoffAcknowledged::SIGNAL, instead: "a new session sends it" },
    Internal { name: HandoffDecision::SIGNAL, instead: "the run of the feature sends it" },
    Internal { name: Ready::SIGNAL, instead: "only the run of a feature sends it to its project" },
    Internal {
        name: Turn::GIVEN_BACK,
        instead: "only the run of a feature sends it to its project",
    },
    Internal { name: Turn::GIVEN, instead: "only its project sends it to the run of a feature" },
    Internal { name: Edited::SIGNAL, instead: "edit the feature list" },
    Internal { name: Forked::SIGNAL, instead: "`longhaul fork` sends it" },
    Internal { name: Rollback::SIGNAL, instead: "`longhaul rollback` sends it" },
    Internal { name: signal::MOVED, instead: "`longhaul run` in the new place sends it" },
    Internal { name: signal::HELD, instead: "`longhaul pause` and `longhaul resume` lead to it" },
    Internal { name: signal::OVERRIDE, instead: "`longhaul batch` sends it" },
    Internal { name: signal::LABEL, instead: "`longhaul batch` sends it" },
    Internal {
        name: SteeringRefused::SIGNAL,
        instead: "only the process that runs the log sends it",
    },
    Internal { name: Submit::SIGNAL, instead: "`longhaul batch` sends it" },
    Internal { name: Now::SIGNAL, instead: "only the process that runs the log sends it" },
];

/// Checks that a person may send this signal to a run of this workflow, and that its payload is
/// valid.
///
/// # Errors
/// The reason and the remedy.
pub(crate) fn check(workflow: &str, name: &str, payload: &Payload) -> Result<(), String> {
    let open: &[Open] = match workflow {
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
        expect("project", "block", &json!(["login", "too early"]), None);
        expect("project", "block", &json!("a"), Some(r#"is ["FEATURE", "REASON"], not "a""#));
        expect("project", "block", &json!(["../up", "x"]), Some(r#"["FEATURE", "REASON"]"#));
        expect("project", "unblock", &json!("login"), None);
        expect(
            "project",
            "unblock",
            &json!({"feature": "login", "request": {"by": "ann", "why": ""}}),
            None,
        );
        expect("project", "unblock", &json!(7), Some(r#""FEATURE""#));
        expect("project", "sync", &json!("now"), None);
        expect("project", "halt", &Value::Null, Some(r#"{"by": TEXT, "why": TEXT}"#));
        expect(
            "project",
            "ready",
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
        expect("feature", "turn", &json!({"regression": [], "tree": 0}), Some("only its project"));
        expect(
            "feature",
            "longhaul.cancel",
            &json!({"by": "x", "why": ""}),
            Some("takes `note`, `approval`"),
        );
        expect("batch", "now", &json!({}), Some("Longhaul's own"));
        expect("batch", "go", &json!({}), Some("takes none"));
    }
}
