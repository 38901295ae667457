//! A filter for system calls that create kernel objects which outlive a sandbox.
//!
//! Keyrings belong to a user, not to a namespace: code under test could hand held-out files on in
//! one. The calls fail as on a kernel without keyrings, which programs are prepared for.

use std::io;

use nix::errno::Errno;
use seccompiler::{BpfProgram, apply_filter, sock_filter};

/// System calls of one architecture, by their numbers.
struct Calls {
    /// Of `linux/audit.h`.
    architecture: u32,
    /// `add_key`, `request_key`, `keyctl`.
    keyrings: [u32; 3],
    /// `shmget`, `semget`, `msgget`, `mq_open`, and `ipc` where it exists.
    ipc: &'static [u32],
}

/// The native architectures and those of the 32-bit programs that they run.
const CALLS: [Calls; 5] = [
    // x86-64
    Calls { architecture: 0xc000_003e, keyrings: [248, 249, 250], ipc: &[29, 64, 68, 240] },
    // i386
    Calls { architecture: 0x4000_0003, keyrings: [286, 287, 288], ipc: &[395, 393, 399, 277, 117] },
    // AArch64
    Calls { architecture: 0xc000_00b7, keyrings: [217, 218, 219], ipc: &[194, 190, 186, 180] },
    // ARM
    Calls { architecture: 0x4000_0028, keyrings: [309, 310, 311], ipc: &[307, 299, 303, 274, 117] },
    // RISC-V, 64 bits
    Calls { architecture: 0xc000_00f3, keyrings: [217, 218, 219], ipc: &[194, 190, 186, 180] },
];

/// The mark of an x32 call; the number of the call without it is that of x86-64.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// Instructions of the classic Berkeley packet filter.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const SKIP_UNLESS_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Values to return.
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

/// Refuses keyrings to this process and to all that it starts. With `ipc`, also System V objects
/// and message queues: they last where the IPC namespace is shared. A kernel without filters
/// refuses nothing.
pub(super) fn refuse_lasting_objects(ipc: bool) -> io::Result<()> {
    match apply_filter(&program(ipc)) {
        Err(seccompiler::Error::Seccomp(error))
            if [Errno::EINVAL, Errno::ENOSYS]
                .contains(&Errno::from_raw(error.raw_os_error().unwrap_or_default())) =>
        {
            Ok(())
        }
        outcome => outcome.map_err(io::Error::other),
    }
}

fn program(ipc: bool) -> BpfProgram {
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let skip_unless = |k, skipped| sock_filter { code: SKIP_UNLESS_EQUAL, jt: 0, jf: skipped, k };
    let mut program = Vec::new();
    for calls in &CALLS {
        let refused = calls.keyrings.iter().chain(calls.ipc.iter().filter(|_| ipc));
        let mut body = vec![step(LOAD, NUMBER), step(AND, !X32)];
        for call in refused {
            body.push(skip_unless(*call, 1));
            body.push(step(RETURN, FAIL | Errno::ENOSYS as u32));
        }
        body.push(step(RETURN, ALLOW));
        let length = u8::try_from(body.len()).expect("the calls of an architecture are few");
        program.push(step(LOAD, ARCHITECTURE));
        program.push(skip_unless(calls.architecture, length));
        program.append(&mut body);
    }
    program.push(step(RETURN, ALLOW));
    program
}
