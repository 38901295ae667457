//! The work tree of a call: ready, and locked against calls that would disturb it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{StepTree, ToolUse};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::git::{TreeRequest, WorkTree};

use super::tool_tree::Fault;
use super::{Answer, ToolHandler};

/// The locks of work trees, by path.
pub(super) type Locks = Arc<Mutex<HashMap<PathBuf, Weak<RwLock<()>>>>>;

/// A work tree, locked for a call.
pub(super) struct Ready {
    pub(super) tree: WorkTree,
    /// A notice to the model about the tree.
    pub(super) notice: Option<String>,
    _guard: TreeLock,
}

#[expect(dead_code, reason = "the locks are held, not used")]
enum TreeLock {
    Shared(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

impl Ready {
    /// An answer, after the notice.
    pub(super) fn with_notice(self, answer: Result<Answer, Fault>) -> Result<Answer, Fault> {
        let Some(notice) = self.notice else { return answer };
        match answer {
            Ok(answer) => Ok(Answer { text: notice + &answer.text, ..answer }),
            Err(Fault::Tool(text)) => Err(Fault::Tool(notice + &text)),
            failure => failure,
        }
    }
}

impl ToolHandler {
    fn lock(&self, wanted: &TreeRequest<'_>) -> Arc<RwLock<()>> {
        let worktree = self.setup.git.feature_tree_path(wanted.project, wanted.feature);
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(&worktree).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(worktree, Arc::downgrade(&lock));
        lock
    }

    /// The work tree. A call that only reads shares it.
    pub(super) async fn ready(
        &self,
        wanted: &TreeRequest<'_>,
        only_reads: bool,
    ) -> Result<Ready, Failure> {
        let git = &self.setup.git;
        let lock = self.lock(wanted);
        if only_reads {
            let guard = TreeLock::Shared(Arc::clone(&lock).read_owned().await);
            if let Some(tree) = git.steady_tree(wanted).await? {
                return Ok(Ready { tree, notice: None, _guard: guard });
            }
        }
        let guard = TreeLock::Alone(lock.write_owned().await);
        git.trust_if_system_ran_on(wanted).await?;
        if let Some(tree) = git.steady_tree(wanted).await? {
            return Ok(Ready { tree, notice: None, _guard: guard });
        }
        let tree = self.setup.work_tree(wanted).await?;
        // A failed set-up must not run again before the next call: it would reset the tree.
        tree.end_setup(Some(&tree.at()?))?;
        let notice = git.rescued(wanted).await?.map(|rescued| {
            format!(
                "[The work tree was made again from its last commit, because the machine stopped. \
                 Its files as they were then: `git show {rescued}`.]\n"
            )
        });
        Ok(Ready { tree, notice, _guard: guard })
    }
}

pub(super) fn tree_request<'a>(input: &'a ToolUse, attempt: &'a Attempt) -> TreeRequest<'a> {
    TreeRequest {
        project: &input.project,
        feature: &input.feature,
        tree: StepTree::Feature,
        commit: None,
        attempt,
    }
}
