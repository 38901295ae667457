//! Tests of the screen, on terminals of several sizes.

use chrono::{TimeZone, Utc};
use crossterm::event::{KeyCode, KeyEvent};
use longhaul_engine::RunId;
use longhaul_server::status::{Counts, FeatureLine, ProjectState, StatusDocument};
use longhaul_server::views::GraphDocument;
use longhaul_server::views::graph::FeatureNode;
use longhaul_server::{ForkPoint, Order};
use longhaul_workflows::projection::State;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::feed::Pane;
use super::feed::Update;
use super::screen::{Action, Choice, Popup, Screen};
use super::{Project, draw};

const FEATURES: [(&str, State, &[&str]); 4] = [
    ("parser", State::Passed, &[]),
    ("table", State::Running, &["parser"]),
    ("shell", State::Waiting, &["table", "parser"]),
    ("manual", State::Blocked, &[]),
];

fn run(id: &str) -> RunId {
    RunId::new(id).expect("a valid id")
}

/// A screen with four features of one project.
fn screen() -> Screen {
    let project = Project { id: run("shop"), root: "/shop".into() };
    let mut screen = Screen::new(Some(project));
    let node = |(id, status, needs): (&str, State, &[&str])| FeatureNode {
        id: id.into(),
        name: String::new(),
        status,
        depends_on: needs.iter().map(|need| (*need).into()).collect(),
    };
    let features = FEATURES.map(node).into();
    screen.take(Update::Graph(GraphDocument {
        project: "shop".into(),
        features,
        ..GraphDocument::default()
    }));
    let line = |(id, status, _): (&str, State, &[&str])| FeatureLine {
        id: id.into(),
        status,
        passes: status == State::Passed,
        run: (status != State::Waiting).then(|| run(&format!("shop/{id}/1"))),
        step: (status == State::Running).then(|| "session 1".into()),
        reason: (status == State::Blocked).then(|| "the gates failed".into()),
        ..FeatureLine::default()
    };
    screen.take(Update::Status(Box::new(StatusDocument {
        project: "shop".into(),
        status: ProjectState::Running,
        is_running: true,
        counts: Counts {
            total: 4,
            passed: 1,
            running: 1,
            blocked: 1,
            pending: 1,
            ..Counts::default()
        },
        features: FEATURES.map(line).into(),
        ..StatusDocument::default()
    })));
    let lines = (1..=100).map(|number| format!("event {number}")).collect();
    screen.take(Update::Lines { epoch: screen.wish().epoch, is_first: true, lines });
    screen
}

fn shown(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal =
        Terminal::new(TestBackend::new(width, height)).expect("a test backend never fails");
    let now = Utc.with_ymd_and_hms(2026, 1, 31, 12, 0, 0).single().expect("a valid time");
    terminal.draw(|frame| draw::draw(screen, frame, now)).expect("a test backend never fails");
    terminal.backend().to_string()
}

fn press(screen: &mut Screen, key: char) -> Option<Action> {
    screen.press(KeyEvent::from(KeyCode::Char(key)))
}

#[test]
fn features_are_drawn_as_a_graph_beside_or_above_the_log() {
    let screen = screen();
    for (width, height) in [(80, 24), (200, 60), (40, 12), (20, 4), (1, 1)] {
        let shown = shown(&screen, width, height);
        if width < 80 {
            continue;
        }
        for text in [
            "shop  running  1/4 passed, 1 running, 1 blocked, 1 waiting",
            "│✓ parser  passed",
            "│└─▶ table  running  session 1",
            "│  └─· shell  waiting  also needs parser",
            "│✗ manual  blocked  the gates failed",
            "│event 100 ",
        ] {
            assert!(shown.contains(text), "{text}\n{shown}");
        }
    }
}

#[test]
fn keys_select_and_steer() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, 'p'), Some(Action::Steer(run("shop/parser/1"), Order::Pause)));
    let before = screen.wish();
    press(&mut screen, 'j');
    assert_eq!(screen.wish().feature.as_deref(), Some("table"));
    assert!(screen.wish().epoch > before.epoch && screen.lines.is_empty());
    // A late update of the earlier selection is dropped.
    screen.take(Update::Lines { epoch: before.epoch, is_first: false, lines: vec!["x".into()] });
    assert!(screen.lines.is_empty());
    assert_eq!(press(&mut screen, 'a'), Some(Action::Steer(run("shop/table/1"), Order::Approve)));
    assert_eq!(press(&mut screen, 'R'), Some(Action::Steer(run("shop"), Order::Resume)));
    press(&mut screen, 'w');
    assert_eq!(screen.wish().pane, Pane::Why);
    press(&mut screen, 'j');
    assert_eq!(press(&mut screen, 'f'), None);
    assert_eq!(screen.message, "the feature has no run yet");
    assert_eq!(press(&mut screen, 'q'), Some(Action::Quit));
}

#[test]
fn a_fork_starts_from_a_chosen_step() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, 'f'), Some(Action::ListSteps(run("shop/parser/1"))));
    screen.take(Update::Steps(run("shop/parser/1"), Vec::new()));
    assert!(matches!(&screen.popup, Some(Popup::Choice { of: Choice::Step(_), .. })));
    assert!(shown(&screen, 80, 24).contains("before the first step"));
    let chosen = screen.press(KeyEvent::from(KeyCode::Enter));
    assert_eq!(chosen, Some(Action::Fork(run("shop/parser/1"), ForkPoint::Start)));
    assert!(screen.popup.is_none());
    press(&mut screen, '?');
    assert!(shown(&screen, 80, 24).contains("quit; the projects continue"));
    assert_eq!(press(&mut screen, 'q'), None, "a key closes the help");
}
