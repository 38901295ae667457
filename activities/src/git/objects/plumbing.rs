//! Longhaul's own git directory of a project: it borrows the objects of the user's repository and
//! shares nothing else.
//!
//! Commands that read or write files of a work tree run here, unaffected by any configuration,
//! attribute file, filter, merge driver, replace ref or index of the user's repository or of an
//! agent's clone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_engine::Failure;

use crate::git::command::Git;
use crate::git::files;
use crate::git::names::{OWN_DIR, TEMP_FILE_PATTERN};

/// The ignore patterns of every work tree.
const EXCLUDED: &str = "info/exclude";

/// A git directory that borrows the objects of a repository.
#[derive(Debug, Clone)]
pub(in crate::git) struct Plumbing {
    dir: PathBuf,
    objects: PathBuf,
    /// The list of commits without parents, in a shallow repository.
    shallow: PathBuf,
    is_sha256: bool,
    /// Author and committer: the user if configured, because the work lands in the user's
    /// repository.
    identity: Arc<[(&'static str, String)]>,
    /// The names and addresses of the user's remotes.
    remotes: Arc<[(String, String)]>,
    /// The names of those of which the repository is a partial clone.
    promisors: Arc<[String]>,
    /// The files of the directory: names and contents.
    content: Arc<[(&'static str, Vec<u8>)]>,
}

impl Plumbing {
    /// Creates the directory, or recreates it: it holds nothing of value.
    pub(in crate::git) async fn prepare(
        dir: &Path,
        root: &Path,
        common: &Path,
    ) -> Result<Self, Failure> {
        let values = config_of(root).await?;
        let value = |name: &str| {
            values.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let is_sha256 = value("extensions.objectformat") == Some("sha256");
        let config = format!("[core]\n\tbare = true\n{}", format_lines(is_sha256));
        let content = [
            ("config", config.into_bytes()),
            ("HEAD", b"ref: refs/heads/none\n".to_vec()),
            (EXCLUDED, excluded_by_user(common, value("core.excludesfile"))?),
        ];
        let name = value("user.name").filter(|name| !name.is_empty()).unwrap_or("Longhaul");
        let email =
            value("user.email").filter(|email| !email.is_empty()).unwrap_or("longhaul@localhost");
        let chosen = |variable: &'static str, value: &str| {
            (
                variable,
                std::env::var(variable)
                    .ok()
                    .filter(|given| !given.is_empty())
                    .unwrap_or(value.to_owned()),
            )
        };
        let identity = [
            chosen("GIT_AUTHOR_NAME", name),
            chosen("GIT_AUTHOR_EMAIL", email),
            chosen("GIT_COMMITTER_NAME", name),
            chosen("GIT_COMMITTER_EMAIL", email),
        ];
        let objects = common.join("objects");
        let shallow = common.join("shallow");
        let remotes = values.iter().filter_map(|(name, value)| {
            let remote = name.strip_prefix("remote.")?.strip_suffix(".url")?;
            Some((remote.to_owned(), value.clone()))
        });
        let promisors = values.iter().filter_map(|(name, value)| {
            let remote = name.strip_prefix("remote.")?.strip_suffix(".promisor")?;
            (value != "false").then(|| remote.to_owned())
        });
        let plumbing = Self {
            dir: dir.to_owned(),
            objects,
            shallow,
            is_sha256,
            identity: identity.into(),
            remotes: remotes.collect(),
            promisors: promisors.collect(),
            content: content.into(),
        };
        plumbing.make()?;
        Ok(plumbing)
    }

    /// Makes the directory.
    pub(in crate::git) fn make(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(self.dir.join("refs"))
            .map_err(|error| files::failed("make the directory", &self.dir, &error))?;
        self.content
            .iter()
            .try_for_each(|(name, content)| files::write_durably(&self.dir.join(name), content))
    }

    /// Whether it still exists. People remove directories that they do not know.
    pub(in crate::git) fn is_there(&self) -> bool {
        self.dir.join("config").is_file()
    }

    /// A command without a work tree.
    pub(in crate::git) fn git(&self) -> Git {
        self.at(&self.dir)
    }

    /// A command on a work tree, with this index.
    pub(in crate::git) fn git_in(&self, work_tree: &Path, index: &Path) -> Git {
        let git = self.at(work_tree).reading(work_tree);
        git.env("GIT_WORK_TREE", work_tree).env("GIT_INDEX_FILE", index)
    }

    /// The object directory.
    pub(in crate::git) fn objects(&self) -> &Path {
        &self.objects
    }

    /// The file that lists commits without parents; it exists in a shallow repository only.
    pub(in crate::git) fn shallow(&self) -> &Path {
        &self.shallow
    }

    /// The name and address of the user, for commits of agents.
    pub(in crate::git) fn author(&self) -> (&str, &str) {
        (&self.identity[0].1, &self.identity[1].1)
    }

    /// The names and addresses of the user's remotes.
    pub(in crate::git) fn remotes(&self) -> &[(String, String)] {
        &self.remotes
    }

    /// The names of the remotes of which the repository is a partial clone.
    pub(in crate::git) fn promisors(&self) -> &[String] {
        &self.promisors
    }

    /// The configuration lines that set the object format.
    pub(in crate::git) fn format_lines(&self) -> &'static str {
        format_lines(self.is_sha256)
    }

    /// The ignore patterns of every work tree.
    pub(in crate::git) fn excluded(&self) -> PathBuf {
        self.dir.join(EXCLUDED)
    }

    fn at(&self, dir: &Path) -> Git {
        let mut git = Git::at(dir)
            .setting("core.attributesFile=/dev/null")
            .setting("core.sparseCheckout=false")
            .env("GIT_DIR", &self.dir)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1");
        for (name, value) in self.identity.iter() {
            git = git.env(name, value);
        }
        if self.shallow.exists() { git.env("GIT_SHALLOW_FILE", &self.shallow) } else { git }
    }
}

fn format_lines(is_sha256: bool) -> &'static str {
    if is_sha256 {
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
    } else {
        "[core]\n\trepositoryformatversion = 0\n"
    }
}

/// The effective configuration of a checkout: canonical names and values, in order.
async fn config_of(root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let listed = Git::at(root).args(["config", "--list", "-z", "--includes"]).run().await?;
    let entry = |bytes: &[u8]| {
        let text = files::shown(bytes);
        let (name, value) = text.split_once('\n').unwrap_or((&text, ""));
        (name.to_owned(), value.to_owned())
    };
    Ok(files::nul_separated(&listed.stdout).map(entry).collect())
}

/// The user's ignore patterns, of the repository and global.
fn excluded_by_user(common: &Path, everywhere: Option<&str>) -> Result<Vec<u8>, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let everywhere = match everywhere {
        Some(path) => match path.strip_prefix("~/") {
            Some(rest) => home.map(|home| home.join(rest)),
            None => Some(PathBuf::from(path)),
        },
        None => std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home.map(|home| home.join(".config")))
            .map(|config| config.join("git/ignore")),
    };
    let mut text = format!("/{OWN_DIR}/\n{TEMP_FILE_PATTERN}\n").into_bytes();
    for file in everywhere.into_iter().chain([common.join("info/exclude")]) {
        if file.is_file() {
            text.extend(files::read(&file)?.unwrap_or_default());
            text.push(b'\n');
        }
    }
    Ok(text)
}
