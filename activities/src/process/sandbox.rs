//! The sandbox of a program: visible places, writable places, and the enforcement of both.
//!
//! | | bubblewrap | Landlock | none |
//! |---|---|---|---|
//! | writes are limited to granted places | yes | yes | no |
//! | hidden places | not there | there, cannot be opened | no |
//! | temporary directory | private `/tmp` and `/var/tmp` | private `TMPDIR` | shared |
//! | processes | own PID namespace: isolated, nothing survives | shared | shared |
//! | limits of other processes | out of reach | out of reach | in reach |
//! | modes, owners, times and attributes of files | of writable places | everywhere | everywhere |
//! | keyrings of the kernel | no | no | shared |
//! | System V objects and message queues | own IPC namespace | shared; none for a private program | shared |
//! | unix sockets in hidden places, `/run` and `/tmp` | out of reach | in reach | in reach |
//! | `network = "off"` | own loopback only | no TCP (kernel 6.7 or later); UDP stays | no |
//! | `network = "loopback"` | own loopback only | not enforced | no |
//!
//! With bubblewrap, the first process of the PID namespace is this binary again ([`init`]): no
//! program inside can kill it, it reports the exact ending, and its end kills everything else.

mod bubblewrap;
mod init;
#[cfg(target_os = "linux")]
mod landlock;
mod probe;
#[cfg(target_os = "linux")]
mod seccomp;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) use bubblewrap::command_of;
#[cfg(target_os = "linux")]
pub(super) use init::restricted_main;
pub(super) use init::{INSIDE, RESTRICTED, Report, inside_main};
#[cfg(target_os = "linux")]
use landlock::restrict;
pub use probe::{Available, available};
#[cfg(target_os = "linux")]
use seccomp::{Refused, refuse};

/// Capabilities that the superuser keeps, with their numbers. None of them changes mounts, opens
/// files past them, or reads other processes; without them, a program in a container could not
/// reach files of other users.
const KEPT_BY_ROOT: [(&str, u32); 8] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
];

/// How a sandbox is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The program `bwrap`: mount, PID and, if the network is restricted, network namespaces.
    Bubblewrap,
    /// Landlock rules of the kernel for one process and its children.
    Landlock,
}

impl Level {
    /// Its name in reports and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Bubblewrap, Self::Landlock].into_iter().find(|level| level.name() == name)
    }
}

/// The network access of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// All of it.
    #[default]
    On,
    /// A loopback interface of its own.
    Loopback,
    /// Nothing.
    Off,
}

impl Network {
    const NAMES: [(&'static str, Self); 3] =
        [("on", Self::On), ("loopback", Self::Loopback), ("off", Self::Off)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, network)| *network == self).map_or("on", |(name, _)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, network)| *network)
    }
}

/// The sandbox of one program. All paths are absolute. The deepest of nested paths decides; unnamed
/// paths are readable and not writable. A missing path is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// How it is enforced.
    pub level: Level,
    /// Writable paths.
    pub writable: Vec<PathBuf>,
    /// Read-only paths, within hidden or writable ones.
    pub readable: Vec<PathBuf>,
    /// Hidden paths.
    pub hidden: Vec<PathBuf>,
    /// The network access.
    pub network: Network,
    /// Whether nothing that the program writes is in reach of other programs, but in `writable`:
    /// shared temporary directories are not writable, and the cache of the user is a private one.
    pub private: bool,
}

impl Sandbox {
    /// The part of its network setting that is not enforced here, for display.
    pub fn not_enforced(&self) -> Option<&'static str> {
        match (self.level, self.network) {
            (Level::Bubblewrap, _) | (_, Network::On) => None,
            (Level::Landlock, Network::Loopback) => {
                Some("the network is not restricted: Landlock cannot do that")
            }
            (Level::Landlock, Network::Off) => match available().landlock {
                Ok(probe::LANDLOCK_WITH_NETWORK..) => {
                    Some("only TCP is off: Landlock does not restrict UDP")
                }
                _ => Some("the network is not restricted: this kernel's Landlock cannot do that"),
            },
        }
    }
}

/// The access of a program to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    /// Write and read.
    Write,
    Read,
    Hidden,
}

/// A sandbox and the directory for its program's temporary files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confined {
    pub(super) sandbox: Sandbox,
    pub(super) temporary: PathBuf,
    /// The path of `bwrap`, for that level.
    pub(super) bwrap: PathBuf,
}

impl Confined {
    /// The value of `TMPDIR` inside.
    pub(super) fn temporary_inside(&self) -> &Path {
        match self.sandbox.level {
            Level::Bubblewrap => Path::new("/tmp"),
            Level::Landlock => &self.temporary,
        }
    }

    /// As arguments of a supervisor.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let sandbox = &self.sandbox;
        let mut args: Vec<OsString> = vec!["--sandbox".into(), sandbox.level.name().into()];
        args.extend(["--network".into(), sandbox.network.name().into()]);
        if sandbox.private {
            args.extend(["--private".into(), "yes".into()]);
        }
        args.extend([
            "--temporary".into(),
            self.temporary.clone().into(),
            "--bwrap".into(),
            self.bwrap.clone().into(),
        ]);
        let places = [
            ("--write", &sandbox.writable),
            ("--read", &sandbox.readable),
            ("--hide", &sandbox.hidden),
        ];
        for (option, paths) in places {
            args.extend(paths.iter().flat_map(|path| [option.into(), path.clone().into()]));
        }
        args
    }

    /// Parses one option of those that [`Confined::to_args`] writes; `None`: unknown or invalid.
    pub(super) fn take(confined: &mut Option<Self>, option: &str, value: OsString) -> Option<()> {
        if option == "--sandbox" {
            let level = Level::from_name(value.to_str()?)?;
            let (writable, readable, hidden) = Default::default();
            let network = Network::On;
            let sandbox = Sandbox { level, writable, readable, hidden, network, private: false };
            *confined = Some(Self { sandbox, temporary: PathBuf::new(), bwrap: PathBuf::new() });
            return Some(());
        }
        let Self { sandbox, temporary, bwrap } = confined.as_mut()?;
        match option {
            "--network" => sandbox.network = Network::from_name(value.to_str()?)?,
            "--private" => sandbox.private = value == "yes",
            "--temporary" => *temporary = value.into(),
            "--bwrap" => *bwrap = value.into(),
            "--write" => sandbox.writable.push(value.into()),
            "--read" => sandbox.readable.push(value.into()),
            "--hide" => sandbox.hidden.push(value.into()),
            _ => return None,
        }
        Some(())
    }

    /// Every existing path, with links resolved, outer before inner; at one path the strictest
    /// access is last.
    fn places(&self) -> Vec<(PathBuf, Access)> {
        let sandbox = &self.sandbox;
        let of = |paths: &[PathBuf], access: Access| {
            let real = paths.iter().filter_map(|path| path.canonicalize().ok());
            real.map(move |path| (path, access)).collect::<Vec<_>>()
        };
        let mut places = of(&sandbox.writable, Access::Write);
        places.extend(of(&sandbox.readable, Access::Read));
        places.extend(of(&sandbox.hidden, Access::Hidden));
        places.sort_by_key(|(path, access)| (path.components().count(), *access));
        places.dedup();
        places
    }
}
