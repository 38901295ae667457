//! The standard input of a program.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens the input at a path. The program gets a sealed copy of a file: a descriptor of the file
/// itself would let it change a file of the data directory, through links in `/proc`.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    #[cfg(target_os = "linux")]
    if file.metadata()?.is_file() {
        return sealed_copy(file);
    }
    Ok(file)
}

#[cfg(target_os = "linux")]
fn sealed_copy(mut file: File) -> io::Result<File> {
    use std::io::Seek as _;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut copy = File::from(memfd_create("input", flags)?);
    io::copy(&mut file, &mut copy)?;
    copy.rewind()?;
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&copy, all)?;
    Ok(copy)
}
