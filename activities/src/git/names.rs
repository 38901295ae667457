//! The names that Longhaul uses in a repository: branches, refs, directories.

use longhaul_engine::{RunId, Slot};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::feature::feature_run;

pub(super) use crate::files::{OWN_DIR, PROGRESS_FILE, TEMP_PREFIX};

/// The prefix of the branches of work.
pub(super) const OWN_BRANCHES: &str = "longhaul/";
/// The branch where finished work waits when the user's checkout of the target cannot follow.
pub(super) const NEXT: &str = "longhaul/next";
/// The prefix of integration work trees, which lie beside those of features. Not valid in a feature
/// id.
const INTEGRATION: &str = ".integrate";
/// The pattern of temporary files that replace a file: [`TEMP_PREFIX`] and six characters. A killed
/// process leaves them.
pub(super) const TEMP_FILE_PATTERN: &str = ".longhaul-??????";

/// The work tree in which the gates of a feature run; no agent works there. Not a valid feature id.
pub(super) fn gates_tree(feature: &str) -> String {
    format!(".gates-{feature}")
}

/// The refs for the commits fetched from a work tree's private repository.
pub(super) struct FetchedRefs {
    /// Of its branch.
    pub(super) branch: String,
    /// Of HEAD.
    pub(super) head: String,
}

pub(super) fn fetched_refs(tree: &str) -> FetchedRefs {
    let prefix = format!("refs/longhaul/fetched/{}", ref_part(tree));
    FetchedRefs { branch: format!("{prefix}/branch"), head: format!("{prefix}/head") }
}

/// Whether a string is a full object name.
pub(super) fn is_object_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The full ref name of a branch.
pub(super) fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// The branch of a feature. A feature called `next` must not get the branch of finished work, in
/// any case: some file systems do not tell `Next` from `next`.
pub(super) fn branch(feature: &FeatureId) -> String {
    if format!("{OWN_BRANCHES}{}", feature.folded()) == NEXT {
        // Unique: `%` is not valid in a feature id.
        return format!("{OWN_BRANCHES}%next");
    }
    format!("{OWN_BRANCHES}{}", feature.as_str())
}

/// The name of an integration work tree.
pub(super) fn integration(tree: u32) -> String {
    if tree == 0 { INTEGRATION.to_owned() } else { format!("{INTEGRATION}-{tree}") }
}

/// The ref that keeps uncommitted files from before this call changed the tree.
pub(super) fn rescue_ref(run: &RunId, slot: Slot) -> String {
    format!("refs/longhaul/rescue/{}/{slot}", ref_path(run.as_str()))
}

/// The ref that keeps uncommitted files from before the rewind that begins this run.
pub(super) fn rewind_rescue_ref(run: &RunId) -> String {
    format!("refs/longhaul/rescue/{}/rewind", ref_path(run.as_str()))
}

/// The prefix of the refs that mark pending rewinds in a project.
pub(super) fn pending_rewinds_prefix(project: &str) -> String {
    format!("refs/longhaul/pending-rewinds/{}/", ref_path(project))
}

/// The refs that mark a pending rewind of a branch.
pub(super) struct PendingRewindRefs {
    /// Its old commit.
    pub(super) from: String,
    /// Its new commit.
    pub(super) to: String,
}

/// The refs that mark the pending rewind with which a run begins.
pub(super) fn pending_rewind_refs(run: &RunId) -> PendingRewindRefs {
    let prefix = format!("refs/longhaul/pending-rewinds/{}", ref_path(run.as_str()));
    PendingRewindRefs { from: format!("{prefix}/from"), to: format!("{prefix}/to") }
}

/// The prefix of the checkpoint refs of a run.
pub(super) fn checkpoints_ref(run: &RunId) -> String {
    format!("refs/longhaul/checkpoints/{}", ref_path(run.as_str()))
}

/// The ref that keeps the old tip of the target after a rollback.
pub(super) fn rolled_back_ref(at: &str) -> String {
    format!("refs/longhaul/rolled-back/{at}")
}

