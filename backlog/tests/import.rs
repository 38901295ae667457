//! Imports of every shape: features, claims, and kept keys.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod backlogs;

use backlogs::{FILES, imported, list_of};
use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Item, Options, Shape};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};

/// One item to a line: place, id, name, priority, status, criteria, dependencies, checks, keys that
/// are kept.
fn line(item: &Item) -> String {
    let Item { place, feature, extra } = item;
    let depends_on: Vec<&str> = feature.depends_on.iter().map(FeatureId::as_str).collect();
    let checks: Vec<&str> = feature.checks.iter().map(|check| check.run.as_str()).collect();
    let extra: Vec<&str> = extra.keys().map(String::as_str).collect();
    format!(
        "{place}|{}|{}|{}|{}|{}|{}|{}|{}",
        feature.id,
        feature.name,
        feature.priority,
        feature.status,
        feature.acceptance_criteria.join(";"),
        depends_on.join(","),
        checks.join(","),
        extra.join(","),
    )
}

fn check(shape: Shape, expected: &[&str]) {
    let (_, text) = FILES.into_iter().find(|(of, _)| *of == shape).unwrap();
    let imported = imported(text);
    assert_eq!(imported.shape, shape);
    let lines: Vec<String> = imported.items.iter().map(line).collect();
    assert_eq!(lines, expected, "{shape}");
}

#[test]
fn lists_in_json_are_read() {
    check(
        Shape::Quickstart,
        &[
            "/0|a-visitor-can-put-a-book-into-the-basket|A visitor can put a book into the basket|0|pending|open a book;press the button;look at the basket|||phase",
            "/1|buttons-have-a-visible-focus-ring|Buttons have a visible focus ring|0|completed|tab through the page|||verified_via,claimed_passes",
        ],
    );
    check(
        Shape::Adk,
        &[
            "/0|schema|schema|0|completed||||claimed_passes,claimed_last_tested",
            "/1|sign-up|sign up|0|in_progress||schema||owner",
        ],
    );
    check(
        Shape::AdkMeta,
        &[
            "/items/0|export-csv|export csv|0|pending||||",
            "/items/1|import-csv|import csv|0|blocked||export-csv||",
        ],
    );
    check(
        Shape::AdkTests,
        &["/tests/0|T1|An invoice has a number|1|pending|make one|||evidence,notes"],
    );
    check(
        Shape::Ada,
        &[
            "/features/0|tables|Tables|10|completed|migrates|||started_at,sessions_spent,implementation_notes,quality_gates,model_override,claimed_passes",
            "/features/1|search|Search|5|pending|finds;is fast|tables||",
        ],
    );
    check(
        Shape::Ralph,
        &[
            "/userStories/0|US-001|Write|-1|completed|saved|||notes,claimed_passes",
            "/userStories/1|US-002|Read|-2|pending||||notes",
        ],
    );
    check(
        Shape::List,
        &[
            "/features/0|1|a|0|pending|ok|||list_title,sdd,scope",
            "/features/1|2|b|3|completed||1|make b|evidence,claimed_passes",
        ],
    );
}

#[test]
fn trackers_are_read() {
    check(
        Shape::Beads,
        &[
            "line 1|bd-1|Parser|2|completed|parses 1+2;says where it fails|||design,labels,created_at,close_reason,claimed_passes",
            "line 2|bd-a3f8.1|Printer|0|pending||bd-1||beads_dependencies",
        ],
    );
    check(
        Shape::TaskMaster,
        &[
            "/master/tasks/0|1|Setup|1|completed|CI is green;init: git init;lint|||previousStatus,details,testStrategy,subtasks,claimed_passes",
            "/master/tasks/1|2|API|-1|in_progress||1||details,testStrategy",
        ],
    );
    check(
        Shape::Github,
        &[
            "/0|issue-12|Crash on empty file|1|pending|no crash;message|issue-7||number,labels,github_state,url",
            "/1|issue-7|Read files|0|completed||||number,labels,github_state,stateReason,url,claimed_passes",
        ],
    );
}

