//! Real disks that lose what was not synced: an ext4 image on a loop device, copied at the moment
//! of the power cut.
//!
//! What the kernel has not written to the image by then was in the page cache only, and is not in
//! the copy. Needs root and loop devices.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One disk, and the directories of it that are shown elsewhere.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
    shown: Vec<(String, PathBuf)>,
}

impl Disk {
    /// Why there can be no such disk here, if there cannot.
    pub fn obstacle() -> Option<String> {
        let dir = tempfile::tempdir().expect("a folder can be made for a test");
        match Self::try_new(dir.path(), "try", &[]) {
            Ok(disk) => {
                drop(disk);
                None
            }
            Err(problem) => Some(problem),
        }
    }

    /// A new disk in a folder; each of its directories is shown in the folder under its name.
    pub fn new(folder: &Path, name: &str, directories: &[&str]) -> Self {
        Self::try_new(folder, name, directories).expect("loop devices were tried before")
    }

    fn try_new(folder: &Path, name: &str, directories: &[&str]) -> Result<Self, String> {
        let image = folder.join(format!("{name}.img"));
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(512 << 20).map_err(|error| error.to_string())?;
        call("mkfs.ext4", &["-q", "-F", &text(&image)])?;
        let mount = folder.join(name);
        fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let shown =
            directories.iter().map(|name| ((*name).to_owned(), folder.join(name))).collect();
        let disk = Self { image, mount, shown };
        call("mount", &["-o", "loop,commit=1", &text(&disk.image), &text(&disk.mount)])?;
        for (name, place) in &disk.shown {
            for dir in [disk.mount.join(name), place.clone()] {
                fs::create_dir_all(dir).map_err(|error| error.to_string())?;
            }
        }
        // They were there long before the first cut.
        call("sync", &["-f", &text(&disk.mount)])?;
        disk.show()?;
        Ok(disk)
    }

    fn show(&self) -> Result<(), String> {
        for (name, place) in &self.shown {
            call("mount", &["--bind", &text(&self.mount.join(name)), &text(place)])?;
        }
        Ok(())
    }

    fn hide(&self) {
        for (_, place) in &self.shown {
            let _ = call("umount", &["-l", &text(place)]);
        }
        let _ = call("umount", &["-l", &text(&self.mount)]);
    }

    /// Syncs some of the files, as the kernel may have done at any time.
    pub fn write_some_back(&self, mut chosen: impl FnMut() -> bool) {
        let mut open = vec![self.mount.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() && chosen() => {
                        let _ = File::open(entry.path()).and_then(|file| file.sync_all());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Cuts the power: what comes after this sees what had reached the image. No process may write
    /// to the disk any more.
    pub fn cut(&self) {
        let copy = self.image.with_extension("cut");
        loop {
            let before = self.writes();
            call("cp", &["--sparse=always", &text(&self.image), &text(&copy)])
                .expect("there is room for a copy");
            // The kernel wrote meanwhile: the copy is of no one moment.
            if self.writes() == before {
                break;
            }
        }
        self.hide();
        fs::rename(&copy, &self.image).expect("a file of a test is its own");
        call("mount", &["-o", "loop,commit=1", &text(&self.image), &text(&self.mount)])
            .expect("it was mounted before");
        self.show().expect("it was shown before");
    }

    /// How many writes its device has seen.
    fn writes(&self) -> String {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mount = text(&self.mount);
        let line =
            mounts.lines().find(|line| line.split(' ').nth(1) == Some(&mount)).unwrap_or_default();
        let device = line.split(' ').next().unwrap_or_default().trim_start_matches("/dev/");
        let statistics = fs::read_to_string(format!("/sys/block/{device}/stat"))
            .expect("a loop device has statistics");
        statistics.split_whitespace().nth(4).unwrap_or_default().to_owned()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.hide();
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn call(program: &str, args: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
