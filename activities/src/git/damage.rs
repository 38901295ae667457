//! Damage in a repository after a power cut: empty objects, refs and indexes that git did not sync.
//! Finds it, names it, and repairs it where git holds enough data.

mod config;
mod head;
mod index;
mod linked;
mod packed;
mod packs;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::command::Git;
use super::command::place::GitDirectories;
use super::files;
use super::names::{NEXT, branch_ref, is_object_name, is_own_ref};

pub(super) use index::damaged_index;

/// The commit before the last move of a checkout: git writes it, and fails if it cannot read it.
const ORIG_HEAD: &str = "ORIG_HEAD";

/// Removes an unreadable record of the commit before the last move of a checkout, which would keep
/// git from the next one.
pub(super) fn remove_broken_orig_head(checkout: &Path) -> Result<(), Failure> {
    let file = GitDirectories::of(checkout)?.admin.join(ORIG_HEAD);
    if names_a_commit(&file) { Ok(()) } else { files::remove(&file) }
}

/// One damaged file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// A loose object without content: an empty file, or a pipe, at which git waits for ever. Git
    /// never rewrites an object whose file exists.
    EmptyObject(PathBuf),
    /// A configuration that git cannot read: every command fails.
    Config(PathBuf),
    /// A ref whose file names no commit, or that has only a reflog.
    Ref {
        /// Its full name.
        name: String,
        /// Its file.
        file: PathBuf,
        /// The last readable commit of its reflog.
        last: Option<String>,
    },
    /// An index of a checkout that git cannot read.
    Index(PathBuf),
    /// A damaged HEAD of the checkout. Without one, git sees no repository.
    Head {
        /// Its file.
        file: PathBuf,
        /// Its content, rebuilt from its reflog and the branches: `ref: refs/heads/main`, or a
        /// commit.
        content: Option<String>,
    },
    /// The directory of the refs is missing: git sees no repository.
    NoRefs(PathBuf),
    /// A damaged packed-refs file: all refs in it are lost, or every command fails.
    PackedRefs {
        /// The file.
        file: PathBuf,
        /// The refs that have a reflog and no file of their own.
        lost: Vec<String>,
    },
    /// A pack whose index is missing or damaged.
    PackIndex(PathBuf),
    /// A pack that is shortened or damaged at its end.
    Pack(PathBuf),
    /// The directory of the objects is missing: git sees no repository.
    NoObjects(PathBuf),
    /// The list of the commits at which the history of a shallow clone ends has other lines: every
    /// command fails.
    Shallow(PathBuf),
    /// A repository that lends objects and is not there.
    Alternate {
        /// The file that names it.
        file: PathBuf,
        /// The directory of its objects.
        missing: PathBuf,
    },
    /// A damaged file that links another checkout of the user to the repository.
    Linked {
        /// The file.
        file: PathBuf,
        /// The checkout, if known.
        checkout: Option<PathBuf>,
    },
}

impl Damage {
    /// The damaged file.
    pub fn file(&self) -> &Path {
        match self {
            Self::EmptyObject(file)
            | Self::Config(file)
            | Self::Index(file)
            | Self::NoRefs(file)
            | Self::PackIndex(file)
            | Self::Pack(file)
            | Self::NoObjects(file)
            | Self::Shallow(file)
            | Self::Alternate { file, .. }
            | Self::Ref { file, .. }
            | Self::Head { file, .. }
            | Self::PackedRefs { file, .. }
            | Self::Linked { file, .. } => file,
        }
    }
}

