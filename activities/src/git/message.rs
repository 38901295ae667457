//! The messages of Longhaul's commits.

use longhaul_engine::RunId;
use longhaul_workflows::backlog::FeatureId;

/// The longest subject, in letters.
const SUBJECT_MAX: usize = 200;

/// A commit message that names the feature and the run.
pub(super) fn message(subject: &str, body: &str, feature: &FeatureId, run: &RunId) -> String {
    let plain: String = subject.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let subject = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let subject: String = subject.chars().take(SUBJECT_MAX).collect();
    let subject = if subject.is_empty() { feature.to_string() } else { subject };
    let body = body.trim();
    let body = if body.is_empty() { String::new() } else { format!("{body}\n\n") };
    format!("{subject}\n\n{body}Feature-Id: {feature}\nRun-Id: {run}\n")
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
        assert_eq!(message("", "", &feature, &run), format!("login\n\n{trailers}"));
    }
}
