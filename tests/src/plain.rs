//! Texts without what differs between two runs of the same project: times, hashes, durations, ids,
//! paths.

use longhaul_activities::confine::in_force;
use longhaul_activities::process::{Level, available};
use longhaul_workflows::settings::SandboxMode;

/// What is to be replaced.
#[derive(Debug)]
pub struct Plain {
    project: String,
    place: String,
}

impl Plain {
    /// Of a project with this id, in this folder.
    pub fn of(project: &str, place: &str) -> Self {
        Self { project: project.to_owned(), place: place.to_owned() }
    }

    /// The text without what differs.
    pub fn text(&self, text: &str) -> String {
        let level = in_force(SandboxMode::Auto).unwrap_or_default();
        let text =
            without_finding(&text.replace(&self.place, "<place>"), has_less_than_bubblewrap());
        let mut text = unbroken(&text, &level);
        // A project that has never run has no id.
        if !self.project.is_empty() {
            text = text.replace(&self.project, "<project>");
        }
        joined(&text)
            .lines()
            .map(without_level)
            .map(|line| spaced(&counted(&tokens(&measured(&line)))) + "\n")
            .collect()
    }
}

fn has_less_than_bubblewrap() -> bool {
    available().best() != Some(Level::Bubblewrap)
}

/// What `longhaul doctor` says, without what it says of the sandbox: a warning where there is none
/// or a weaker one.
fn without_finding(text: &str, is_warning: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.contains(ADVICE)) {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        let is_json = lines.last().is_some_and(|line| line.trim() == "\"subject\": \"sandbox\",");
        let plain = match words[..] {
            _ if is_json => {
                let state = lines.len() - 2;
                lines[state] = lines[state].replace("warning", "ok");
                format!("{}\"what\": \"<level>\",", &line[..line.len() - line.trim_start().len()])
            }
            ["sandbox", "ok" | "warning", ..] => "sandbox  ok  <level>".into(),
            [problems, "problem," | "problems,", warnings, "warning" | "warnings"]
                if is_warning =>
            {
                let warnings = warnings.parse::<usize>().unwrap_or_default().saturating_sub(1);
                let [some, rest] = [words[1], if warnings == 1 { "warning" } else { "warnings" }];
                format!("{problems} {some} {warnings} {rest}")
            }
            _ => line.to_owned(),
        };
        lines.push(plain);
    }
    lines.join("\n")
}

/// What `longhaul doctor` advises where there is no bubblewrap.
const ADVICE: &str = "install bubblewrap, and allow unprivileged user namespaces";