/// Finds damage in the repository of a checkout. Read-only.
///
/// # Errors
/// If the directory is in no repository.
pub async fn find_damage(checkout: &Path) -> Result<Vec<Damage>, Failure> {
    let GitDirectories { top, admin, common } = GitDirectories::of(checkout)?;
    let checkout = top.as_path();
    let configs = config::find(&admin, &common).await?;
    if !configs.is_empty() {
        // Every git command would fail, so nothing else can be checked.
        return Ok(configs.into_iter().map(Damage::Config).collect());
    }
    if !common.join("objects").is_dir() && common.join("refs").is_dir() {
        return Ok(vec![Damage::NoObjects(common.join("objects"))]);
    }
    let shallow = common.join("shallow");
    if files::read(&shallow)?.is_some_and(|list| !is_list_of_objects(&list)) {
        return Ok(vec![Damage::Shallow(shallow)]);
    }
    let refs = common.join("refs");
    if !refs.is_dir() && common.join("objects").is_dir() && admin.join("HEAD").is_file() {
        // Nothing else can be checked before it is there.
        return Ok(vec![Damage::NoRefs(refs)]);
    }
    let objects = common.join("objects");
    let mut found: Vec<Damage> = empty_objects(&objects).map(Damage::EmptyObject).collect();
    if pipe_in(&objects).is_some() {
        // Git could wait at it for ever.
        return Ok(found);
    }
    let packs = packs::find(&objects)?;
    if !packs.is_empty() {
        // Refs would seem to name lost commits.
        found.extend(packs);
        return Ok(found);
    }
    found.extend(head::find(&admin, &common)?);
    let packed = packed::find(&common)?;
    let has_packed = packed.is_none();
    found.extend(packed);
    found.extend(linked::find(&admin, &common)?);
    let listed = Git::at(checkout).args(["for-each-ref", "--count=1"]).finish().await?;
    if listed.code() != Some(0)
        && found.iter().any(|damage| !matches!(damage, Damage::EmptyObject(_)))
    {
        // Git cannot read the rest before this is repaired.
        return Ok(found);
    }
    let missing = if has_packed { packed::missing_branches(&common)? } else { Vec::new() };
    let own_head = (ORIG_HEAD.to_owned(), admin.join(ORIG_HEAD));
    let (sound, damaged): (Vec<_>, Vec<_>) = loose_refs(&common)
        .into_iter()
        .chain([own_head])
        .partition(|(_, file)| names_a_commit(file));
    // Git refuses to list refs if one of them names an object that is missing.
    let dangling = if listed_all(checkout).await? {
        Vec::new()
    } else {
        dangling(checkout, sound, packed::refs(&common)?, &common).await?
    };
    for (name, file) in damaged.into_iter().chain(missing).chain(dangling) {
        let last = last_in_reflog(checkout, &common.join("logs").join(&name)).await?;
        found.push(Damage::Ref { name, file, last });
    }
    found.extend(index::find(checkout, &admin).await?.map(Damage::Index));
    if found.is_empty() && listed.code() != Some(0) {
        return Err(listed.failure());
    }
    Ok(found)
}

/// Repairs one damaged file: removes an empty object, sets a ref to the last commit of its reflog,
/// moves an index aside and rebuilds it from HEAD. Files of the checkout are not touched.
///
/// # Errors
/// Terminal for a ref of the user without a readable commit in its reflog.
pub async fn repair(checkout: &Path, damage: &Damage) -> Result<(), Failure> {
    match damage {
        Damage::EmptyObject(file) => files::remove(file),
        Damage::Ref { name, file, last: Some(commit) } => {
            files::remove(file)?;
            let args = ["update-ref", "-m", "longhaul: repair", name, commit];
            Git::at(checkout).args(args).keep_running_on_drop().run().await.map(drop)
        }
        Damage::Ref { name, last: None, .. } if is_replaceable(name) => {
            files::remove(damage.file())?;
            // It may be packed, too.
            let args = ["update-ref", "-d", name];
            Git::at(checkout).args(args).keep_running_on_drop().finish().await.map(drop)
        }
        Damage::Ref { name, .. } => Err(Failure::terminal(format!(
            "no commit is known for {name}; choose one with `git fsck --lost-found`, then \
             `git update-ref {name} COMMIT`"
        ))),
        Damage::Index(file) => index::recreate(checkout, file).await,
        Damage::PackIndex(pack) => packs::index(checkout, pack).await,
        Damage::Shallow(file) => Err(Failure::terminal(format!(
            "git cannot read {}; restore it from a backup, or clone the repository again",
            file.display()
        ))),
        Damage::Pack(file) | Damage::NoObjects(file) | Damage::Alternate { file, .. } => {
            Err(Failure::terminal(format!(
                "objects in {} cannot be read; restore them from another clone or a backup",
                file.display()
            )))
        }
        Damage::NoRefs(directory) => std::fs::create_dir(directory)
            .map_err(|error| files::failed("create", directory, &error)),
        Damage::Config(file) => Err(Failure::terminal(format!(
            "git cannot read {}; correct it, or move it away and run `git init`",
            file.display()
        ))),
        Damage::Head { file, content: Some(content) } => {
            files::write_durably(file, format!("{content}\n").as_bytes())
        }
        Damage::Head { file, content: None } => Err(Failure::terminal(format!(
            "the branch that was checked out is not known; write `ref: refs/heads/BRANCH` into {}",
            file.display()
        ))),
        Damage::PackedRefs { file, lost } => {
            packed::remove_unreadable(file)?;
            let common = file.parent().unwrap_or(file);
            for name in lost {
                if let Some(commit) =
                    last_in_reflog(checkout, &common.join("logs").join(name)).await?
                {
                    let args = ["update-ref", "-m", "longhaul: repair", name, &commit];
                    Git::at(checkout).args(args).keep_running_on_drop().run().await?;
                }
            }
            Ok(())
        }
        Damage::Linked { file, .. } => Err(Failure::terminal(format!(
            "{} belongs to another checkout; `git worktree repair` puts it right",
            file.display()
        ))),
    }
}

/// Whether Longhaul can do without a ref whose commits are lost: what it needs of it is recorded.
/// `longhaul/next` holds work that waits to land.
pub fn is_replaceable(name: &str) -> bool {
    (is_own_ref(name) && name != branch_ref(NEXT)) || name == ORIG_HEAD
}

