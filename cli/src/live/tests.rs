//! Tests of the live display, on terminals of several sizes.

use chrono::{TimeDelta, TimeZone};
use longhaul_server::status::{Counts, ProjectState};

use super::*;

fn start() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 31, 12, 0, 0).single().expect("a valid time")
}

fn feature(id: &str, status: State, step: Option<&str>, project: &str) -> FeatureLine {
    FeatureLine {
        id: id.into(),
        status,
        passes: status == State::Passed,
        step: step.map(str::to_owned),
        run: RunId::new(format!("{project}/{id}/1")).ok(),
        ..FeatureLine::default()
    }
}

/// A project with one passed feature, `active` features in session, one blocked and one waiting.
fn project(id: &str, active: usize) -> StatusDocument {
    let mut features = vec![feature("parser", State::Passed, None, id)];
    let running = (0..active).map(|n| format!("table-{n}"));
    features.extend(running.map(|name| feature(&name, State::Running, Some("session 1"), id)));
    features.push(feature("manual", State::Blocked, None, id));
    let mut shell = feature("shell", State::Waiting, None, id);
    shell.waiting_for = vec!["manual".into()];
    features.push(shell);
    let total = features.len();
    let counts =
        Counts { total, passed: 1, running: active, blocked: 1, pending: 1, ..Counts::default() };
    StatusDocument {
        project: id.into(),
        status: if active > 0 { ProjectState::Running } else { ProjectState::NeedsAttention },
        counts,
        features,
        ..StatusDocument::default()
    }
}

fn view(documents: &[StatusDocument]) -> View {
    let mut view = View::new(documents.len(), start());
    for document in documents {
        view.show(document, start());
        for line in active(document) {
            let run = line.run.clone().expect("an active feature has a run");
            let activity = RunActivity {
                seen: ReadPosition { run: run.clone(), conversation: None },
                started_at: start(),
                since: start(),
                last_line: Some(format!("working on {}", line.id)),
            };
            view.activities.insert(run, activity);
        }
    }
    view
}

/// The rows of the display after 65 seconds.
fn rows(view: &View, size: (u16, u16)) -> Vec<String> {
    let buffer = view.draw(size, start() + TimeDelta::seconds(65));
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..buffer.area.height).map(|y| row(y).trim_end().to_owned()).collect()
}

#[test]
fn one_project_is_shown_with_its_sessions() {
    let view = view(&[project("shop", 2)]);
    let expected = [
        "shop            1/5 ──────────────────────  1 blocked",
        "  table-0     1m05s  session 1            working on table-0",
        "  table-1     1m05s  session 1            working on table-1",
        "1/5 passed, 2 running, 1 blocked, 1 waiting, 1m05s",
    ];
    assert_eq!(rows(&view, (80, 24)), expected);
    assert_eq!(rows(&view, (200, 60)).len(), 4);
}

#[test]
fn forty_projects_are_folded_to_the_height() {
    let documents: Vec<_> =
        (0..40).map(|n| project(&format!("shop-{n}"), usize::from(n % 5 == 4))).collect();
    let view = view(&documents);
    for size in [(80, 24), (200, 60), (40, 10), (80, 3), (1, 1)] {
        let rows = rows(&view, size);
        assert!(rows.len() < usize::from(size.1).max(2), "{size:?}: {rows:#?}");
    }
    let small = rows(&view, (80, 24));
    let total = "0/40 projects, 40/128 passed, 8 running, 40 blocked, 40 waiting, 1m05s";
    assert_eq!(small.last().map(String::as_str), Some(total));
    let sessions = small.iter().enumerate().filter(|(_, row)| row.contains("working on"));
    let sessions: Vec<_> = sessions.map(|(index, _)| index).collect();
    assert_eq!(sessions.len(), 8, "{small:#?}");
    for (session, project) in sessions.iter().zip([4, 9, 14, 19, 24, 29, 34, 39]) {
        // Each session is below its own project.
        let above = small[..*session].iter().rev().find(|row| row.starts_with("shop"));
        let name = above.and_then(|row| row.split_whitespace().next());
        assert_eq!(name, Some(&*format!("shop-{project}")), "{small:#?}");
    }
    assert!(small.iter().any(|row| row == "… 28 more: 28 needs attention"), "{small:#?}");
    // The larger terminal has room for all.
    assert_eq!(rows(&view, (200, 60)).len(), 49);
}

#[test]
fn many_sessions_of_one_project_are_folded() {
    let view = view(&[project("shop", 30)]);
    let rows = rows(&view, (80, 24));
    assert_eq!(rows.len(), 22);
    assert_eq!(rows[19], "  table-18    1m05s  session 1            working on table-18");
    assert_eq!(rows[20], "  … 11 more");
}

#[test]
fn the_time_left_is_estimated_from_passed_features() {
    let mut view = view(&[project("shop", 2)]);
    let mut document = project("shop", 2);
    document.features[1] = feature("table-0", State::Passed, None, "shop");
    document.counts =
        Counts { total: 5, passed: 2, running: 1, blocked: 1, pending: 1, ..Counts::default() };
    view.show(&document, start() + TimeDelta::seconds(60));
    // One feature is left: `shell` needs the blocked one.
    let last = rows(&view, (80, 24)).pop();
    let expected = "2/5 passed, 1 running, 1 blocked, 1 waiting, 1m05s, about 1m00s left";
    assert_eq!(last.as_deref(), Some(expected));
    assert_eq!(rows(&view, (60, 24)).pop().as_deref(), Some("1m05s, about 1m00s left"));
}
