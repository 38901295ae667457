//! The messages of Longhaul's commits.

use longhaul_engine::RunId;
use longhaul_workflows::backlog::FeatureId;

/// The longest subject, in characters.
const SUBJECT_MAX: usize = 200;

/// The begin of the trailer that names the run.
const RUN: &str = "Run-Id: ";

/// A commit message that names the feature and the run, without control characters: git refuses
/// some.
pub(super) fn message(subject: &str, body: &str, feature: &FeatureId, run: &RunId) -> String {
    let plain: String =
        subject.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let subject = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let subject: String = subject.chars().take(SUBJECT_MAX).collect();
    let subject = if subject.is_empty() { feature.to_string() } else { subject };
    let body = body.replace(|letter: char| letter.is_control() && !"\n\t".contains(letter), "");
    let body = body.trim();
    let body = if body.is_empty() { String::new() } else { format!("{body}\n\n") };
    format!("{subject}\n\n{body}{}\n{}\n", feature_line(feature), run_line(run))
}

fn feature_line(feature: &FeatureId) -> String {
    format!("Feature-Id: {feature}")
}

/// The trailer that names the run.
pub(super) fn run_line(run: &RunId) -> String {
    format!("{RUN}{run}")
}

/// Whether the trailers of a message name this feature and this run.
pub(super) fn is_of(message: &str, feature: &FeatureId, run: &RunId) -> bool {
    [feature_line(feature), run_line(run)]
        .iter()
        .all(|wanted| trailers(message).any(|line| line == wanted))
}

/// Whether the trailers of a message name a run of this project.
pub(super) fn is_of_project(message: &str, project: &str) -> bool {
    let run = format!("{RUN}{project}/");
    trailers(message).any(|line| line.starts_with(&run))
}

/// The last paragraph of a message.
fn trailers(message: &str) -> impl Iterator<Item = &str> {
    message.trim_end().rsplit("\n\n").next().unwrap_or_default().lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trailers_are_a_paragraph_of_their_own() {
        let feature = FeatureId::new("login").unwrap();
        let run = RunId::new("shop/login").unwrap();
        let trailers = "Feature-Id: login\nRun-Id: shop/login\n";
        assert_eq!(
            message("Add\nlogin", " It works. ", &feature, &run),
            format!("Add login\n\nIt works.\n\n{trailers}")
        );
        assert_eq!(
            message("Add\0login", "It\0 works.\r\n\tWell.\u{7}", &feature, &run),
            format!("Add login\n\nIt works.\n\tWell.\n\n{trailers}")
        );
        assert_eq!(message("", "", &feature, &run), format!("login\n\n{trailers}"));
    }

    #[test]
    fn a_message_is_known_by_its_trailers() {
        let feature = FeatureId::new("login").unwrap();
        let run = RunId::new("shop/login/1").unwrap();
        let other = FeatureId::new("cart").unwrap();
        let tenth = RunId::new("shop/login/10").unwrap();
        let ours = message("Add login", "It works.", &feature, &run);
        assert!(is_of(&ours, &feature, &run));
        assert!(is_of(&format!("{ours}Signed-off-by: Ada\n"), &feature, &run));
        assert!(!is_of(&ours, &other, &run) && !is_of(&ours, &feature, &tenth));
        assert!(!is_of(&message("Add login", "", &feature, &tenth), &feature, &run));
        let quoted = message("Add cart", "Feature-Id: login\nRun-Id: shop/login/1", &other, &tenth);
        assert!(!is_of(&quoted, &feature, &run), "a description is no trailer");
        assert!(is_of_project(&ours, "shop"));
        assert!(!is_of_project(&ours, "sho") && !is_of_project(&quoted, "cart"));
    }
}
