//! Checks that passed in this process: on the same content with the same set-up they are not
//! repeated.
//!
//! The memory ends with the process. It is no record that an agent could forge.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_engine::Failure;
use longhaul_workflows::backlog::Check;
use longhaul_workflows::contracts::{ChecksInput, Evidence};

use crate::git::GitHandlers;
use crate::longhaul_toml::settings;

/// The number of remembered checks.
const REMEMBERED: usize = 10_000;

/// The evidence of checks that passed, by everything that decides their result.
#[derive(Debug, Clone, Default)]
pub(super) struct PassedChecks {
    evidence: Arc<Mutex<HashMap<blake3::Hash, Evidence>>>,
}

/// The content and the set-up that the checks of one call run on.
#[derive(Debug)]
pub(super) struct CheckedContent {
    /// The tree.
    pub(super) content: String,
    set_up: blake3::Hasher,
}

impl CheckedContent {
    pub(super) async fn of(git: &GitHandlers, input: &ChecksInput) -> Result<Self, Failure> {
        let ChecksInput { project, feature, commit, same_as, .. } = input;
        let content = git.tree_of(project, same_as.as_ref().unwrap_or(commit)).await?;
        // Settings that cannot be read decide as little as they do for the set-up.
        let settings = settings(&git.root_of(project)).ok().map(|settings| settings.project);
        let text = |value| serde_json::to_vec(value).unwrap_or_default();
        let mut digest = blake3::Hasher::new();
        digest.update(content.as_bytes());
        for part in [
            serde_json::to_vec(&settings).unwrap_or_default(),
            text(&serde_json::json!([project.id, feature, input.pass_env])),
            serde_json::to_vec(&input.confinement).unwrap_or_default(),
        ] {
            digest.update(&(part.len() as u64).to_le_bytes()).update(&part);
        }
        Ok(Self { content, set_up: digest })
    }

    fn key(&self, check: &Check) -> blake3::Hash {
        let mut digest = self.set_up.clone();
        let part = [check.run.as_str(), &check.timeout_seconds.unwrap_or_default().to_string()];
        digest.update(part.join("\0").as_bytes());
        digest.finalize()
    }
}

impl PassedChecks {
    /// The evidence of a check that passed on this basis. Never of a held-out check: its files are
    /// not part of the content.
    pub(super) fn find(&self, basis: &CheckedContent, check: &Check) -> Option<Evidence> {
        if check.hidden {
            return None;
        }
        let evidence = self.evidence.lock().unwrap_or_else(PoisonError::into_inner);
        let known = evidence.get(&basis.key(check))?.clone();
        Some(Evidence { name: check.name.clone(), reused: true, put_back: Vec::new(), ..known })
    }

    pub(super) fn keep(&self, basis: &CheckedContent, check: &Check, found: &Evidence) {
        if check.hidden || !found.passed() {
            return;
        }
        let mut evidence = self.evidence.lock().unwrap_or_else(PoisonError::into_inner);
        if evidence.len() >= REMEMBERED {
            evidence.clear();
        }
        // The whole output is in its log.
        let kept = Evidence { output_tail: String::new(), ..found.clone() };
        evidence.insert(basis.key(check), kept);
    }
}