/// A sandbox that was broken to the width of a narrow page, in one line again.
fn unbroken(text: &str, level: &str) -> String {
    let level: Vec<&str> = level.split_whitespace().collect();
    let (mut plain, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        let Some(shown) = line.trim_start().strip_prefix("sandbox: ") else {
            plain.push(line.to_owned());
            continue;
        };
        let mut words: Vec<&str> = shown.split_whitespace().collect();
        while words.len() < level.len() && level.starts_with(&words) {
            let Some(next) = lines.next() else { break };
            words.extend(next.split_whitespace());
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        plain.push(format!("{indent}sandbox: {}", words.join(" ")));
    }
    plain.join("\n")
}

/// A line without the sandbox that this machine offers.
fn without_level(line: &str) -> String {
    for mark in ["sandbox: ", "\"sandbox\": \""] {
        if let Some(level) = line.trim_start().strip_prefix(mark) {
            let end = if level.ends_with("\",") { "\"," } else { "" };
            let indent = &line[..line.len() - line.trim_start().len()];
            return format!("{indent}{mark}<level>{end}");
        }
    }
    line.to_owned()
}

/// A hash that was broken to the width of a narrow page, in one line again.
fn joined(text: &str) -> String {
    let is_hash = |word: &str| word.len() > 20 && is_hex(word);
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let broken =
            lines.last().and_then(|last| last.split(' ').next_back()).filter(|word| is_hash(word));
        let rest = broken.map_or(0, |word| 40_usize.saturating_sub(word.len()));
        let indent = line.len() - line.trim_start().len();
        match line.get(indent..indent + rest) {
            Some(end) if rest > 0 && is_hex(end) => {
                lines.push(format!("{}{}", &line[..indent], &line[indent + rest..]));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A line of JSON whose number is a measurement.
fn measured(line: &str) -> String {
    for name in [
        "duration_ms",
        "time_ms",
        "session_ms",
        "active_ms",
        "seconds",
        "session_seconds",
        "bytes",
        "log_bytes",
        "log_bytes_before",
        "events",
        "records",
    ] {
        let mark = format!("\"{name}\":");
        let Some((before, after)) = line.split_once(&mark) else { continue };
        let number =
            after.trim_start().find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let rest = number.map_or("", |end| &after.trim_start()[end..]);
        return format!("{before}{mark} <n>{}", measured(rest));
    }
    line.to_owned()
}

/// What is counted, and differs.
const SIZES: [&str; 4] = ["MiB", "bytes", "events", "records"];

/// A line with the numbers replaced that are sizes, those of histories included, or the ids of
/// processes.
fn counted(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let plain = words.iter().enumerate().map(|(index, word)| {
        let is_size = words
            .get(index + 1)
            .is_some_and(|unit| SIZES.contains(&unit.trim_end_matches([',', ';'])));
        let is_process = index > 0 && words[index - 1] == "process";
        let number = word.trim_matches(['"', ',', ';']);
        if is_number(number) && (is_size || is_process) {
            word.replace(number, "<n>")
        } else {
            (*word).to_owned()
        }
    });
    plain.collect::<Vec<String>>().join(" ")
}

/// The text with each word that differs replaced by what it is.
fn tokens(line: &str) -> String {
    let (mut plain, mut word) = (String::new(), String::new());
    for letter in line.chars().chain(['\n']) {
        if letter.is_ascii_alphanumeric() || ".:-".contains(letter) {
            word.push(letter);
            continue;
        }
        plain.push_str(&named(&word));
        word.clear();
        plain.push(letter);
    }
    plain.trim_end().to_owned()
}

fn named(word: &str) -> String {
    let bare = word.trim_end_matches(['.', ':']);
    let end = &word[bare.len()..];
    let is = |shape: &str| {
        let fits = |(letter, wanted): (char, char)| {
            if wanted == '0' { letter.is_ascii_digit() } else { letter == wanted }
        };
        bare.len() >= shape.len() && bare.chars().zip(shape.chars()).all(fits)
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = if is("0000-00-00T00:00:00") || is("00000000T000000000Z") {
        "<time>"
    } else if is("0000-00-00") && bare.len() == 10 {
        "<date>"
    } else if is("00:00:00") && bare.len() == 8 {
        "<clock>"
    } else if bare.len() == 36 && bare.split('-').count() == 5 {
        "<uuid>"
    } else if bare.len() >= 10 && is_hex(bare) {
        "<hash>"
    } else if bare.contains('.') && bare.split('.').all(number) {
        "<n>"
    } else if is_span(bare) {
        "<span>"
    } else {
        return word.to_owned();
    };
    format!("{name}{end}")
}

/// `3s`, `1m02s`
fn is_span(word: &str) -> bool {
    let parts: Vec<&str> = word.split_inclusive(|letter: char| !letter.is_ascii_digit()).collect();
    let part = |part: &&str| part.len() > 1 && part.ends_with(['s', 'm', 'h', 'd']);
    !parts.is_empty() && parts.len() <= 2 && parts.iter().all(part)
}

/// Columns are as wide as what is in them: more than two blanks inside of a line are two.
fn spaced(line: &str) -> String {
    let body = line.trim_start();
    let (mut spaced, mut blanks) = (line[..line.len() - body.len()].to_owned(), 0);
    for letter in body.chars() {
        blanks = if letter == ' ' { blanks + 1 } else { 0 };
        if blanks <= 2 {
            spaced.push(letter);
        }
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_replaced() {
        let plain = Plain::of("p-47aa6b", "/tmp/x");
        let check =
            |text: &str, expected: &str| assert_eq!(plain.text(text), format!("{expected}\n"));
        check("p-47aa6b/a/1 at 2a44a221bd, 0.1 s.", "<project>/a/1 at <hash>, <n> s.");
        check("of one in a hundred 1234567890", "of one in a hundred <hash>");
        check("since 2026-11-21 17:29:45 UTC.", "since <date> <clock> UTC.");
        check("  at 0123456789abcdef0123456789abcdef\n  01234567: so", "  at <hash>\n  : so");
        check("git 2.47.3, 59569 MiB, by process 4711", "git <n>, <n> MiB, by process <n>");
        check("  0  2026-11-21T17:29:45Z  took 1m02s", "  0  <time>  took <span>");
        check(r#"  "duration_ms": 12, "x": 2"#, r#"  "duration_ms": <n>, "x": 2"#);
        check("/tmp/x/p      10 of 12, exit code 1", "<place>/p  10 of 12, exit code 1");
    }

    #[test]
    fn a_sandbox_that_was_broken_into_lines_is_one_again() {
        let level = "none: no bubblewrap; no Landlock";
        let broken = "a\n  sandbox: none: no\n  bubblewrap; no\n  Landlock\nb";
        assert_eq!(unbroken(broken, level), format!("a\n  sandbox: {level}\nb"));
        assert_eq!(unbroken("sandbox: bubblewrap\nb", "bubblewrap"), "sandbox: bubblewrap\nb");
        assert_eq!(unbroken("sandbox: none\nb", "bubblewrap"), "sandbox: none\nb");
    }

    #[test]
    fn sandbox_findings_are_the_same_on_each_machine() {
        let with =
            "git      ok       version 2\nsandbox  ok       bubblewrap\n0 problems, 1 warning";
        let without = "git      ok       version 2\nsandbox  warning  none: no\n                  to do: install bubblewrap, and \
                       allow unprivileged user namespaces\n0 problems, 2 warnings";
        let expected = "git      ok       version 2\nsandbox  ok  <level>\n0 problems, 1 warning";
        assert_eq!(without_finding(with, false), expected);
        assert_eq!(without_finding(without, true), expected);
        let json = |state: &str, what: &str, advice: &str| {
            format!(
                "  \"state\": \"{state}\",\n  \"subject\": \"sandbox\",\n  \"what\": \"{what}\",\n{advice}  \"x\": 1"
            )
        };
        let advice = format!("  \"advice\": \"{ADVICE}\",\n");
        let expected = json("ok", "<level>", "");
        assert_eq!(without_finding(&json("ok", "bubblewrap", ""), false), expected);
        assert_eq!(without_finding(&json("warning", "landlock: no", &advice), true), expected);
    }
}