#[test]
fn text_and_reports_are_read() {
    check(
        Shape::TasksMd,
        &[
            "line 3|task-1|Schema|2|completed|migrates;rolls back|||section,claimed_passes",
            "line 9|task-2|Login|0|pending||task-1|npm test|section",
        ],
    );
    check(
        Shape::Checklist,
        &[
            "line 3|login|Login|0|pending|form|||section",
            "line 5|logo|Logo|0|completed||||section,claimed_passes",
        ],
    );
    check(
        Shape::Junit,
        &[
            "line 5|fix-calc-parsertest-reads-nested-brackets|Fix the test reads nested brackets|0|pending|The test `calc.ParserTest reads nested brackets` passes|||junit",
            "line 9|fix-calc-evaltest-divides|Fix the test divides|0|pending|The test `calc.EvalTest divides` passes|||junit",
        ],
    );
}

/// `id|priority|status|dependencies`, one line per task, and the criteria of one task.
fn check_order(shape: Shape, expected: &[&str]) -> Vec<Item> {
    let (_, text) = FILES.into_iter().find(|(of, _)| *of == shape).unwrap();
    let imported = imported(text);
    assert_eq!(imported.shape, shape);
    let line = |item: &Item| {
        let Item { feature, .. } = item;
        let needs: Vec<&str> = feature.depends_on.iter().map(FeatureId::as_str).collect();
        let needs = needs.join(",");
        format!("{}|{}|{}|{needs}", feature.id, feature.priority, feature.status)
    };
    assert_eq!(imported.items.iter().map(line).collect::<Vec<_>>(), expected);
    imported.items
}

#[test]
fn phases_and_labels_of_spec_kit_give_the_order() {
    let items = check_order(
        Shape::SpecKit,
        &[
            "T001|0|completed|",
            "T002|0|pending|T001",
            "T003|0|pending|T001",
            "T004|0|pending|T002,T003",
            "T010|1|pending|T004",
            "T011|1|pending|T004",
            "T012|1|pending|T010,T011,T004",
            "T020|-1|pending|T004",
            "T030|0|pending|T012,T020",
            "T031|0|pending|T030",
        ],
    );
    assert_eq!(items[1].feature.name, "Configure linting in `.eslintrc.json`");
    assert_eq!(items[4].feature.category.as_deref(), Some("US1"));
    assert_eq!(items[4].extra["section"], "Tests for User Story 1");
}

#[test]
fn numbers_of_kiro_give_order_and_parts() {
    let items = check_order(
        Shape::Kiro,
        &[
            "task-1|0|in_progress|",
            "task-2|0|pending|task-1",
            "task-3|0|pending|task-2",
            "task-4|0|pending|task-3",
            "task-5|0|pending|task-3",
        ],
    );
    assert_eq!(
        items[0].feature.acceptance_criteria,
        [
            "1.1 Create the formatter\nCreate `lib/formatter.dart`\nBoth methods are pure\n_Requirements: 1.4, 3.1_",
            "1.2 Write property tests for the formatter (optional)\n**Property 1: Formatting is total**\n**Validates: Requirements 1.4**",
        ]
    );
    assert_eq!(items[2].feature.description, "- Show all categories\n- _Requirements: 2.1_");
    assert_eq!(
        items[2].feature.acceptance_criteria,
        ["3.1 Write widget tests for the panel (optional)\nTest the order"]
    );
}

/// The dependencies of each task of an ADK file.
#[track_caller]
fn check_adk(tasks: &[&str], expected: &[&str]) {
    let task = |(index, dependencies): (usize, &&str)| {
        let number = index + 1;
        format!(
            "### Task {number}: T{number}\n- Tipo: Test\n- Prioridade: P0\n- Dependencias: {dependencies}\n- Output: `src/t{number}.ts`\n- Acceptance Criteria:\n  - [ ] works\n\n---\n\n"
        )
    };
    let text: String = tasks.iter().enumerate().map(task).collect();
    let imported = imported(&format!("# Tasks\n\n## Fase 1: Foundation\n\n{text}"));
    let needs = |item: &Item| {
        item.feature.depends_on.iter().map(FeatureId::as_str).collect::<Vec<_>>().join(",")
    };
    assert_eq!(imported.items.iter().map(needs).collect::<Vec<_>>(), expected);
    assert!(imported.items.iter().all(|item| item.feature.description.contains("Output: `src/t")));
}

