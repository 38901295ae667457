//! Advice about a damaged log is carried out as it is given: each piece of it leads to a log that
//! is whole, and none back to a command that gave it.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_tests::command::Output;

use super::hurt::copy;
use super::pages::with_damaged_page;
use super::world::{World, longhaul};

/// Commands about a log; the test carries out no others, which might change the repository that it
/// runs in.
const OF_A_LOG: [&str; 6] = ["check", "export", "restore", "list", "doctor", "backup"];

/// The commands about a log that a text names.
fn advice(output: &Output) -> Vec<String> {
    let text = format!("{}\n{}", output.stdout, output.stderr);
    let is_of_a_log = |text: &&str| {
        let mut words = text.split_whitespace();
        words.next() == Some("longhaul")
            && words.next().is_some_and(|verb| OF_A_LOG.contains(&verb))
    };
    let quoted = text.split('`').skip(1).step_by(2).filter(is_of_a_log);
    let mut commands: Vec<String> = quoted.map(str::to_owned).collect();
    commands.sort_unstable();
    commands.dedup();
    commands
}

/// Follows advice wherever it leads.
struct Walk {
    place: PathBuf,
    backup: String,
    copies: u32,
    done: Vec<String>,
}

impl Walk {
    fn new_place(&mut self) -> PathBuf {
        self.copies += 1;
        self.place.join(format!("walk-{}", self.copies))
    }

    /// Carries out a command on a copy of a damaged log, and then what it advises.
    fn follow(&mut self, home: &Path, command: &str, path: &[String]) {
        let path = [path, &[command.to_owned()]].concat();
        let here = self.new_place();
        copy(home, &here);
        let other = self.new_place();
        // What a person puts in for the words in capitals.
        let (new, file) = (other.to_string_lossy().into_owned(), self.backup.clone());
        let words = command.split_whitespace().skip(1).map(|word| match word {
            "NEW" => new.as_str(),
            "FILE" => file.as_str(),
            word => word,
        });
        let mut args: Vec<&str> = words.collect();
        if args == ["restore"] {
            args.extend([file.as_str(), "--data-dir", &new]);
        }
        let output = longhaul(&here).call(&args);
        self.done.push(command.to_owned());
        let whole = if args[0] == "restore" { &other } else { &here };
        // What does not need the damaged part may succeed as well.
        let is_whole = || whole.exists() && longhaul(whole).call(&["check"]).code() == 0;
        if output.code() == 0 && !["check", "restore"].contains(&args[0]) || is_whole() {
            return;
        }
        let next = advice(&output);
        assert!(!next.is_empty(), "{path:?} leads nowhere: {}\n{}", output.stdout, output.stderr);
        for command in next {
            assert!(
                !path.contains(&command),
                "{path:?} leads back to `{command}`: {}\n{}",
                output.stdout,
                output.stderr
            );
            self.follow(&here, &command, &path);
        }
    }
}

#[test]
fn no_advice_about_a_damaged_log_leads_in_a_circle() {
    let world = World::finished();
    let backup = world.text("all.zst");
    let page = with_damaged_page(&world);
    world.longhaul.call(&["backup", "-O", &backup]).exits(0);
    let mut walk = Walk { place: world.project.place(), backup, copies: 0, done: Vec::new() };
    let hurt = |walk: &mut Walk, harm: &dyn Fn(&Path)| {
        let home = walk.new_place();
        copy(world.longhaul.home(), &home);
        harm(&home);
        home
    };
    let cut = |home: &Path| {
        let bytes = fs::read(home.join("log/db")).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        fs::write(home.join("log/db"), &bytes[..used / 3]).unwrap();
    };
    let homes = [
        page.home().to_owned(),
        hurt(&mut walk, &cut),
        hurt(&mut walk, &|home| fs::remove_file(home.join("log/db")).unwrap()),
        hurt(&mut walk, &|home| fs::remove_dir_all(home.join("log")).unwrap()),
    ];
    for home in &homes {
        for command in [
            "longhaul list",
            "longhaul doctor /",
            "longhaul export --all -O /dev/null --force",
            "longhaul check",
        ] {
            walk.follow(home, command, &[]);
        }
    }
    for command in ["longhaul check --repair", "longhaul restore FILE --data-dir NEW"] {
        assert!(walk.done.iter().any(|done| done == command), "{:?}", walk.done);
    }
}
