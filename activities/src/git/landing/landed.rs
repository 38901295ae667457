//! Commits that runs landed, found by their trailers: the repository proves a landing that the log
//! has lost.

use longhaul_engine::{Failure, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{LandedWork, ProjectRef};

use crate::git::GitHandlers;
use crate::git::files;
use crate::git::message::{is_of, run_line};
use crate::git::names::{NEXT, branch_ref, feature_ref};
use crate::git::objects::refs::Repository;

/// Which landings of a run count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landings {
    /// All: the run may have begun before its history says so.
    All,
    /// Only that of a run whose work was closed.
    OfClosedRun,
}

impl GitHandlers {
    /// The commit by which a run landed a feature, if any.
    ///
    /// # Errors
    /// If git fails.
    pub async fn landed_work(
        &self,
        project: &ProjectRef,
        target: &str,
        feature: &FeatureId,
        run: &RunId,
        counted: Landings,
    ) -> Result<Option<LandedWork>, Failure> {
        let repository = self.repository(project).await?;
        let is_closed = repository.commit_of(&feature_ref(run)).await?.is_some();
        if counted == Landings::OfClosedRun && !is_closed {
            return Ok(None);
        }
        repository.landed_work(target, feature, run).await
    }
}

impl Repository {
    /// The work that one of the runs of a feature before this one has landed.
    pub(in crate::git) async fn landed_before(
        &self,
        target: &str,
        feature: &FeatureId,
        run: &RunId,
    ) -> Result<Option<LandedWork>, Failure> {
        let numbers = (1..run.number().unwrap_or(1)).rev();
        for earlier in numbers.filter_map(|number| run.with_number(number)) {
            if let Some(landed) = self.landed_work(target, feature, &earlier).await? {
                return Ok(Some(landed));
            }
        }
        Ok(None)
    }

    async fn landed_work(
        &self,
        target: &str,
        feature: &FeatureId,
        run: &RunId,
    ) -> Result<Option<LandedWork>, Failure> {
        let mut tips = Vec::new();
        for branch in [target, NEXT] {
            tips.extend(self.commit_of(&branch_ref(branch)).await?);
        }
        let Some(commit) = self.landing(&tips, None, feature, run).await? else {
            return Ok(None);
        };
        let files = self.changed_files(&format!("{commit}^"), &commit).await?;
        Ok(Some(LandedWork { commit, files }))
    }

    /// The commit by which a run landed a feature, among the first-parent ancestors of the tips
    /// that are not in `without`.
    ///
    /// First parents only: agents write the commits that a merge brings in, and can forge their
    /// trailers.
    pub(in crate::git) async fn landing(
        &self,
        tips: &[String],
        without: Option<&str>,
        feature: &FeatureId,
        run: &RunId,
    ) -> Result<Option<String>, Failure> {
        let mut outside = Vec::new();
        for tip in tips {
            let is_within = match without {
                Some(without) if without == tip => true,
                Some(without) => self.is_near_ancestor(tip, without).await? == Some(true),
                None => false,
            };
            if !is_within {
                outside.push(tip);
            }
        }
        if outside.is_empty() {
            return Ok(None);
        }
        let grep = format!("--grep={}", run_line(run));
        let mut git = self.plumbing.git().args([
            "log",
            "-z",
            "--first-parent",
            "--no-show-signature",
            "--format=%H%n%B",
        ]);
        git = git.args(["--fixed-strings", &grep]).args(outside);
        if let Some(without) = without {
            git = git.arg(format!("^{without}"));
        }
        let listed = git.run().await?;
        let commit = files::nul_separated(&listed.stdout).find_map(|entry| {
            let text = files::shown(entry);
            let (commit, message) = text.split_once('\n')?;
            is_of(message, feature, run).then(|| commit.to_owned())
        });
        Ok(commit)
    }
}
