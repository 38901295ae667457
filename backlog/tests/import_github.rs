//! Issues as the REST interface returns them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_backlog::import::{self, Imported, Options, Shape};

fn read(text: &str) -> Imported {
    let imported = import::read(text, &Options::default()).unwrap();
    assert_eq!(imported.shape, Shape::Github);
    imported
}

/// `id: dependencies`, one line per issue.
fn lines(imported: &Imported) -> Vec<String> {
    let line = |item: &import::Item| {
        let needs: Vec<_> = item.feature.depends_on.iter().map(ToString::to_string).collect();
        format!("{}: {} {}", item.feature.id, item.feature.status, needs.join(","))
    };
    imported.items.iter().map(line).collect()
}

fn issue(repository: &str, number: u64, more: &str) -> String {
    format!(
        r#"{{"url": "https://api.github.com/repos/{repository}/issues/{number}", "repository_url": "https://api.github.com/repos/{repository}",
            "html_url": "https://github.com/{repository}/issues/{number}", "id": 9{number}, "number": {number}, "title": "T{number}",
            "labels": [{{"id": 1, "name": "bug", "color": "d73a4a"}}], "locked": false {more}}}"#
    )
}

#[test]
fn pull_requests_are_left_out() {
    let request = issue(
        "o/r",
        3,
        r#", "state": "open", "pull_request": {"url": "https://api.github.com/repos/o/r/pulls/3"}"#,
    );
    let text = format!(
        "[{}, {request}, {}]",
        issue("o/r", 1, r#", "state": "open", "body": "Depends on #2""#),
        issue(
            "o/r",
            2,
            r#", "state": "closed", "state_reason": "not_planned", "pull_request": null"#
        )
    );
    let imported = read(&text);
    assert_eq!(lines(&imported), ["issue-1: pending "], "nothing waits for what is not planned");
    let left: Vec<&str> = imported.not_mapped.iter().map(|left| left.what.as_str()).collect();
    assert_eq!(left, ["the pull request #3", "the issue #2", "the dependency on #2"]);
    // Pages, and the result of a search.
    let pages = format!("[[{}], [{request}]]", issue("o/r", 1, ""));
    assert_eq!(lines(&read(&pages)), ["issue-1: pending "]);
    let search = format!(
        r#"{{"total_count": 2, "incomplete_results": false, "items": [{}, {request}]}}"#,
        issue("o/r", 1, "")
    );
    let found = read(&search);
    assert_eq!((lines(&found).len(), found.items[0].place.to_string()), (1, "/items/0".to_owned()));
}

#[test]
fn issues_of_several_repositories_have_ids_of_their_own() {
    let text = format!(
        "[{}, {}, {}]",
        issue("Acme/api", 7, r#", "body": "Blocked by #8 and acme/web#7.""#),
        issue("Acme/api", 8, r#", "body": "depends on other/one#1""#),
        issue("acme/web", 7, "")
    );
    assert_eq!(
        lines(&read(&text)),
        [
            "acme-api-issue-7: pending acme-api-issue-8,acme-web-issue-7",
            "acme-api-issue-8: pending ",
            "acme-web-issue-7: pending "
        ]
    );
}
