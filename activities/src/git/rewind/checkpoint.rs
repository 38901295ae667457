//! Checkpoints requested by a person: the work tree is stored under a ref and not changed.

use chrono::{DateTime, Utc};
use longhaul_engine::{Failure, Position, RequestedBy, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use crate::git::GitHandlers;
use crate::git::names::{branch, checkpoints_ref};
use crate::git::objects::refs::{NewCommit, Repository};
use crate::git::objects::snapshot::Snapshot;
use crate::git::worktree::tree::Condition;

/// A checkpoint request.
#[derive(Debug, Clone)]
pub struct StoreCheckpoint {
    /// The project.
    pub project: ProjectRef,
    /// The feature; an agent may be working on it.
    pub feature: FeatureId,
    /// Its run.
    pub run: RunId,
    /// The position in the run's history.
    pub position: Position,
    /// The caller's note; may be empty.
    pub note: String,
    /// The author and reason of the request.
    pub request: RequestedBy,
}

/// A stored checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Its number within the run, from 1.
    pub number: u32,
    /// The position in the run's history at that time.
    pub position: Position,
    /// Its creation time.
    pub at: DateTime<Utc>,
    /// The commit that holds the work tree.
    pub commit: String,
    /// The caller's note.
    pub note: String,
}

impl GitHandlers {
    /// Stores the work tree of a feature, with uncommitted work; `None` if it has none.
    pub async fn keep_checkpoint(
        &self,
        keep: &StoreCheckpoint,
    ) -> Result<Option<StoredCheckpoint>, Failure> {
        self.repository(&keep.project).await?.keep_checkpoint(keep).await
    }

    /// The checkpoints of a run, oldest first.
    pub async fn kept_checkpoints(
        &self,
        project: &ProjectRef,
        run: &RunId,
    ) -> Result<Vec<StoredCheckpoint>, Failure> {
        self.repository(project).await?.kept_checkpoints(run).await
    }
}

impl Repository {
    async fn keep_checkpoint(
        &self,
        keep: &StoreCheckpoint,
    ) -> Result<Option<StoredCheckpoint>, Failure> {
        let tree = self.tree(keep.feature.as_str());
        if tree.condition()? != Condition::Sound {
            return Ok(None);
        }
        // An agent may be at work: the tree is only read.
        let head = match self.head_of(&tree).await?.commit {
            Some(head) => head,
            None => match self.branch_commit(&branch(&keep.feature)).await? {
                Some(tip) => tip,
                None => return Ok(None),
            },
        };
        let state = Snapshot::take(self, &tree.path, &tree.index(), &head).await?.tree().await?;
        let commit = self
            .commit(&NewCommit {
                tree: &state,
                parents: &[&head],
                message: &message(keep),
                at: None,
            })
            .await?;
        let _guard = self.exclusive().await;
        let number =
            self.kept_checkpoints(&keep.run).await?.last().map_or(1, |last| last.number + 1);
        self.move_ref(&format!("{}/{number}", checkpoints_ref(&keep.run)), None, &commit).await?;
        Ok(self.kept_checkpoints(&keep.run).await?.pop())
    }

    async fn kept_checkpoints(&self, run: &RunId) -> Result<Vec<StoredCheckpoint>, Failure> {
        let format = "--format=%(refname:lstrip=-1)%00%(objectname)%00\
                      %(committerdate:iso-strict)%00\
                      %(contents:trailers:key=Position,valueonly)%00%(subject)%01";
        let refs = format!("{}/", checkpoints_ref(run));
        let listed = self.git().args(["for-each-ref", format, &refs]).text().await?;
        let mut kept: Vec<StoredCheckpoint> = listed.split('\u{1}').filter_map(read).collect();
        kept.sort_by_key(|kept| kept.number);
        Ok(kept)
    }
}

/// The commit message. It records the author of the request and the position of the run, which the
/// log does not.
fn message(keep: &StoreCheckpoint) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = one_line(&keep.note);
    let note = if note.is_empty() { format!("checkpoint of {}", keep.run) } else { note };
    let by = one_line(&keep.request.by);
    let why = one_line(&keep.request.why);
    let why = if why.is_empty() { why } else { format!("Why: {why}\n") };
    format!("{note}\n\nRun-Id: {}\nPosition: {}\nBy: {by}\n{why}", keep.run, keep.position)
}

fn read(entry: &str) -> Option<StoredCheckpoint> {
    let mut parts = entry.trim_start().splitn(5, '\0');
    let number = parts.next()?.parse().ok()?;
    let commit = parts.next()?.to_owned();
    let at = DateTime::parse_from_rfc3339(parts.next()?).ok()?.to_utc();
    let position = parts.next()?.trim().parse().ok()?;
    Some(StoredCheckpoint { number, position, at, commit, note: parts.next()?.trim().to_owned() })
}
