//! The scheduler against a naive oracle that scans everything before each step, over random
//! backlogs and histories.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_workflows::backlog::{
    Backlog, Block, BlockCause, Counts, Feature, FeatureId, FeatureState,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// One feature of the oracle: a row of a table, in the file's order.
#[derive(Debug, Clone)]
struct Row {
    feature: Feature,
    state: FeatureState,
    resumed: bool,
}

/// The scheduling rules, in their most direct form.
#[derive(Debug, Clone, Default)]
struct Oracle {
    rows: Vec<Row>,
}

impl Oracle {
    fn row(&mut self, id: &FeatureId) -> &mut Row {
        self.rows.iter_mut().find(|row| row.feature.id == *id).unwrap()
    }

    fn waiting_for(&self, feature: &Feature) -> Vec<FeatureId> {
        let unmet = |row: &&Row| {
            feature.depends_on.contains(&row.feature.id) && row.state != FeatureState::Passed
        };
        self.rows.iter().filter(unmet).map(|row| row.feature.id.clone()).collect()
    }

    fn workable(&self) -> Vec<FeatureId> {
        let ready = |row: &&Row| {
            row.state == FeatureState::Pending && self.waiting_for(&row.feature).is_empty()
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(ready).collect();
        // A stable sort leaves the file's order among equals.
        rows.sort_by_key(|row| (i32::from(!row.resumed), -row.feature.priority));
        rows.into_iter().map(|row| row.feature.id.clone()).collect()
    }

    /// The blocked features below one, by following every path.
    fn blocked_by(&self, id: &FeatureId) -> Vec<FeatureId> {
        let mut below: Vec<FeatureId> = vec![id.clone()];
        let mut next = 0;
        while next < below.len() {
            let row = self.rows.iter().find(|row| row.feature.id == below[next]).unwrap();
            for dependency in &row.feature.depends_on {
                if !below.contains(dependency) {
                    below.push(dependency.clone());
                }
            }
            next += 1;
        }
        let blocked = |row: &&Row| {
            row.feature.id != *id
                && below.contains(&row.feature.id)
                && matches!(row.state, FeatureState::Blocked(_))
        };
        self.rows.iter().filter(blocked).map(|row| row.feature.id.clone()).collect()
    }

    fn counts(&self) -> Counts {
        let count = |wanted: fn(&FeatureState) -> bool| {
            self.rows.iter().filter(|row| wanted(&row.state)).count()
        };
        Counts {
            pending: count(|state| *state == FeatureState::Pending),
            workable: self.workable().len(),
            in_progress: count(|state| *state == FeatureState::InProgress),
            passed: count(|state| *state == FeatureState::Passed),
            blocked: count(|state| matches!(state, FeatureState::Blocked(_))),
        }
    }

    fn update(&mut self, features: &[Feature]) {
        let old = std::mem::take(&mut self.rows);
        for feature in features {
            let known = old.iter().find(|row| row.feature.id == feature.id);
            let (state, resumed) = known
                .map_or((FeatureState::Pending, false), |row| (row.state.clone(), row.resumed));
            self.rows.push(Row { feature: feature.clone(), state, resumed });
        }
    }
}

/// An operation on a backlog; an index selects one of its features.
#[derive(Debug, Clone)]
enum Step {
    Next,
    InProgress(Index),
    Pass(Index),
    Block(Index),
    GiveBack(Index),
    StartedBefore(Index),
    Update(Vec<Feature>),
    CloseACircle(Index),
}

fn why() -> Block {
    Block { cause: BlockCause::Request, reason: "why".into() }
}

fn id(number: usize) -> FeatureId {
    FeatureId::new(format!("f{number}")).unwrap()
}

/// Random features: each depends on some of lower rank; the order of the file is shuffled, and some
/// numbers are skipped.
fn features() -> impl Strategy<Value = Vec<Feature>> {
    let parts =
        (-2..3_i64, proptest::collection::vec(any::<Index>(), 0..4), proptest::bool::weighted(0.8));
    proptest::collection::vec(parts, 1..24).prop_flat_map(|parts| {
        let mut features: Vec<Feature> = Vec::new();
        for (number, (priority, dependencies, is_there)) in parts.into_iter().enumerate() {
            if is_there {
                let earlier = |index: Index| {
                    (!features.is_empty()).then(|| features[index.index(features.len())].id.clone())
                };
                let depends_on = dependencies.into_iter().filter_map(earlier).collect();
                features.push(Feature {
                    priority,
                    depends_on,
                    ..Feature::new(id(number), format!("F {number}"))
                });
            }
        }
        Just(features).prop_shuffle()
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Next),
        1 => any::<Index>().prop_map(Step::InProgress),
        5 => any::<Index>().prop_map(Step::Pass),
        2 => any::<Index>().prop_map(Step::Block),
        3 => any::<Index>().prop_map(Step::GiveBack),
        1 => any::<Index>().prop_map(Step::StartedBefore),
        1 => features().prop_map(Step::Update),
        1 => any::<Index>().prop_map(Step::CloseACircle),
    ]
}

fn take(backlog: &mut Backlog, oracle: &mut Oracle, step: &Step) {
    let choose = |oracle: &Oracle, index: &Index| {
        (!oracle.rows.is_empty())
            .then(|| oracle.rows[index.index(oracle.rows.len())].feature.id.clone())
    };
    match step {
        Step::Next => {
            let expected = oracle.workable().first().cloned();
            assert_eq!(backlog.start_next(), expected);
            if let Some(id) = expected {
                oracle.row(&id).state = FeatureState::InProgress;
            }
        }
        Step::Update(features) => {
            backlog.update(features.clone()).unwrap();
            oracle.update(features);
        }
        Step::InProgress(index) => {
            if let Some(id) = choose(oracle, index) {
                backlog.mark_in_progress(&id).unwrap();
                oracle.row(&id).state = FeatureState::InProgress;
            }
        }
        Step::Pass(index) => {
            if let Some(id) = choose(oracle, index) {
                backlog.mark_passed(&id).unwrap();
                let row = oracle.row(&id);
                (row.state, row.resumed) = (FeatureState::Passed, false);
            }
        }
        Step::Block(index) => {
            if let Some(id) = choose(oracle, index) {
                backlog.mark_blocked(&id, why()).unwrap();
                let row = oracle.row(&id);
                (row.state, row.resumed) = (FeatureState::Blocked(why()), false);
            }
        }
        Step::GiveBack(index) => {
            if let Some(id) = choose(oracle, index) {
                backlog.mark_pending(&id).unwrap();
                oracle.row(&id).state = FeatureState::Pending;
            }
        }
        Step::StartedBefore(index) => {
            if let Some(id) = choose(oracle, index) {
                backlog.mark_started_before(&id).unwrap();
                oracle.row(&id).resumed = true;
            }
        }
        Step::CloseACircle(index) => {
            if let Some(id) = choose(oracle, index) {
                let mut features: Vec<Feature> =
                    oracle.rows.iter().map(|row| row.feature.clone()).collect();
                let target = features.iter().position(|feature| feature.id == id).unwrap();
                let below =
                    features[target].depends_on.first().cloned().unwrap_or_else(|| id.clone());
                features
                    .iter_mut()
                    .find(|feature| feature.id == below)
                    .unwrap()
                    .depends_on
                    .push(id);
                backlog.update(features).unwrap_err();
            }
        }
    }
}

fn compare(backlog: &Backlog, oracle: &Oracle) {
    let workable: Vec<FeatureId> = backlog.workable().cloned().collect();
    assert_eq!(workable, oracle.workable());
    assert_eq!(backlog.counts(), oracle.counts());
    assert_eq!(
        backlog.is_settled(),
        oracle.counts().in_progress == 0 && oracle.workable().is_empty()
    );
    let rows: Vec<_> = oracle.rows.iter().map(|row| (&row.feature, &row.state)).collect();
    assert_eq!(backlog.iter().collect::<Vec<_>>(), rows);
    for row in &oracle.rows {
        assert_eq!(backlog.waiting_for(&row.feature.id), oracle.waiting_for(&row.feature));
        assert_eq!(backlog.blocked_by(&row.feature.id), oracle.blocked_by(&row.feature.id));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scheduler_does_what_the_oracle_does(
        features in features(),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut backlog = Backlog::new(features.clone()).unwrap();
        let mut oracle = Oracle::default();
        oracle.update(&features);
        compare(&backlog, &oracle);
        for step in &steps {
            take(&mut backlog, &mut oracle, step);
            compare(&backlog, &oracle);
        }
    }

    #[test]
    fn nothing_starves(
        features in features(),
        blocked in proptest::collection::vec(any::<bool>(), 24),
    ) {
        let mut backlog = Backlog::new(features).unwrap();
        let mut number = 0;
        while let Some(next) = backlog.start_next() {
            prop_assert!(backlog.waiting_for(&next).is_empty());
            prop_assert!(backlog.blocked_by(&next).is_empty());
            if blocked[number] && number % 3 == 0 {
                backlog.mark_blocked(&next, why()).unwrap();
            } else {
                backlog.mark_passed(&next).unwrap();
            }
            number += 1;
        }
        prop_assert!(backlog.is_settled());
        for (feature, state) in backlog.iter() {
            let held = !backlog.blocked_by(&feature.id).is_empty();
            prop_assert!(match state {
                FeatureState::Pending => held,
                FeatureState::Passed | FeatureState::Blocked(_) => !held,
                FeatureState::InProgress => false,
            }, "{} is {state:?}", feature.id);
        }
    }
}
