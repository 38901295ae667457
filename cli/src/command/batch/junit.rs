//! The report as JUnit XML.

use std::fmt::Write as _;

use longhaul_workflows::projection::State;

use longhaul_server::status::FeatureLine;

use super::report::{ProjectReport, Report};

/// The whole document: a suite for each project, a case for each feature.
pub(super) fn xml(report: &Report) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = || report.projects.iter().flat_map(|project| &project.features);
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escaped(&report.batch), counts(all()));
    for project in &report.projects {
        suite(&mut text, project);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(text: &mut String, project: &ProjectReport) {
    let name = escaped(&project.name);
    let _ = writeln!(text, "  <testsuite name=\"{name}\" {}>", counts(project.features.iter()));
    for feature in &project.features {
        let case = format!("    <testcase classname=\"{name}\" name=\"{}\"", escaped(&feature.id));
        let reason = feature.reason.as_deref().unwrap_or_default();
        let first = escaped(reason.lines().next().unwrap_or_default());
        let _ = match () {
            () if feature.passes => writeln!(text, "{case}/>"),
            () if is_failure(feature) => writeln!(
                text,
                "{case}>\n      <failure message=\"{first}\">{}</failure>\n    </testcase>",
                escaped(reason)
            ),
            () => {
                let why = if first.is_empty() { feature.status.to_string() } else { first };
                writeln!(text, "{case}>\n      <skipped message=\"{why}\"/>\n    </testcase>")
            }
        };
    }
    text.push_str("  </testsuite>\n");
}

fn is_failure(feature: &FeatureLine) -> bool {
    feature.status == State::Blocked
}

fn counts<'a>(features: impl Iterator<Item = &'a FeatureLine>) -> String {
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for feature in features {
        tests += 1;
        failures += u32::from(is_failure(feature));
        skipped += u32::from(!feature.passes && !is_failure(feature));
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"")
}

/// Escapes a string for XML; characters that XML cannot contain become a question mark.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(escaped("a<b> & \"c\"\n\u{1b}[31m"), "a&lt;b&gt; &amp; &quot;c&quot;\n?[31m");
    }
}
