//! The command line, as a person or a script uses it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use longhaul_activities::process::owner_id;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::terminal::Terminal;
use crate::wait::PATIENCE;

/// The command `longhaul` with a data directory of its own.
#[derive(Debug, Clone)]
pub struct Longhaul {
    program: PathBuf,
    home: PathBuf,
    /// Variables besides the usual ones.
    variables: Vec<(String, String)>,
}

impl Longhaul {
    /// The command in this file, with this data directory.
    pub fn new(program: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), home: home.into(), variables: Vec::new() }
    }

    /// The same command with one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The data directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn command(&self, args: &[&str]) -> Command {
        self.dressed(Command::new(&self.program), args)
    }

    fn dressed(&self, mut command: Command, args: &[&str]) -> Command {
        command
            .args(args)
            .env("LONGHAUL_HOME", &self.home)
            .env("USER", "tester")
            .env_remove("LONGHAUL_LOG")
            .env_remove("COLUMNS");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a line of the shell to its end, in which `longhaul` stands for the command.
    pub fn shell(&self, line: &str) -> Output {
        let mut command = self.dressed(
            Command::new("sh"),
            &["-c", &format!("longhaul() {{ \"$UNDER_TEST\" \"$@\"; }}\n{line}")],
        );
        command.env("UNDER_TEST", &self.program);
        Self::finish(&[line], command)
    }

    /// Starts a command on a terminal that is so many letters wide.
    pub fn on_terminal(&self, args: &[&str], width: u16) -> Terminal {
        // The controlling terminal of a new session, which alone sends Ctrl-C as a signal.
        let setsid = Command::new("setsid");
        let program = self.program.to_str().expect("the path of a test is UTF-8");
        let words = [&["--ctty", program], args].concat();
        Terminal::start(self.dressed(setsid, &words), width)
    }

    /// Runs a command to its end.
    pub fn call(&self, args: &[&str]) -> Output {
        Self::finish(args, self.command(args))
    }

    /// Runs a command to its end with a file as its standard input.
    pub fn feed(&self, args: &[&str], file: &Path) -> Output {
        let mut command = self.command(args);
        command.stdin(File::open(file).expect("a file of a test is there"));
        Self::finish(args, command)
    }

    fn finish(args: &[&str], mut command: Command) -> Output {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let pid = Pid::from_raw(child.id().cast_signed());
        let (ended, has_ended) = channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let hangs = has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
            hangs && kill(pid, Signal::SIGKILL).is_ok()
        });
        let output = child.wait_with_output().expect("the output of a command can be read");
        drop(ended);
        let output = Output {
            command: args.join(" "),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let was_killed = watchdog.join().expect("the watchdog only waits");
        assert!(
            !was_killed,
            "longhaul {} did not end in {PATIENCE:?}:\n{}\n{}",
            output.command, output.stdout, output.stderr
        );
        output
    }

    /// Starts a command and lets it run; what it says goes to a file, whose end is shown when
    /// something is wrong.
    pub fn begin(&self, args: &[&str], output: &Path) -> Running {
        let file = File::options()
            .create(true)
            .append(true)
            .open(output)
            .expect("a test can write its files");
        let out = file.try_clone().expect("a file can be used twice");
        let child = self
            .command(args)
            .stdout(out)
            .stderr(file)
            .spawn()
            .expect("the command can be started");
        Running { command: args.join(" "), child, output: output.to_owned() }
    }

    /// The status of a project as JSON, by the command that shows it.
    pub fn status(&self, dir: &Path) -> Value {
        self.call(&["status", "-o", "json", &dir.to_string_lossy()]).exits(0).json()
    }

    /// Processes that an owner of the data directory started and that are still there.
    pub fn left_over(&self) -> Vec<String> {
        let mark = format!("LONGHAUL_OWNER={}", owner_id(&self.home));
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_marked = |place: &Path| {
            let variables = std::fs::read(place.join("environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let marked = processes.map(|process| process.path()).filter(|place| is_marked(place));
        let shown = |place: PathBuf| {
            let command = std::fs::read_to_string(place.join("cmdline")).unwrap_or_default();
            format!("{} {}", place.display(), command.replace('\0', " "))
        };
        marked.map(shown).collect()
    }
}

/// The output of a finished command, and its status.
#[derive(Debug, Clone)]
pub struct Output {
    command: String,
    status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// It ended with this code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "longhaul {}\n{}\n{}",
            self.command,
            self.stdout,
            self.stderr
        );
        self
    }

    /// The code that it ended with.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// It printed this text.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        let output = self.stdout.contains(text) || self.stderr.contains(text);
        assert!(
            output,
            "longhaul {} does not say {text:?}:\n{}\n{}",
            self.command, self.stdout, self.stderr
        );
        self
    }

    /// Its data.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("longhaul {} gives no JSON: {error}\n{}", self.command, self.stdout)
        })
    }
}

/// A command that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    command: String,
    child: Child,
    output: PathBuf,
}

impl Running {
    /// How it ended, if it does so in this time.
    pub fn wait_for(&mut self, time: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + time;
        loop {
            let ended = self.child.try_wait().expect("a child can be waited for");
            if ended.is_some() || Instant::now() >= deadline {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// It ends with this code.
    #[track_caller]
    pub fn exits(&mut self, code: i32) -> &mut Self {
        let status = self.wait_for(PATIENCE);
        let output = self.output();
        let status =
            status.unwrap_or_else(|| panic!("longhaul {} does not end:\n{output}", self.command));
        assert_eq!(status.code(), Some(code), "longhaul {}\n{output}", self.command);
        self
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Tells it to end: SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.child.id().to_string());
        let status = Command::new("kill").args([&signal, &pid]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal} {pid}");
    }

    /// Kills it, and nothing else: `kill -9`. `false`: it had ended.
    pub fn kill(&mut self) -> bool {
        let ended = self.child.try_wait().expect("a child can be waited for").is_some();
        if !ended {
            self.child.kill().expect("a child that was not waited for can be killed");
            self.child.wait().expect("a child can be waited for");
        }
        !ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
