//! The scheduler on small backlogs: data in, text out.

use super::*;

fn block(reason: &str) -> Block {
    Block { cause: BlockCause::Request, reason: reason.into() }
}

fn id(text: &str) -> FeatureId {
    FeatureId::new(text).unwrap()
}

/// `name!priority: dependency dependency`, one feature to a line.
fn features(text: &str) -> Vec<Feature> {
    let feature = |line: &str| {
        let (head, dependencies) = line.split_once(':').unwrap_or((line, ""));
        let (name, priority) = head.trim().split_once('!').unwrap_or((head.trim(), "0"));
        Feature {
            priority: priority.parse().unwrap(),
            depends_on: dependencies.split_whitespace().map(id).collect(),
            ..Feature::new(id(name), name)
        }
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(feature).collect()
}

fn backlog(text: &str) -> Backlog {
    Backlog::new(features(text)).unwrap()
}

/// Runs all features to the end; features in the list `blocked` are blocked when they start.
fn check_order(text: &str, blocked: &str, expected: &str) {
    let mut backlog = backlog(text);
    let mut order = Vec::new();
    while let Some(next) = backlog.start_next() {
        if blocked.split_whitespace().any(|name| name == next.as_str()) {
            backlog.mark_blocked(&next, block("asked to")).unwrap();
        } else {
            backlog.mark_passed(&next).unwrap();
        }
        order.push(next.to_string());
    }
    assert_eq!(order.join(" "), expected);
    assert!(backlog.is_settled());
}

fn check_refused(text: &str, expected: &str) {
    assert_eq!(Backlog::new(features(text)).unwrap_err().to_string(), expected);
}

fn workable(backlog: &Backlog) -> String {
    backlog.workable().map(FeatureId::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn priority_then_the_files_order() {
    check_order("a\nb\nc", "", "a b c");
    check_order("a\nb!5\nc!5\nd!-1", "", "b c a d");
    check_order("a!9: b\nb\nc!1", "", "c b a");
    check_order("a: b b\nb", "", "b a");
    check_order("", "", "");
}

#[test]
fn what_depends_on_a_blocked_feature_waits_and_the_rest_goes_on() {
    check_order("a\nb: a\nc: b\nd", "a", "a d");
    let mut backlog = backlog("a\nb: a\nc: b d\nd");
    backlog.mark_blocked(&id("a"), block("no key")).unwrap();
    assert_eq!(backlog.blocked_by(&id("c")), [id("a")]);
    assert_eq!(backlog.waiting_for(&id("c")), [id("b"), id("d")]);
    assert_eq!(backlog.dependents(&id("a")), [id("b")]);
    assert_eq!(backlog.state(&id("a")), Some(&FeatureState::Blocked(block("no key"))));
    backlog.mark_pending(&id("a")).unwrap();
    assert_eq!(workable(&backlog), "a d");
}

#[test]
fn what_was_begun_before_comes_first() {
    let mut backlog = backlog("a!9\nb\nc: b");
    backlog.mark_started_before(&id("b")).unwrap();
    assert_eq!(workable(&backlog), "b a");
    assert_eq!(backlog.start_next(), Some(id("b")));
    backlog.mark_pending(&id("b")).unwrap();
    assert_eq!(backlog.peek(), Some(&id("b")));
    backlog.mark_passed(&id("b")).unwrap();
    backlog.mark_pending(&id("b")).unwrap();
    assert_eq!(workable(&backlog), "a b");
}

#[test]
fn a_pass_that_is_taken_back_holds_its_dependents_again() {
    let mut backlog = backlog("a\nb: a\nc: a");
    backlog.mark_passed(&id("a")).unwrap();
    backlog.mark_in_progress(&id("b")).unwrap();
    assert_eq!(workable(&backlog), "c");
    backlog.mark_pending(&id("a")).unwrap();
    assert_eq!(workable(&backlog), "a");
    assert_eq!(backlog.state(&id("b")), Some(&FeatureState::InProgress));
    let expected = Counts { pending: 2, workable: 1, in_progress: 1, passed: 0, blocked: 0 };
    assert_eq!((backlog.counts(), backlog.counts().total()), (expected, 3));
}

#[test]
fn an_edit_keeps_the_states() {
    let mut backlog = backlog("a\nb: a\nc\nd");
    backlog.mark_passed(&id("a")).unwrap();
    backlog.mark_in_progress(&id("c")).unwrap();
    backlog.mark_started_before(&id("d")).unwrap();
    let changes = backlog.update(features("e!7\nd\nb: a e\na!1")).unwrap();
    let edited = vec![(id("b"), vec!["depends_on"]), (id("a"), vec!["priority"])];
    let removed = vec![(features("c").remove(0), FeatureState::InProgress)];
    assert_eq!(changes, Changes { added: vec![id("e")], edited, removed });
    assert_eq!(workable(&backlog), "d e");
    assert_eq!(backlog.waiting_for(&id("b")), [id("e")]);
}

#[test]
fn a_wrong_edit_changes_nothing() {
    let mut backlog = backlog("a\nb: a");
    backlog.mark_passed(&id("a")).unwrap();
    let error = backlog.update(features("a: b\nb: a")).unwrap_err();
    let BacklogError::Cycles(cycles) = error else { panic!("{error}") };
    assert_eq!(cycles[0].path, [id("a"), id("b"), id("a")]);
    assert_eq!((workable(&backlog).as_str(), backlog.counts().passed), ("b", 1));
}

#[test]
fn what_is_no_dag_is_refused_with_both_places() {
    check_refused(
        "x\na: b\nb: c x\nc: a",
        "the dependencies form a cycle: a -> b -> c -> a; take one of them out of `depends_on`",
    );
    check_refused(
        "z: y\ny: z\na: z",
        "the dependencies form a cycle: z -> y -> z; take one of them out of `depends_on`",
    );
    check_refused(
        "a: a",
        "the dependencies form a cycle: a -> a; take one of them out of `depends_on`",
    );
    check_refused(
        "a\nb: zz",
        "feature 2 (`b`) depends on `zz`, which is not in the backlog; add it, or take it out of `depends_on`",
    );
    check_refused(
        "a\nb\nA",
        "feature 1 (`a`) and feature 3 (`A`) have the same id (capital letters do not count); rename one of them",
    );
    let unknown = backlog("a").mark_passed(&id("b")).unwrap_err().to_string();
    assert_eq!(unknown, "there is no feature `b`");
}

#[test]
fn twenty_thousand_features_run_to_the_end() {
    let many = (0..20_000_usize).map(|number| Feature {
        priority: i64::try_from(number * 7919 % 10).unwrap(),
        depends_on: [2, 3, 7]
            .iter()
            .filter(|_| number > 0)
            .map(|part| id(&format!("f{}", number / part)))
            .collect(),
        ..Feature::new(id(&format!("f{number}")), "")
    });
    let mut backlog = Backlog::new(many.collect()).unwrap();
    let mut handed_out = 0;
    while let Some(next) = backlog.start_next() {
        assert_eq!(backlog.waiting_for(&next), []);
        backlog.mark_passed(&next).unwrap();
        handed_out += 1;
    }
    assert_eq!((handed_out, backlog.counts().passed), (20_000, 20_000));
}

#[test]
fn a_chain_of_a_hundred_thousand_does_not_overflow_the_stack() {
    let chain = |first: &[FeatureId]| -> Vec<Feature> {
        let link = |number: usize| {
            if number == 0 { first.to_vec() } else { vec![id(&format!("f{}", number - 1))] }
        };
        (0..100_000)
            .map(|number| Feature {
                depends_on: link(number),
                ..Feature::new(id(&format!("f{number}")), "")
            })
            .collect()
    };
    let mut backlog = Backlog::new(chain(&[])).unwrap();
    backlog.mark_blocked(&id("f0"), block("first")).unwrap();
    assert_eq!(backlog.blocked_by(&id("f99999")), [id("f0")]);
    let Err(BacklogError::Cycles(cycles)) = Backlog::new(chain(&[id("f99999")])) else {
        panic!("a cycle was accepted")
    };
    assert_eq!((cycles.len(), cycles[0].path.len()), (1, 100_001));
}

#[test]
fn all_cycles_are_named_with_a_link_of_each() {
    // Two cycles share `b`; a third one is apart.
    let text = "a: b\nb: c a\nc: d\nd: b\nx: z\ny: x\nz: y";
    check_refused(
        text,
        "the dependencies form 3 cycles; take one link of each out of `depends_on`, for example the one in parentheses:\n\
         - a -> b -> a (`a` without `b`)\n\
         - b -> c -> d -> b (`b` without `c`)\n\
         - x -> z -> y -> x (`x` without `z`)",
    );
    let mut features = features(text);
    for cycle in cycles(&features) {
        let feature = features.iter_mut().find(|feature| feature.id == cycle.without_in).unwrap();
        feature.depends_on.retain(|needed| *needed != cycle.without);
    }
    assert!(Backlog::new(features).is_ok());
    assert_eq!(
        cycles(&backlog("a: b\nb").iter().map(|(one, _)| one.clone()).collect::<Vec<_>>()),
        []
    );
}

#[test]
fn many_cycles_in_a_large_list_are_found_at_once() {
    // 54 groups of 200 features each have a long cycle and a short one.
    let many: Vec<Feature> = (0..60_000_usize)
        .map(|number| {
            let mut depends_on = Vec::new();
            if !number.is_multiple_of(200) {
                depends_on.push(id(&format!("f{}", number - 1)));
            }
            if number < 54 * 200 && number.is_multiple_of(200) {
                depends_on.push(id(&format!("f{}", number + 199)));
                depends_on.push(id(&format!("f{}", number + 3)));
            }
            Feature { depends_on, ..Feature::new(id(&format!("f{number}")), "") }
        })
        .collect();
    let Err(BacklogError::Cycles(found)) = Backlog::new(many) else { panic!("accepted") };
    let lengths: Vec<usize> = found.iter().map(|cycle| cycle.path.len()).collect();
    assert_eq!(lengths, [[5; 54], [201; 54]].concat());
}

#[test]
fn a_dense_graph_ends_the_search_early() {
    let ids: Vec<FeatureId> = (0..400).map(|number| id(&format!("f{number}"))).collect();
    let all = |own: &FeatureId| ids.iter().filter(|other| *other != own).cloned().collect();
    let features =
        ids.iter().map(|own| Feature { depends_on: all(own), ..Feature::new(own.clone(), "") });
    let Err(BacklogError::Cycles(found)) = Backlog::new(features.collect()) else {
        panic!("accepted")
    };
    assert!(found.len() > 1 && found[0].path.len() == 3);
}
