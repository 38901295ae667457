//! Never more than the limits, no starvation, the highest priority first.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

type Waiting<'a> = Pin<Box<dyn Future<Output = Option<PoolSlot>> + 'a>>;

fn pools(size: usize) -> Pools {
    Pools::new(&[("agents".to_owned(), size)], &[])
}

fn run(project: &str) -> RunId {
    RunId::new(format!("{project}/feature/1")).expect("tests use valid ids")
}

fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Lets all calls enter one after the other, each as briefly as possible; returns their order.
fn order(pools: &Pools, projects: &[&str]) -> Vec<String> {
    let hold = poll(pin!(pools.enter(Some("agents"), 0, &run("first"))).as_mut()).flatten();
    let runs: Vec<_> = projects.iter().map(|project| run(project)).collect();
    let mut waiting: Vec<(usize, Waiting<'_>)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let mut entering: Waiting<'_> = Box::pin(pools.enter(Some("agents"), 0, run));
        assert!(poll(entering.as_mut()).is_none(), "the pool is full");
        waiting.push((index, entering));
    }
    drop(hold);
    let mut entered = Vec::new();
    while !waiting.is_empty() {
        let ready = |(_, entering): &mut (usize, Waiting<'_>)| poll(entering.as_mut());
        let (at, place) = waiting
            .iter_mut()
            .enumerate()
            .find_map(|(at, entry)| ready(entry).map(|place| (at, place)))
            .expect("a free slot is given as long as a call waits");
        entered.push(projects[waiting.remove(at).0].to_owned());
        drop(place);
    }
    entered
}

#[test]
fn a_small_project_is_served_every_second_time() {
    let mut projects = vec!["big"; 100];
    projects.extend(["small"; 3]);
    let order = order(&pools(1), &projects);
    let places: Vec<_> = order
        .iter()
        .enumerate()
        .filter(|(_, project)| *project == "small")
        .map(|(at, _)| at)
        .collect();
    assert!(places.iter().all(|at| *at < 6), "{places:?}");
}

#[test]
fn a_higher_priority_goes_first() {
    let pools = pools(1);
    pools.share("urgent", Share { priority: 5, ..Share::default() });
    pools.share("late", Share { priority: -1, ..Share::default() });
    assert_eq!(
        order(&pools, &["late", "usual", "urgent", "urgent"]),
        ["urgent", "urgent", "usual", "late"]
    );
}

#[test]
fn a_limit_of_a_label_holds_up_no_others() {
    let pools = pools(3);
    pools.limit("agents", "team=web", 1);
    for project in ["a", "b"] {
        pools.share(project, Share { priority: 9, labels: vec!["team=web".into()] });
    }
    let first = run("a");
    let second = run("b");
    let other = run("c");
    let first = poll(pin!(pools.enter(Some("agents"), 0, &first)).as_mut());
    let mut entering = Box::pin(pools.enter(Some("agents"), 0, &second));
    assert!(first.is_some() && poll(entering.as_mut()).is_none());
    assert!(poll(pin!(pools.enter(Some("agents"), 0, &other)).as_mut()).is_some());
    drop(first);
    assert!(poll(entering.as_mut()).is_some());
}

#[test]
fn who_ceases_to_wait_takes_no_place_away() {
    let pools = pools(1);
    let runs = [run("a"), run("b"), run("c")];
    let held = poll(pin!(pools.enter(Some("agents"), 0, &runs[0])).as_mut());
    let mut gone = Box::pin(pools.enter(Some("agents"), 0, &runs[1]));
    let mut stays = Box::pin(pools.enter(Some("agents"), 0, &runs[2]));
    assert!(poll(gone.as_mut()).is_none() && poll(stays.as_mut()).is_none());
    drop(held);
    drop(gone);
    assert!(poll(stays.as_mut()).is_some(), "given first to one that went without looking");
    assert!(poll(pin!(pools.enter(None, 0, &runs[0])).as_mut()).is_some(), "no pool has no limit");
}

/// A call enters, or leaves with or without having had a slot.
#[derive(Debug, Clone)]
enum Step {
    Comes(usize),
    Leaves(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![(0..6_usize).prop_map(Step::Comes), any::<usize>().prop_map(Step::Leaves)];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn never_more_than_the_limits_and_no_place_is_lost(
        size in 1..4_usize,
        limit in 1..3_usize,
        steps in steps(),
    ) {
        let pools = pools(size);
        pools.limit("agents", "team=web", limit);
        let runs: Vec<RunId> = (0..6).map(|number| run(&format!("p{number}"))).collect();
        for project in ["p0", "p1", "p2"] {
            pools.share(project, Share { priority: 0, labels: vec!["team=web".into()] });
        }
        let mut waiting: Vec<(usize, Waiting<'_>)> = Vec::new();
        let mut inside: Vec<(usize, PoolSlot)> = Vec::new();
        for step in steps {
            match step {
                Step::Comes(project) => {
                    let entering = Box::pin(pools.enter(Some("agents"), 0, &runs[project]));
                    waiting.push((project, entering));
                }
                Step::Leaves(call) if !inside.is_empty() && call % 3 > 0 => {
                    inside.swap_remove(call % inside.len());
                }
                Step::Leaves(call) if !waiting.is_empty() => {
                    drop(waiting.swap_remove(call % waiting.len()));
                }
                Step::Leaves(_) => {}
            }
            let mut still = Vec::new();
            for (project, mut entering) in std::mem::take(&mut waiting) {
                match poll(entering.as_mut()) {
                    Some(Some(place)) => inside.push((project, place)),
                    _ => still.push((project, entering)),
                }
            }
            waiting = still;
            let labelled = inside.iter().filter(|(project, _)| *project < 3).count();
            prop_assert!(inside.len() <= size && labelled <= limit);
            let could = waiting.iter().any(|(project, _)| *project >= 3 || labelled < limit);
            prop_assert!(inside.len() == size || !could, "a call waits although there is a slot");
        }
    }
}

/// Two agents, one tree ahead, and one check.
fn fed(expiry: Duration) -> Pools {
    let sizes = [("agents".to_owned(), 2), ("checks".to_owned(), 1)];
    let prefetch = Prefetch {
        pool: "trees".into(),
        feeds: "agents".into(),
        ahead: 1,
        expiry,
        then: "checks".into(),
    };
    Pools::new(&sizes, &[prefetch])
}

fn enter<'a>(pools: &'a Pools, pool: &'a str, rank: u8, run: &'a RunId) -> Waiting<'a> {
    Box::pin(pools.enter(Some(pool), rank, run))
}

#[tokio::test]
async fn trees_are_opened_for_free_agents_and_one_more() {
    let pools = fed(Duration::MAX);
    let runs: Vec<RunId> = (0..5).map(|number| run(&format!("p{number}"))).collect();
    let mut trees: Vec<Waiting<'_>> =
        runs.iter().map(|run| enter(&pools, "trees", 0, run)).collect();
    let opened: Vec<bool> = trees.iter_mut().map(|tree| poll(tree.as_mut()).is_some()).collect();
    assert_eq!(opened, [true, true, true, false, false]);
    let first = poll(enter(&pools, "agents", 0, &runs[0]).as_mut());
    let second = poll(enter(&pools, "agents", 0, &runs[1]).as_mut());
    let mut third = enter(&pools, "agents", 0, &runs[2]);
    assert!(first.is_some() && second.is_some() && poll(third.as_mut()).is_none());
    assert!(poll(trees[3].as_mut()).is_none(), "one is ahead already");
    drop(first);
    let third = poll(third.as_mut());
    assert!(third.is_some() && poll(trees[3].as_mut()).is_some());
    assert!(poll(trees[4].as_mut()).is_none());
    pools.leave(&runs[3]);
    assert!(poll(trees[4].as_mut()).is_some(), "the run ahead has ended");
}

#[tokio::test]
async fn a_prepared_run_that_waits_for_something_else_does_not_count_for_long() {
    let expiry = Duration::from_millis(50);
    let pools = fed(expiry);
    let runs: Vec<RunId> = (0..4).map(|number| run(&format!("p{number}"))).collect();
    for run in &runs[..3] {
        assert!(poll(enter(&pools, "trees", 0, run).as_mut()).is_some());
    }
    let begun = Instant::now();
    assert!(enter(&pools, "trees", 0, &runs[3]).await.is_some());
    assert!(begun.elapsed() >= expiry, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn finished_work_is_checked_before_more_is_begun() {
    let pools = fed(Duration::MAX);
    let runs: Vec<RunId> = (0..6).map(|number| run(&format!("p{number}"))).collect();
    let checking = poll(enter(&pools, "checks", 1, &runs[0]).as_mut());
    let mut new = enter(&pools, "checks", 0, &runs[1]);
    let mut late = enter(&pools, "checks", 1, &runs[2]);
    let mut later = enter(&pools, "checks", 1, &runs[3]);
    for waiting in [&mut new, &mut late, &mut later] {
        assert!(poll(waiting.as_mut()).is_none());
    }
    let mut tree = enter(&pools, "trees", 0, &runs[4]);
    assert!(poll(tree.as_mut()).is_none(), "the checks are congested");
    drop(checking);
    let late = poll(late.as_mut());
    assert!(late.is_some() && poll(new.as_mut()).is_none());
    assert!(poll(tree.as_mut()).is_some(), "only one finished feature waits for its checks");
    drop(late);
    assert!(poll(later.as_mut()).is_some() && poll(new.as_mut()).is_some());
}
