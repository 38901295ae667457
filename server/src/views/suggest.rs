//! Suggestions for a name that does not exist.

use strsim::levenshtein;

/// The candidates most similar to a name, the best first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    const FEW: usize = 5;
    let close = |candidate: &'a str| {
        let distance = levenshtein(name, candidate).min(levenshtein(name, last(candidate)));
        let contains = !name.is_empty() && candidate.contains(name);
        let enough = contains || distance <= 1 + name.len() / 3;
        enough.then_some((if contains { 0 } else { distance }, candidate))
    };
    let mut close: Vec<_> = known.filter_map(close).collect();
    close.sort_unstable();
    close.dedup();
    close.into_iter().take(FEW).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// The feature and the number of a run id, without its project.
fn last(run: &str) -> &str {
    let start = run.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    &run[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likeliest_comes_first() {
        let known = ["shop-1/login/1", "shop-1/logout/1", "shop-1/table/12", "other-2/login/1"];
        assert_eq!(nearest("login/2", known.into_iter()), ["other-2/login/1", "shop-1/login/1"]);
        assert_eq!(nearest("tabel/12", known.into_iter()), ["shop-1/table/12"]);
        assert_eq!(nearest("nothing-like-it", known.into_iter()), Vec::<String>::new());
    }
}
