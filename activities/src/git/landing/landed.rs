//! Commits that runs landed, found by their trailers: the repository proves a landing that the log
//! has lost.

use longhaul_engine::{Failure, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use crate::git::GitHandlers;
use crate::git::files;
use crate::git::message::{is_of, run_line};
use crate::git::names::{NEXT, branch_ref, feature_ref};
use crate::git::objects::refs::Repository;

/// The work of a run that is on the target or on `longhaul/next`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedWork {
    /// The commit that landed.
    pub commit: String,
    /// The files that it changed, relative to the root.
    pub files: Vec<String>,
}

impl GitHandlers {
    /// The commit by which a run landed a feature, if any. `may_be`: the run may have begun before
    /// its history says so. If false, only a run whose work was closed before counts.
    ///
    /// # Errors
    /// If git fails.
    pub async fn landed_work(
        &self,
        project: &ProjectRef,
        target: &str,
        feature: &FeatureId,
        run: &RunId,
        may_be: bool,
    ) -> Result<Option<LandedWork>, Failure> {
        let repository = self.repository(project).await?;
        if !may_be && repository.commit_of(&feature_ref(run)).await?.is_none() {
            return Ok(None);
        }
        let mut tips = Vec::new();
        for branch in [target, NEXT] {
            tips.extend(repository.commit_of(&branch_ref(branch)).await?);
        }
        let Some(commit) = repository.landing(&tips, None, feature, run).await? else {
            return Ok(None);
        };
        let files = repository.changed_files(&format!("{commit}^"), &commit).await?;
        Ok(Some(LandedWork { commit, files }))
    }
}

impl Repository {
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
