//! Displays on a terminal: the live display of `run`, and `watch`.

use longhaul_tests::command::Longhaul;
use longhaul_tests::project::{Project, plain};

/// Two projects in one log; the agent is held in the feature of each.
fn two_held() -> ([Project; 2], Longhaul) {
    let plans = [
        [plain("parser", &[], 1), plain("shell", &["parser"], 1)],
        [plain("table", &[], 1), plain("shell", &["table"], 1)],
    ];
    let projects = plans.map(|plans| {
        let project = Project::new(&plans, 0.0);
        project.hold(plans[0].id);
        project
    });
    let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), projects[0].home());
    (projects, longhaul)
}

fn id_of(project: &Project) -> String {
    project.git(&["config", "longhaul.id"])
}

fn row_of(screen: &[String], begin: &str) -> Option<usize> {
    screen.iter().position(|row| row.starts_with(begin))
}

/// Each session with its output is below its own project, and the total line is last.
fn is_complete(screen: &[String], ids: &[String; 2]) -> bool {
    let sessions = ["  parser", "  table"].map(|session| row_of(screen, session));
    let projects = [&ids[0], &ids[1]].map(|id| row_of(screen, &format!("{id} ")));
    let [Some(parser), Some(table)] = sessions else { return false };
    let total = row_of(screen, "0/2 projects, 0/4 passed, 2 running, 0 blocked, 2 waiting");
    projects == [Some(parser - 1), Some(table - 1)]
        && total.is_some_and(|total| total > parser.max(table))
        && [parser, table].iter().all(|row| screen[*row].contains("step 1 of 1"))
}

#[test]
fn a_run_shows_each_session_below_its_project() {
    let (projects, longhaul) = two_held();
    let roots = projects.each_ref().map(|project| project.root().to_string_lossy().into_owned());
    let run = ["run", &roots[0], &roots[1]];
    let mut terminal = longhaul.on_terminal(&run, 80);
    let has_ids = |_: &[String]| projects.iter().all(|one| one.root().join(".git/config").exists());
    terminal.until_screen("something", has_ids);
    terminal.until_screen("the total", |screen| row_of(screen, "0/2 projects").is_some());
    let ids = projects.each_ref().map(id_of);
    terminal.until_screen("both sessions", |screen| is_complete(screen, &ids));
    // Typed characters move nothing.
    terminal.press("\n\nx\n");
    for (width, height) in [(60, 16), (200, 60), (70, 12)] {
        terminal.resize(width, height);
        terminal.until_screen("both sessions after a resize", |screen| {
            let totals = screen.iter().filter(|row| row.starts_with("0/2 projects")).count();
            is_complete(screen, &ids) && totals == 1
        });
    }
    terminal.press("\u{3}");
    terminal.until_screen("the end", |screen| row_of(screen, "stopped; nothing is lost").is_some());
    let screen = terminal.screen();
    assert_eq!(row_of(&screen, "0/2 projects"), None, "{screen:#?}");
    terminal.exits(3);

    projects[0].let_go("parser");
    projects[1].let_go("table");
    let shown = longhaul.on_terminal(&run, 120).exits(0);
    for (id, feature) in [(&ids[0], "parser"), (&ids[1], "table"), (&ids[1], "shell")] {
        assert!(shown.contains(&format!("{id} {feature}  passed")), "{shown}");
    }
}

#[test]
fn watch_shows_a_running_log_and_one_at_rest() {
    let world =
        crate::world::World::new(&[plain("parser", &[], 1), plain("shell", &["parser"], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    let mut terminal = world.longhaul.on_terminal(&["watch", &world.root], 100);
    let shows =
        |text: &'static str| move |screen: &[String]| screen.iter().any(|row| row.contains(text));
    terminal.until_screen("the graph", shows("│▶ parser  running  session 1"));
    terminal.until_screen("the dependant", shows("│└─· shell  waiting"));
    terminal.until_screen("the log", shows("session 1 (start) begins"));
    terminal.press("t");
    terminal.until_screen("the transcript", shows("│step 1 of 1"));
    terminal.press("p");
    terminal.until_screen("the pause", shows("/parser/1 paused"));
    terminal.resize(120, 30);
    terminal.until_screen("the other layout", shows("││step 1 of 1"));
    world.project.let_go("parser");
    terminal.until_screen("the state", shows("│‖ parser  paused"));
    terminal.press("r");
    terminal.until_screen("the resume", shows("/parser/1 resumed"));
    run.exits(0);
    // The log is at rest, and not kept from other commands.
    terminal.until_screen("the end", shows("no process runs it"));
    terminal.until_screen("all features", shows("2/2 passed"));
    world.call("list").exits(0);
    terminal.press("jw");
    terminal.until_screen("the reason", shows("It is done: its gates passed"));
    terminal.press("f");
    terminal.until_screen("the steps", shows("session:1"));
    terminal.press("xq");
    let shown = terminal.exits(0);
    assert!(shown.contains("\u{1b}[?1049l"), "the other screen is left");
    world.call("watch .").exits(2).says("needs a terminal");
}
