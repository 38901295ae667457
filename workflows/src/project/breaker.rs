//! The circuit breaker of an agent: repeated failures mean an outage of the agent, not bad
//! features. No session begins for a while; then one probes.
//!
//! Each project has its own breakers, so projects detect an outage of a shared agent separately. A
//! limit over all projects would belong where [`Breaker::admit`] is called.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;

/// The number of failures in a row that opens the breaker.
const IN_A_ROW: u32 = 3;
/// The number of failures in a row of the only feature that fails after which they count: the agent
/// works for the others, and half an hour of probes has passed.
const ALONE: u32 = IN_A_ROW + 6;
/// The first wait before a probe, in seconds; each failed probe doubles it.
const FIRST_WAIT: u32 = 30;
/// The longest wait before a probe, in seconds.
const LONGEST_WAIT: u32 = 15 * 60;

/// The breaker of one agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Breaker {
    /// The number of failures in a row.
    count: u32,
    /// Their features.
    features: BTreeSet<FeatureId>,
    /// Some of them changed files.
    has_changes: bool,
    /// The features whose sessions began after the last failure.
    fresh: BTreeSet<FeatureId>,
    /// Failed sessions, by feature, that do not count if this is an outage.
    suspects: BTreeMap<FeatureId, u32>,
    /// Failed sessions of an outage, not yet reported to their features.
    forgiven: BTreeMap<FeatureId, u32>,
    open: Option<OpenBreaker>,
    /// Whether a session succeeded since a person last resumed the project.
    works: bool,
}

/// The breaker is open: no session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenBreaker {
    /// The time of the next probe; `None`: at once.
    until: Option<DateTime<Utc>>,
    /// The last wait, in seconds.
    wait: u32,
    /// The start of the outage.
    since: DateTime<Utc>,
    /// The feature whose session probes.
    probe: Option<FeatureId>,
    /// The agent could not be started, which is no feature's fault.
    is_start: bool,
    /// The failure.
    why: String,
}

/// Whether a session may begin.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Admission {
    /// Yes; this many failed sessions of the feature do not count.
    Begins { forgiven: u32 },
    /// No.
    Waits(SessionsPaused),
}

/// Why sessions wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsPaused {
    /// The time of the next probe; absent while one runs or may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// The failure.
    pub reason: String,
    /// The start of the outage.
    pub since: DateTime<Utc>,
    /// Whether a person may need to act: the agent cannot be started, or no session succeeded since
    /// a person resumed the project. It may be missing or not logged in, and waiting does not
    /// change that.
    pub needs_person: bool,
}

impl Breaker {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The feature whose session probes.
    pub(super) fn probe(&self) -> Option<&FeatureId> {
        self.open.as_ref()?.probe.as_ref()
    }

    /// Whether it is open because of this feature only, so that another one is the better probe.
    pub(super) fn suspects_only(&self, feature: &FeatureId) -> bool {
        self.is_open() && self.features.len() == 1 && self.features.contains(feature)
    }

    /// Takes the uncounted failures of a feature that now uses another agent.
    pub(super) fn settle(&mut self, feature: &FeatureId) -> u32 {
        self.leave(feature);
        self.suspects.remove(feature).unwrap_or(0) + self.forgiven.remove(feature).unwrap_or(0)
    }

