//! Opening the log removes the leftovers of killed processes; the permissions of the directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longhaul_engine::{EventLog, RunReader};
use longhaul_storage::{SledStore, private_directory};

use crate::common::start;

#[tokio::test]
async fn drafts_of_a_log_are_removed_at_the_next_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    store.commit(start("a")).await.unwrap();
    store.close();
    for left in ["log.new", "log.next", "log.old"] {
        fs::create_dir(directory.path().join(left)).unwrap();
        fs::write(directory.path().join(left).join("db"), "half").unwrap();
    }
    fs::write(directory.path().join("shutdown_marker.new"), "1 op").unwrap();
    fs::write(directory.path().join("blobs/new-1-1"), "half").unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.runs("").await.unwrap().len(), 1);
    let mut left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["blobs", "lock", "log", "shutdown_marker"]);
    assert_eq!(fs::read_dir(directory.path().join("blobs")).unwrap().count(), 0);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_data_directory_is_closed_to_others() {
    let place = tempfile::tempdir().unwrap();
    let new = place.path().join("deep/data");
    SledStore::open(&new).unwrap().close();
    assert_eq!(mode(&new), 0o700);
    fs::set_permissions(&new, Permissions::from_mode(0o755)).unwrap();
    SledStore::open(&new).unwrap().close();
    assert_eq!(mode(&new), 0o700);
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(&empty, Permissions::from_mode(0o777)).unwrap();
    private_directory(&empty).unwrap();
    assert_eq!(mode(&empty), 0o700);
}

#[test]
fn a_directory_with_other_files_is_not_closed_to_others() {
    let place = tempfile::tempdir().unwrap();
    for mode_before in [0o755, 0o1777] {
        let shared = place.path().join(format!("shared-{mode_before:o}"));
        fs::create_dir(&shared).unwrap();
        fs::write(shared.join("notes.txt"), "mine").unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(mode_before)).unwrap();
        let error = SledStore::open(&shared).unwrap_err().to_string();
        assert!(error.contains("name a new directory with --data-dir"), "{error}");
        assert_eq!((mode(&shared), fs::read_dir(&shared).unwrap().count()), (mode_before, 1));
        // Applies the advice of the message.
        fs::set_permissions(&shared, Permissions::from_mode(0o700)).unwrap();
        SledStore::open(&shared).unwrap();
    }
}