/// Has git write a file again; the old one, if there is one, is moved aside, and back if git fails.
async fn rewrite(file: &Path, aside: &Path, git: Git) -> Result<(), Failure> {
    let rename = |from: &Path, to: &Path| {
        std::fs::rename(from, to).map_err(|error| files::failed("move", from, &error))
    };
    let is_there = files::is_there(file);
    if is_there {
        rename(file, aside)?;
    }
    match git.keep_running_on_drop().run().await {
        Err(failure) if is_there => rename(aside, file).and(Err(failure)),
        written => written.map(drop),
    }
}

/// The loose objects without content.
fn empty_objects(objects: &Path) -> impl Iterator<Item = PathBuf> {
    let is_fan_out = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 2);
    let files =
        entries(objects).filter(is_fan_out).flat_map(|dir| entries(&dir).collect::<Vec<_>>());
    // Git leaves temporary files, too, which it removes itself.
    let objects = files.filter(|file| file.file_name().is_some_and(is_rest_of_object_name));
    objects.filter(|file| {
        let found = std::fs::symlink_metadata(file);
        found.is_ok_and(|found| is_special(&found) || found.is_file() && found.len() == 0)
    })
}

/// Whether a file in a fan-out directory has the name of an object, without the two first digits.
fn is_rest_of_object_name(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    matches!(bytes.len(), 38 | 62) && bytes.iter().all(u8::is_ascii_hexdigit)
}

fn is_list_of_objects(bytes: &[u8]) -> bool {
    files::shown(bytes).lines().all(|line| is_object_name(line.trim()))
}

/// The first pipe, socket or device among the loose objects.
pub(super) fn pipe_in(objects: &Path) -> Option<PathBuf> {
    empty_objects(objects)
        .find(|file| file.symlink_metadata().is_ok_and(|found| is_special(&found)))
}

fn is_special(found: &std::fs::Metadata) -> bool {
    let kind = found.file_type();
    !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
}

/// The refs that have a file of their own, by full name.
fn loose_refs(common: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    if files::has_reftable(common) {
        return found;
    }
    let mut open = vec![common.join("refs")];
    while let Some(dir) = open.pop() {
        for path in entries(&dir) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_none_or(|end| end != "lock")
                && let Ok(name) = path.strip_prefix(common)
            {
                found.push((name.to_string_lossy().into_owned(), path.clone()));
            }
        }
    }
    found.sort();
    found
}

fn names_a_commit(file: &Path) -> bool {
    // A pipe in the place of a ref hangs git.
    let Ok(bytes) = files::read(file) else { return false };
    let Some(bytes) = bytes else { return true };
    let text = files::shown(bytes.trim_ascii());
    text.starts_with("ref: ") || is_object_name(&text)
}

async fn listed_all(checkout: &Path) -> Result<bool, Failure> {
    let listed = Git::at(checkout).args(["for-each-ref", "--format=%(objecttype)"]).finish();
    Ok(listed.await?.code() == Some(0))
}

/// The refs, loose or packed, that name an object which is missing, with their files.
async fn dangling(
    checkout: &Path,
    loose: Vec<(String, PathBuf)>,
    packed: Vec<(String, String)>,
    common: &Path,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut named: Vec<(String, PathBuf, String)> = Vec::new();
    for (name, file) in loose {
        let text = files::shown(files::read(&file)?.unwrap_or_default().trim_ascii());
        named.push((name, file, text));
    }
    for (name, commit) in packed {
        if named.iter().all(|(known, ..)| *known != name) {
            let file = common.join(&name);
            named.push((name, file, commit));
        }
    }
    named.retain(|(.., commit)| is_object_name(commit));
    let mut asked = named.iter().map(|(.., commit)| commit.as_str()).collect::<Vec<_>>().join("\n");
    asked.push('\n');
    let known = Git::at(checkout)
        .args(["cat-file", "--batch-check=%(objecttype)"])
        .input(asked)
        .text()
        .await?;
    let answers = named.into_iter().zip(known.lines());
    let missing = answers.filter(|(_, answer)| answer.ends_with(" missing"));
    Ok(missing.map(|((name, file, _), _)| (name, file)).collect())
}

async fn last_in_reflog(checkout: &Path, log: &Path) -> Result<Option<String>, Failure> {
    let text = files::read(log)?.unwrap_or_default();
    let text = files::shown(&text);
    for line in text.lines().rev() {
        let Some(commit) = line.split(' ').nth(1).filter(|commit| is_object_name(commit)) else {
            continue;
        };
        let readable = Git::at(checkout)
            .args(["cat-file", "-e", &format!("{commit}^{{tree}}")])
            .finish()
            .await?;
        if readable.code() == Some(0) {
            return Ok(Some(commit.to_owned()));
        }
    }
    Ok(None)
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}
