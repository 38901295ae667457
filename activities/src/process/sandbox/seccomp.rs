//! A filter for system calls that reach out of a sandbox.
//!
//! Keyrings belong to a user, not to a namespace: code under test could hand held-out files on in
//! one. The calls fail as on a kernel without keyrings, which programs are prepared for.
//!
//! Where the PID namespace is shared, the limits of other processes are in reach: a limit of no CPU
//! time kills a process, and Landlock restricts signals only.

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
    /// `prlimit64`
    limits: u32,
}

/// The numbers of `asm-generic/unistd.h`, which newer architectures share.
const GENERIC: Calls =
    Calls { architecture: 0, keyrings: [217, 218, 219], ipc: &[194, 190, 186, 180], limits: 261 };

/// The native architectures and those of the 32-bit programs that they run.
const CALLS: [Calls; 5] = [
    // x86-64
    Calls {
        architecture: 0xc000_003e,
        keyrings: [248, 249, 250],
        ipc: &[29, 64, 68, 240],
        limits: 302,
    },
    // i386
    Calls {
        architecture: 0x4000_0003,
        keyrings: [286, 287, 288],
        ipc: &[395, 393, 399, 277, 117],
        limits: 340,
    },
    // AArch64
    Calls { architecture: 0xc000_00b7, ..GENERIC },
    // ARM
    Calls {
        architecture: 0x4000_0028,
        keyrings: [309, 310, 311],
        ipc: &[307, 299, 303, 274, 117],
        limits: 369,
    },
    // RISC-V, 64 bits
    Calls { architecture: 0xc000_00f3, ..GENERIC },
];

/// The mark of an x32 call; the number of the call without it is that of x86-64.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`. All architectures are little-endian: a process id is the lower
/// half of the first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// Instructions of the classic Berkeley packet filter.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const SKIP_UNLESS_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Values to return.
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

/// What a filter refuses besides keyrings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// System V objects and message queues: they last where the IPC namespace is shared.
    pub(super) ipc: bool,
    /// Reading and setting the limits of other processes.
    pub(super) limits_of_others: bool,
}

/// Refuses system calls to this process and to all that it starts. A kernel without filters refuses
/// nothing.
pub(super) fn refuse(refused: Refused) -> io::Result<()> {
    match apply_filter(&program(refused)) {
        Err(seccompiler::Error::Seccomp(error))
            if [Errno::EINVAL, Errno::ENOSYS]
                .contains(&Errno::from_raw(error.raw_os_error().unwrap_or_default())) =>
        {
            Ok(())
        }
        outcome => outcome.map_err(io::Error::other),
    }
}

fn program(refused: Refused) -> BpfProgram {
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let skip_unless = |k, skipped| sock_filter { code: SKIP_UNLESS_EQUAL, jt: 0, jf: skipped, k };
    let skip_if = |k, skipped| sock_filter { code: SKIP_UNLESS_EQUAL, jt: skipped, jf: 0, k };
    let mut program = Vec::new();
    for calls in &CALLS {
        let missing = calls.keyrings.iter().chain(calls.ipc.iter().filter(|_| refused.ipc));
        let mut body = vec![step(LOAD, NUMBER), step(AND, !X32)];
        for call in missing {
            body.push(skip_unless(*call, 1));
            body.push(step(RETURN, FAIL | Errno::ENOSYS as u32));
        }
        if refused.limits_of_others {
            // Zero is the calling process.
            body.extend([skip_unless(calls.limits, 3), step(LOAD, FIRST_ARGUMENT)]);
            body.extend([skip_if(0, 1), step(RETURN, FAIL | Errno::EPERM as u32)]);
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
