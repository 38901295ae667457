//! A disk with a volatile cache: a power cut may lose all or any part of the unsynced writes.
//!
//! Contents are durable after a sync of their file, names after a sync of their directory. A rename
//! within a directory is one change; everything else is independent. A write may survive in part,
//! by sectors.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::trace::{Fd, Step};

/// The size of an atomic write.
const SECTOR: usize = 512;

type Id = usize;

/// Which unsynced changes survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Survival {
    Everything,
    Nothing,
    RandomHalf,
}

/// Reproducible random numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn survives(&mut self, survival: Survival) -> bool {
        match survival {
            Survival::Everything => true,
            Survival::Nothing => false,
            Survival::RandomHalf => self.next().is_multiple_of(2),
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(String, Id),
    Unlink(String),
    Rename(String, String, Id),
}

#[derive(Debug, Clone, Default)]
struct Inode {
    is_directory: bool,
    content: Vec<u8>,
    changes: Vec<Change>,
    names: BTreeMap<String, Id>,
    name_changes: Vec<NameChange>,
}

/// The disk. Inodes hold their durable state and the changes since; `live` is the view of the
/// process.
pub(crate) struct Disk {
    root: PathBuf,
    inodes: Vec<Inode>,
    live: HashMap<PathBuf, Id>,
    open: HashMap<Fd, Id>,
}

impl Disk {
    /// A disk with one empty, durable directory.
    pub(crate) fn new(root: &Path) -> Self {
        let inode = Inode { is_directory: true, ..Inode::default() };
        Self {
            root: root.into(),
            inodes: vec![inode],
            live: [(root.into(), 0)].into(),
            open: HashMap::new(),
        }
    }

    /// Whether a descriptor is open on a path.
    pub(crate) fn is_open_on(&self, fd: Fd, path: &Path) -> bool {
        self.open.get(&fd).is_some_and(|id| self.live.get(path) == Some(id))
    }

    /// Applies a system call of the process.
    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Open { fd, path, truncate } => {
                let id = self.live.get(path).copied().unwrap_or_else(|| self.create(path, false));
                if *truncate {
                    self.inodes[id].changes.push(Change::Resize(0));
                }
                self.open.insert(*fd, id);
            }
            Step::Close { fd } => {
                self.open.remove(fd);
            }
            Step::Write { fd, offset, data } => {
                let change = Change::Write(usize::try_from(*offset).unwrap(), data.clone());
                self.inode(*fd).changes.push(change);
            }
            Step::Truncate { fd, length } => {
                self.inode(*fd).changes.push(Change::Resize(usize::try_from(*length).unwrap()));
            }
            Step::Sync { fd } => settle(self.inode(*fd)),
            Step::SyncAll => self.inodes.iter_mut().for_each(settle),
            Step::Rename { from, to } => self.rename(from, to),
            Step::Unlink { path } => {
                self.live.remove(path);
                let (directory, name) = self.place(path);
                self.inodes[directory].name_changes.push(NameChange::Unlink(name));
            }
            Step::MakeDirectory { path } => {
                self.create(path, true);
            }
        }
    }

    fn inode(&mut self, fd: Fd) -> &mut Inode {
        &mut self.inodes[self.open[&fd]]
    }

    fn create(&mut self, path: &Path, is_directory: bool) -> Id {
        let id = self.inodes.len();
        self.inodes.push(Inode { is_directory, ..Inode::default() });
        self.live.insert(path.into(), id);
        let (directory, name) = self.place(path);
        self.inodes[directory].name_changes.push(NameChange::Link(name, id));
        id
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let below: Vec<_> =
            self.live.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in below {
            let id = self.live.remove(&path).unwrap();
            let moved = match path.strip_prefix(from).unwrap() {
                rest if rest.as_os_str().is_empty() => to.to_owned(),
                rest => to.join(rest),
            };
            self.live.insert(moved, id);
        }
        let id = self.live[to];
        let ((old_directory, old), (directory, new)) = (self.place(from), self.place(to));
        if old_directory == directory {
            self.inodes[directory].name_changes.push(NameChange::Rename(old, new, id));
        } else {
            self.inodes[directory].name_changes.push(NameChange::Link(new, id));
            self.inodes[old_directory].name_changes.push(NameChange::Unlink(old));
        }
    }

    fn place(&self, path: &Path) -> (Id, String) {
        let directory = self.live[path.parent().unwrap()];
        (directory, path.file_name().unwrap().to_str().unwrap().to_owned())
    }

    /// Writes the disk content after a power cut at this point.
    pub(crate) fn image(&self, into: &Path, survival: Survival, random: &mut Random) {
        assert_eq!(self.live.get(&self.root), Some(&0));
        self.write_directory(0, into, survival, random);
    }

    fn write_directory(&self, id: Id, into: &Path, survival: Survival, random: &mut Random) {
        std::fs::create_dir_all(into).unwrap();
        let mut names = self.inodes[id].names.clone();
        for change in &self.inodes[id].name_changes {
            if random.survives(survival) {
                apply_name(&mut names, change);
            }
        }
        for (name, id) in names {
            let inode = &self.inodes[id];
            if inode.is_directory {
                self.write_directory(id, &into.join(name), survival, random);
                continue;
            }
            let mut content = inode.content.clone();
            for change in &inode.changes {
                apply_surviving(&mut content, change, survival, random);
            }
            std::fs::write(into.join(name), content).unwrap();
        }
    }
}

/// A sync: all changes so far are durable.
fn settle(inode: &mut Inode) {
    for change in std::mem::take(&mut inode.changes) {
        apply_surviving(&mut inode.content, &change, Survival::Everything, &mut Random(0));
    }
    for change in std::mem::take(&mut inode.name_changes) {
        apply_name(&mut inode.names, &change);
    }
}

fn apply_name(names: &mut BTreeMap<String, Id>, change: &NameChange) {
    match change {
        NameChange::Link(name, id) => {
            names.insert(name.clone(), *id);
        }
        NameChange::Unlink(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to, id) => {
            names.remove(from);
            names.insert(to.clone(), *id);
        }
    }
}

fn apply_surviving(
    content: &mut Vec<u8>,
    change: &Change,
    survival: Survival,
    random: &mut Random,
) {
    match change {
        Change::Resize(length) => {
            if random.survives(survival) {
                content.resize(*length, 0);
            }
        }
        Change::Write(offset, data) => {
            let mut at = 0;
            while at < data.len() {
                let end = data.len().min(at + SECTOR - (offset + at) % SECTOR);
                if random.survives(survival) {
                    let from = offset + at;
                    let to = offset + end;
                    if content.len() < to {
                        content.resize(to, 0);
                    }
                    content[from..to].copy_from_slice(&data[at..end]);
                }
                at = end;
            }
        }
    }
}