    /// Whether it is in its initial state.
    pub(super) fn is_idle(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a session of a feature may begin now.
    pub(super) fn admit(&mut self, feature: &FeatureId, now: Option<DateTime<Utc>>) -> Admission {
        if let Some(open) = &mut self.open {
            let is_due = open.until.is_none_or(|until| now.is_some_and(|now| until <= now));
            if open.probe.is_some() || !is_due {
                return Admission::Waits(open.paused(self.works));
            }
            open.probe = Some(feature.clone());
            self.fresh.insert(feature.clone());
            let suspects = self.suspects.remove(feature).unwrap_or(0);
            return Admission::Begins {
                forgiven: suspects + self.forgiven.remove(feature).unwrap_or(0),
            };
        }
        self.fresh.insert(feature.clone());
        Admission::Begins { forgiven: self.forgiven.remove(feature).unwrap_or(0) }
    }

    /// A session failed.
    pub(super) fn fail(
        &mut self,
        feature: &FeatureId,
        failure: &FailedSession<'_>,
        now: DateTime<Utc>,
    ) {
        if self.open.is_none() {
            self.count = self.suspects.values().sum();
        }
        self.count += 1;
        self.has_changes |= failure.changed;
        self.features.insert(feature.clone());
        self.fresh.clear();
        *self.suspects.entry(feature.clone()).or_default() += 1;
        if self.works && self.count >= ALONE && self.features.len() == 1 {
            *self = Self { works: true, ..Self::default() };
            return;
        }
        // A single feature whose work goes on is up to its own limit.
        let is_outage = self.count >= IN_A_ROW && !(self.has_changes && self.features.len() == 1);
        let wait = match &self.open {
            Some(open) if open.probe.as_ref() == Some(feature) => (open.wait * 2).min(LONGEST_WAIT),
            None if is_outage || !failure.started => FIRST_WAIT,
            _ => return,
        };
        let is_start = !failure.started;
        let until = Some(now + TimeDelta::seconds(i64::from(wait)));
        let since = self.open.as_ref().map_or(now, |open| open.since);
        self.open =
            Some(OpenBreaker { until, wait, since, probe: None, is_start, why: self.why(failure) });
    }

    /// A session succeeded.
    pub(super) fn pass(&mut self, feature: &FeatureId) {
        if !self.fresh.remove(feature) && self.count > 0 {
            // It began before the last failure, so it may have used the agent before the outage.
            self.works = true;
            if let Some(open) = &mut self.open {
                open.until = None;
            }
            return;
        }
        // If only one feature fails while another succeeds, the failures are specific to that
        // feature; but the outage may have ended in between, so it gets one more session.
        let is_outage = self.open.as_ref().is_some_and(|open| {
            open.is_start || self.features.len() > 1 || self.features.contains(feature)
        });
        let is_open = self.is_open();
        for (feature, count) in std::mem::take(&mut self.suspects) {
            let forgiven = if is_outage { count } else { u32::from(is_open).min(count) };
            *self.forgiven.entry(feature).or_default() += forgiven;
        }
        let forgiven = std::mem::take(&mut self.forgiven);
        let fresh = std::mem::take(&mut self.fresh);
        *self = Self { forgiven, fresh, works: true, ..Self::default() };
    }

    /// A feature does not use its granted session, or its run is over.
    pub(super) fn leave(&mut self, feature: &FeatureId) {
        self.fresh.remove(feature);
        if let Some(open) = &mut self.open
            && open.probe.as_ref() == Some(feature)
        {
            open.probe = None;
        }
    }

    /// A feature restarts: nothing of its earlier runs counts.
    pub(super) fn forget(&mut self, feature: &FeatureId) {
        self.settle(feature);
        if self.open.is_none() {
            self.features.remove(feature);
        }
    }

    /// Allows a probe at once: a person resumes the project.
    pub(super) fn hurry(&mut self) {
        self.works = false;
        if let Some(open) = &mut self.open {
            open.until = None;
        }
    }

    fn why(&self, failure: &FailedSession<'_>) -> String {
        let FailedSession { agent, ending, last_words, started, .. } = failure;
        let agent =
            if agent.chars().count() > LONG { first_word(agent) } else { (*agent).to_owned() };
        let count = self.count;
        let what = match (started, self.has_changes) {
            (false, _) => format!("the agent `{agent}` cannot be started"),
            (true, true) => format!("{count} sessions of `{agent}` failed in a row"),
            (true, false) => {
                format!("{count} sessions of `{agent}` failed in a row and changed nothing")
            }
        };
        let ending = ending.trim_end().trim_end_matches('.');
        let words = if last_words.is_empty() { String::new() } else { format!(", `{last_words}`") };
        format!("{what}: {ending}{words}")
    }
}

impl OpenBreaker {
    fn paused(&self, works: bool) -> SessionsPaused {
        let until = if self.probe.is_some() { None } else { self.until };
        let probe =
            self.probe.as_ref().map(|probe| format!("; a session of {probe} probes it now"));
        let reason = format!("{}{}", self.why, probe.unwrap_or_default());
        SessionsPaused { until, reason, since: self.since, needs_person: self.is_start || !works }
    }
}

/// A long command is shortened to its program, so that the failure after it stays visible.
const LONG: usize = 40;

fn first_word(command: &str) -> String {
    format!("{} …", command.split(' ').next().unwrap_or_default())
}

/// A session that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedSession<'a> {
    /// The command of its agent.
    pub(super) agent: &'a str,
    pub(super) ending: &'a str,
    pub(super) last_words: &'a str,
    /// Whether the agent could be started.
    pub(super) started: bool,
    /// Whether it changed files.
    pub(super) changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
    const FAILED: FailedSession<'_> = FailedSession {
        agent: "agent",
        ending: "exit code 1",
        last_words: "",
        started: true,
        changed: false,
    };

    fn feature(id: &str) -> FeatureId {
        FeatureId::new(id).unwrap()
    }

    /// The failed sessions that are forgiven to a feature whose session may begin.
    fn begins(breaker: &mut Breaker, id: &str) -> Option<u32> {
        match breaker.admit(&feature(id), Some(NOW)) {
            Admission::Begins { forgiven } => Some(forgiven),
            Admission::Waits(_) => None,
        }
    }

    /// Lets sessions fail until the breaker opens; returns whether a person may need to act.
    fn needs_person(breaker: &mut Breaker, started: bool) -> Option<bool> {
        let feature = FeatureId::new("login").unwrap();
        for _ in 0..IN_A_ROW {
            let failed = FailedSession { started, ..FAILED };
            breaker.fail(&feature, &failed, NOW);
        }
        match breaker.admit(&feature, Some(NOW)) {
            Admission::Waits(paused) => Some(paused.needs_person),
            Admission::Begins { .. } => None,
        }
    }

    #[test]
    fn an_agent_that_got_through_is_waited_for_until_a_person_has_the_project_run() {
        let mut breaker = Breaker::default();
        let probe = |breaker: &mut Breaker| {
            breaker.hurry();
            begins(breaker, "login");
            breaker.pass(&feature("login"));
        };
        assert_eq!(needs_person(&mut breaker, true), Some(true), "it may not be logged in");
        probe(&mut breaker);
        assert_eq!(needs_person(&mut breaker, true), Some(false), "an outage");
        probe(&mut breaker);
        assert_eq!(needs_person(&mut breaker, false), Some(true), "it is gone");
        probe(&mut breaker);
        breaker.hurry();
        assert_eq!(needs_person(&mut breaker, true), Some(true));
    }

    #[test]
    fn a_session_from_before_an_outage_does_not_hide_it() {
        let mut breaker = Breaker::default();
        for id in ["basket", "login", "search"] {
            assert_eq!(begins(&mut breaker, id), Some(0));
        }
        for earlier in ["login", "search"] {
            breaker.fail(&feature("basket"), &FAILED, NOW);
            breaker.pass(&feature(earlier));
            assert_eq!(begins(&mut breaker, "basket"), Some(0));
        }
        breaker.fail(&feature("basket"), &FAILED, NOW);
        assert!(breaker.is_open());
        assert_eq!(begins(&mut breaker, "basket"), None);
    }

    #[test]
    fn a_session_since_the_failures_shows_that_the_agent_works() {
        let mut breaker = Breaker::default();
        for other in ["login", "search", "login", "search"] {
            assert_eq!(begins(&mut breaker, "basket"), Some(0));
            breaker.fail(&feature("basket"), &FAILED, NOW);
            assert_eq!(begins(&mut breaker, other), Some(0));
            breaker.pass(&feature(other));
        }
        assert!(!breaker.is_open(), "the feature is at fault");
    }

    #[test]
    fn a_feature_that_failed_alone_gets_one_session_more() {
        let mut breaker = Breaker::default();
        for _ in 0..IN_A_ROW {
            breaker.fail(&feature("basket"), &FAILED, NOW);
        }
        assert!(breaker.suspects_only(&feature("basket")));
        breaker.hurry();
        assert_eq!(begins(&mut breaker, "login"), Some(0));
        breaker.pass(&feature("login"));
        assert_eq!(begins(&mut breaker, "basket"), Some(1));
    }

    #[test]
    fn the_last_feature_that_fails_alone_is_given_up_after_some_probes() {
        let mut breaker = Breaker::default();
        assert_eq!(begins(&mut breaker, "login"), Some(0));
        breaker.pass(&feature("login"));
        let mut sessions = 0;
        let mut fail = |breaker: &mut Breaker| {
            breaker.fail(&feature("basket"), &FAILED, NOW);
            sessions += 1;
            breaker.is_open()
        };
        for _ in 0..IN_A_ROW {
            fail(&mut breaker);
        }
        let mut is_open = true;
        while is_open {
            let later = NOW + TimeDelta::seconds(i64::from(LONGEST_WAIT));
            let probe = breaker.admit(&feature("basket"), Some(later));
            assert!(matches!(probe, Admission::Begins { .. }), "{probe:?}");
            is_open = fail(&mut breaker);
        }
        assert_eq!(sessions, ALONE);
        assert_eq!(begins(&mut breaker, "basket"), Some(0), "its failures count");
    }

    #[test]
    fn sessions_that_change_files_show_an_outage_if_several_features_fail() {
        let changed = FailedSession { changed: true, ..FAILED };
        let mut breaker = Breaker::default();
        for _ in 0..IN_A_ROW {
            breaker.fail(&feature("basket"), &changed, NOW);
        }
        assert!(!breaker.is_open());
        breaker.fail(&feature("login"), &changed, NOW);
        assert!(breaker.is_open());
    }

    #[test]
    fn a_long_command_is_named_by_its_program() {
        let mut breaker = Breaker::default();
        let agent = format!("claude -p {}", "--flag ".repeat(9));
        let failed = FailedSession {
            agent: &agent,
            ending: "exit code 127",
            last_words: "not found",
            started: false,
            ..FAILED
        };
        breaker.fail(&FeatureId::new("login").unwrap(), &failed, NOW);
        let why = breaker.open.map(|open| open.why);
        assert_eq!(
            why.as_deref(),
            Some("the agent `claude …` cannot be started: exit code 127, `not found`")
        );
    }
}