#[test]
fn a_plain_line_of_dependencies_ends_with_its_line() {
    check_adk(&["nenhuma", "Task 1 (benchmark concluído, medido)"], &["", "task-1"]);
    check_adk(&["none", "N/A", "Nenhuma.", "Task 1, Task 3"], &["", "", "", "task-1,task-3"]);
    check_adk(
        &["none (start here)", "all previous tasks", "Todas as tarefas anteriores."],
        &["", "task-1", "task-1,task-2"],
    );
    check_adk(
        &["nenhuma", "Task 1", "Tarefas 1 e 2", "Todas as tasks de implementação (1-3)"],
        &["", "task-1", "task-1,task-2", "task-1,task-2,task-3"],
    );
    check_adk(&["nenhuma", "nenhuma", "Fase 1"][..2], &["", ""]);
    check_adk(&["none", "none", "Tasks 1-2"], &["", "", "task-1,task-2"]);
}

#[test]
fn bullets_below_a_field_belong_to_it() {
    let text = "### Task 1: a\n**Dependencies:**\n- Task 2\n- Task 3\n\n### Task 2: b\n- **Dependencies:**\n  - Task 3\n- **Files:**\n  - `x`\n\n### Task 3: c\n## Sprint 2\n### Task 4: d\n- Depends on: Sprint 2\n### Task 5: e\n- Depends on: Fase 9";
    let refused = import::read(text, &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("\"task-4\" is the entry itself"), "{refused}");
    assert!(refused.contains("\"Fase 9\" is no id"), "{refused}");
    let options = Options { drop_dangling: true, ..Options::default() };
    let imported = import::read(text, &options).unwrap();
    let needs = |index: usize| imported.items[index].feature.depends_on.len();
    assert_eq!([needs(0), needs(1), needs(2)], [2, 1, 0]);
}

#[test]
fn a_claim_is_kept_and_never_believed() {
    for (shape, text) in FILES {
        let imported = imported(text);
        assert!(imported.items.iter().all(|item| !item.feature.passes), "{shape}");
        let list = list_of(&imported);
        assert!(
            list.features().iter().all(|feature| !feature.passes),
            "{shape}: {}",
            list.to_text()
        );
    }
    // Also where the other entries of the list say nothing but `passes`.
    let mut list = FeatureList::parse(r#"[{"description": "A", "passes": false}]"#).unwrap();
    import::merge(&mut list, &imported(FILES[0].1), false).unwrap();
    let entry = &list.document()[2];
    assert_eq!(entry["passes"], false, "{entry:#}");
    assert_eq!(
        (&entry["claimed_passes"], &entry["status"]),
        (&true.into(), &"completed".into()),
        "{entry:#}"
    );
}

#[test]
fn importing_again_adds_nothing() {
    for (shape, text) in FILES {
        let imported = imported(text);
        let mut list = list_of(&imported);
        let before = list.clone();
        let known = before.features().to_vec();
        let again = import::read(text, &Options { known: &known, ..Options::default() }).unwrap();
        let merged = import::merge(&mut list, &again, false).unwrap();
        assert_eq!(merged.added, Vec::<usize>::new(), "{shape}");
        assert_eq!(merged.skipped.len(), imported.items.len(), "{shape}");
        assert!(
            merged.skipped.iter().all(|skipped| skipped.differs.is_empty()),
            "{shape}: {merged:?}"
        );
        assert_eq!(list, before, "{shape}");
    }
}

#[test]
fn entries_may_depend_on_what_is_in_the_list() {
    let mut list = list_of(&imported(FILES[4].1));
    let text = r#"[{"id": "basket", "name": "Basket", "status": "pending", "depends_on": ["Search", "pay"]},
                   {"id": "pay", "name": "Pay", "status": "pending", "depends_on": ["tables"]}]"#;
    let known = list.features().to_vec();
    let more = import::read(text, &Options { known: &known, ..Options::default() }).unwrap();
    import::merge(&mut list, &more, false).unwrap();
    let basket = list.features().iter().find(|feature| feature.id.as_str() == "basket").unwrap();
    let depends_on: Vec<&str> = basket.depends_on.iter().map(FeatureId::as_str).collect();
    assert_eq!(depends_on, ["search", "pay"]);
}

#[test]
fn what_is_there_is_left_alone() {
    let mut list = list_of(&imported(FILES[4].1));
    let before = list.clone();
    let text = r#"[{"id": "SEARCH", "name": "Find", "status": "done", "depends_on": []}]"#;
    let merged = import::merge(&mut list, &imported(text), false).unwrap();
    assert_eq!((merged.skipped[0].id.as_str(), merged.added.len()), ("search", 0));
    assert_eq!(
        merged.skipped[0].differs,
        ["name", "description", "category", "priority", "acceptance_criteria", "depends_on"]
    );
    assert_eq!(list, before);
}

