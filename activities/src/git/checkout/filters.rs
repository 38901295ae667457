//! The filters of a checkout. Git applies them to files, Longhaul's commits are made without them.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul_engine::Failure;

use super::named;
use crate::git::command::Git;
use crate::git::files;
use crate::obstacle::Obstacle;

/// One note for each configured filter that applies to tracked files.
pub(in crate::git) async fn filters_in_force(root: &Path) -> Result<Vec<Obstacle>, Failure> {
    let pattern = r"^filter\..*\.(clean|smudge|process)$";
    let settings = Git::at(root).args(["config", "-z", "--name-only", "--get-regexp", pattern]);
    // Git fails without a match.
    let Some(settings) = settings.find().await? else { return Ok(Vec::new()) };
    let name = |setting: &str| {
        let (name, _) = setting.strip_prefix("filter.")?.rsplit_once('.')?;
        Some(name.to_owned())
    };
    let drivers: BTreeSet<String> = settings.split('\0').filter_map(name).collect();
    let mut notes = Vec::new();
    for driver in drivers {
        let listed = Git::at(root)
            .args(["ls-files", "-z", "--"])
            .arg(format!(":(top,attr:filter={driver})"))
            .env("GIT_LITERAL_PATHSPECS", "0")
            .finish()
            .await?;
        let paths: Vec<Vec<u8>> =
            files::nul_separated(&listed.stdout).map(<[u8]>::to_vec).collect();
        if !paths.is_empty() {
            notes.push(note(root, &driver, &paths));
        }
    }
    Ok(notes)
}

fn note(root: &Path, driver: &str, paths: &[Vec<u8>]) -> Obstacle {
    let problem = format!(
        "git in {} has the filter `{driver}` for {}; Longhaul commits without filters, so git can \
         report landed files as changed, and then finished work waits on `longhaul/next`",
        root.display(),
        named(paths)
    );
    let remedy = "set `target` under [project] to a branch that is not checked out, or remove the \
                  filter from .gitattributes";
    Obstacle::new(problem, remedy)
}