/// The ref that keeps a commit that was put on `longhaul/next` by another program. Ten hex digits
/// are enough: a repository has few of them, and people type the name.
pub(super) fn foreign_ref(commit: &str) -> String {
    format!("refs/longhaul/foreign/{}", commit.get(..10).unwrap_or(commit))
}

/// The ref that keeps the commits of a feature's branch: by its run, also for the sessions below
/// that.
pub(super) fn feature_ref(run: &RunId) -> String {
    format!("refs/longhaul/features/{}", ref_path(feature_run(run).as_str()))
}

/// A run id as part of a ref name. Of the characters of a run id, git refuses `.` in some places, a
/// leading `-` and a lone `@`; they become `%` and two hex digits.
fn ref_path(run: &str) -> String {
    let parts: Vec<String> = run.split('/').map(ref_part).collect();
    parts.join("/")
}

fn ref_part(part: &str) -> String {
    use std::fmt::Write as _;
    if part.is_empty() {
        return "%".to_owned();
    }
    let ends_badly = part.to_ascii_lowercase().ends_with(".lock");
    let mut name = String::with_capacity(part.len());
    for (at, byte) in part.bytes().enumerate() {
        let dot_is_fine =
            at > 0 && at + 1 < part.len() && part.as_bytes()[at - 1] != b'.' && !ends_badly;
        if byte == b'.' && !dot_is_fine || byte == b'-' && at == 0 {
            let _ = write!(name, "%{byte:02x}");
        } else {
            name.push(char::from(byte));
        }
    }
    if name == "@" { "%40".to_owned() } else { name }
}

/// The run id encoded in part of a ref name; `None`: not one of Longhaul's.
pub(super) fn run_of_path(path: &str) -> Option<RunId> {
    let mut id = String::new();
    let mut rest = path;
    while let Some((before, code)) = rest.split_once('%') {
        id.push_str(before);
        let byte = code.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok())?;
        id.push(char::from(byte));
        rest = &code[2..];
    }
    RunId::new(id + rest).ok()
}

/// Whether a ref is in a namespace of Longhaul's. Longhaul makes no symbolic refs there, so one is
/// not followed.
pub(super) fn is_own_ref(name: &str) -> bool {
    name.starts_with("refs/heads/longhaul/") || name.starts_with("refs/longhaul/")
}

/// Whether a ref is a branch of the user.
pub(super) fn is_users_branch(name: &str) -> bool {
    name.starts_with("refs/heads/") && !is_own_ref(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_become_ref_names_that_git_takes() {
        for (run, expected) in [
            ("shop-1a2b3c/login", "refs/longhaul/features/shop-1a2b3c/login"),
            ("shop/login#2", "refs/longhaul/features/shop/login#2"),
            ("a..b", "refs/longhaul/features/a.%2eb"),
            ("a.lock", "refs/longhaul/features/a%2elock"),
            (".a/-b/@", "refs/longhaul/features/%2ea/%2db/%40"),
            ("a/", "refs/longhaul/features/a/%"),
        ] {
            let run = RunId::new(run).unwrap();
            assert_eq!(feature_ref(&run), expected, "{run}");
            let path = expected.strip_prefix("refs/longhaul/features/").unwrap();
            assert!(path.ends_with('%') || run_of_path(path) == Some(run), "{path}");
        }
    }

    #[test]
    fn integration_trees_are_distinguished_from_those_of_features() {
        for tree in [0, 1, 17] {
            assert!(FeatureId::new(integration(tree)).is_err());
        }
    }

    #[test]
    fn temporary_files_match_their_pattern() {
        assert_eq!(TEMP_FILE_PATTERN.strip_prefix(TEMP_PREFIX), Some("??????"));
    }

    #[test]
    fn a_feature_called_next_has_a_branch_of_its_own() {
        assert_eq!(branch(&FeatureId::new("login").unwrap()), "longhaul/login");
        assert_eq!(branch(&FeatureId::new("Next").unwrap()), "longhaul/%next");
    }
}