#[test]
fn what_differs_is_updated_on_request() {
    let mut list = list_of(&imported(FILES[4].1));
    let text = r#"{"project_name": "p", "features": [
        {"id": "search", "name": "Find", "description": "New", "status": "completed", "priority": 5,
         "acceptance_criteria": ["finds"], "depends_on": [], "owner": "ana"},
        {"id": "new", "name": "New", "depends_on": ["search"]}]}"#;
    let known = list.features().to_vec();
    let more = import::read(text, &Options { known: &known, ..Options::default() }).unwrap();
    let unchanged = import::merge(&mut list.clone(), &more, false).unwrap();
    assert_eq!((unchanged.updated.len(), unchanged.skipped[0].differs.len()), (0, 6));
    let merged = import::merge(&mut list, &more, true).unwrap();
    assert_eq!((merged.updated.len(), merged.added.len(), merged.skipped.len()), (1, 1, 0));
    let search = list.features().iter().find(|feature| feature.id.as_str() == "search").unwrap();
    assert_eq!((search.name.as_str(), search.description.as_str()), ("Find", "New"));
    assert_eq!((search.acceptance_criteria.len(), search.depends_on.len()), (1, 0));
    assert_eq!(search.extra["owner"], "ana");
    assert_eq!((search.status, search.passes), (FeatureStatus::Pending, false), "a claim stays");
    let again = import::merge(&mut list, &more, true).unwrap();
    assert_eq!((again.updated.len(), again.skipped.len()), (0, 2), "{again:?}");
    // A link that closes a cycle is refused.
    let cycle = r#"[{"id": "tables", "name": "Tables", "status": "todo", "depends_on": ["new"]},
        {"id": "search", "name": "Find", "status": "todo", "depends_on": ["tables"]}]"#;
    let known = list.features().to_vec();
    let before = list.clone();
    let cycle = import::read(cycle, &Options { known: &known, ..Options::default() }).unwrap();
    let refused = import::merge(&mut list, &cycle, true).unwrap_err().to_string();
    assert!(refused.contains("form a cycle: tables -> new -> search -> tables"), "{refused}");
    assert_eq!(list, before);
}

#[test]
fn a_tag_is_chosen() {
    let text = r#"{"a": {"tasks": [{"id": 1, "title": "One"}]}, "b": {"tasks": [{"id": 1, "title": "Two"}]}}"#;
    let read = |tag| import::read(text, &Options { tag, ..Options::default() });
    assert_eq!(read(Some("b")).unwrap().items[0].feature.name, "Two");
    let mut list = list_of(&read(Some("a")).unwrap());
    let second = import::merge(&mut list, &read(Some("b")).unwrap(), false).unwrap();
    assert_eq!(second.added.len(), 1, "a second tag is another list");
    let tags = r#"{"master": {"tasks": [{"id": 1, "title": "One"}, {"id": 2, "title": "Two", "dependencies": [1]}]},
        "feature/x": {"tasks": [{"id": 1, "title": "X"}, {"id": "2", "title": "Y", "dependencies": [1, "1.2"]}]}}"#;
    let all = import::read(tags, &Options { tag: Some("all"), ..Options::default() }).unwrap();
    let lines: Vec<String> = all
        .items
        .iter()
        .map(|item| {
            let needs: Vec<&str> = item.feature.depends_on.iter().map(FeatureId::as_str).collect();
            format!("{} {}", item.feature.id, needs.join(","))
        })
        .collect();
    assert_eq!(lines, ["1 ", "2 1", "feature-x-1 ", "feature-x-2 feature-x-1"]);
    assert_eq!(
        read(None).unwrap_err().to_string(),
        "several tags have tasks; the tags with tasks are a, b: name one with --tag, or all"
    );
    assert_eq!(
        read(Some("c")).unwrap_err().to_string(),
        "there is no tag `c`; the tags with tasks are a, b: name one with --tag, or all"
    );
}

#[test]
fn bytes_become_text() {
    let wide: Vec<u8> = "\u{feff}[] é".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(import::decode(&wide).unwrap(), "[] é");
    assert_eq!(import::decode(b"\xef\xbb\xbf[]").unwrap(), "[]");
    let broken = import::decode(b"[\n\"\xff\"]").unwrap_err().to_string();
    assert_eq!(broken, "not UTF-8 text (byte 3, line 2); save it as UTF-8");
}
