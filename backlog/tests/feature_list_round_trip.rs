//! Lists with random keys in every shape: states are written, and nothing else changes.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use longhaul_backlog::{EntryState, FeatureList};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const OWNED: [&str; 5] = ["status", "state", "passes", "last_tested", "lastTested"];

/// A small value of any type.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|number| Value::from(f64::from(number) / 8.0)),
        "[ -~é☃]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec(("[a-z]{1,3}", inner), 0..3)
                .prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// Keys that mean nothing to Longhaul.
fn unknown_keys() -> impl Strategy<Value = Vec<(String, Value)>> {
    proptest::collection::vec(("x_[a-z]{1,4}", value()), 0..4)
}

/// An entry with a name, some of the keys that may be there, and unknown keys, in any order.
fn entry(number: usize, with_ids: bool) -> impl Strategy<Value = Value> {
    let status = prop_oneof![
        Just("pending"),
        Just("in_progress"),
        Just("done"),
        Just("failing"),
        Just("odd word")
    ];
    let claims = (
        proptest::option::of(status),
        proptest::option::of(any::<bool>()),
        proptest::option::of(prop_oneof![Just("last_tested"), Just("lastTested")]),
    );
    (claims, unknown_keys()).prop_flat_map(move |((status, passes, tested), unknown)| {
        let mut keys = unknown;
        let mut put = |key: &str, value: Value| keys.push((key.to_owned(), value));
        put(
            if number.is_multiple_of(2) { "description" } else { "name" },
            json!(format!("Feature {number}")),
        );
        let id = with_ids.then(|| ("id", json!(format!("f{number}"))));
        let status = status.map(|word| ("status", json!(word)));
        let passes = passes.map(|passes| ("passes", json!(passes)));
        let tested = tested.map(|key| (key, Value::Null));
        [id, status, passes, tested].into_iter().flatten().for_each(|(key, value)| put(key, value));
        Just(keys).prop_shuffle().prop_map(|keys| keys.into_iter().collect())
    })
}

fn document() -> impl Strategy<Value = Value> {
    (0..6_usize, any::<bool>()).prop_flat_map(|(length, with_ids)| {
        let entries: Vec<_> = (0..length).map(|number| entry(number, with_ids)).collect();
        let around =
            proptest::option::of(prop_oneof![Just("features"), Just("items"), Just("userStories")]);
        (entries, around, unknown_keys(), unknown_keys()).prop_map(
            |(entries, around, before, after)| match around {
                None => Value::from(entries),
                Some(key) => before
                    .into_iter()
                    .chain([(key.to_owned(), Value::from(entries))])
                    .chain(after)
                    .collect(),
            },
        )
    })
}

/// The document without the keys that Longhaul owns, as text: the order of keys counts.
fn without_claims(document: &Value) -> String {
    let mut document = document.clone();
    let key =
        ["features", "items", "userStories"].into_iter().find(|key| document.get(*key).is_some());
    let entries = match key {
        Some(key) => &mut document[key],
        None => &mut document,
    };
    for entry in entries.as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().retain(|key, _| !OWNED.contains(&key.as_str()));
    }
    document.to_string()
}

fn keys(entry: &Map<String, Value>) -> Vec<&str> {
    entry.keys().map(String::as_str).collect()
}

fn entries(list: &FeatureList) -> Vec<&Map<String, Value>> {
    let document = list.document();
    let under = |key: &&str| document.get(*key).is_some();
    let key = ["features", "items", "userStories"].into_iter().find(under);
    let array = key.map_or(document, |key| &document[key]);
    array.as_array().unwrap().iter().map(|entry| entry.as_object().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writing_states_leaves_everything_else(
        document in document(),
        states in proptest::collection::vec((0..4_u8, any::<bool>(), any::<bool>()), 6),
    ) {
        let before = FeatureList::parse(&document.to_string()).unwrap();
        prop_assert_eq!(before.document().to_string(), document.to_string());
        let statuses =
            [FeatureStatus::Pending, FeatureStatus::InProgress, FeatureStatus::Completed, FeatureStatus::Blocked];
        let pairs = before.features().iter().zip(&states);
        let states: BTreeMap<FeatureId, EntryState> = pairs.map(|(feature, &(status, passes, tested))| {
            let last_tested = tested.then(|| "2026-01-01T00:00:00Z".to_owned());
            (feature.id.clone(), EntryState { status: statuses[usize::from(status)], passes, last_tested })
        }).collect();

        let mut after = before.clone();
        after.set_states(&states, "now");
        prop_assert_eq!(without_claims(after.document()), without_claims(before.document()));
        prop_assert_eq!(after.edits_since(&before), vec![]);
        for (old, new) in entries(&before).into_iter().zip(entries(&after)) {
            prop_assert!(keys(new).starts_with(&keys(old)), "keys keep their places, new ones come behind");
        }

        let again = FeatureList::parse(&after.to_text()).unwrap();
        prop_assert_eq!(again.document(), after.document());
        prop_assert_eq!(again.features(), after.features());
        for feature in after.features() {
            prop_assert_eq!(feature.passes, states[&feature.id].passes);
        }
    }
}
