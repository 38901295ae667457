//! Reading the little XML that tests look at: JUnit reports, as other programs would read them.

/// A report.
#[derive(Debug)]
pub struct Report(Vec<(String, Vec<(String, String)>)>);

impl Report {
    /// The cases of a suite, with `passed`, `failure` or `skipped`.
    pub fn cases(&self, suite: &str) -> Vec<(String, String)> {
        self.0
            .iter()
            .find(|(name, _)| name == suite)
            .map(|(_, cases)| cases.clone())
            .unwrap_or_default()
    }
}

/// Reads a JUnit report; panics where it is no XML, or no such report.
pub fn parse(text: &str) -> Report {
    let document =
        roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("no XML: {error}\n{text}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites", "{text}");
    let name =
        |node: &roxmltree::Node<'_, '_>| node.attribute("name").unwrap_or_default().to_owned();
    let case = |node: roxmltree::Node<'_, '_>| {
        let inside = node.children().find(roxmltree::Node::is_element);
        (name(&node), inside.map_or("passed", |inside| inside.tag_name().name()).to_owned())
    };
    let suites = root.children().filter(roxmltree::Node::is_element);
    Report(
        suites
            .map(|suite| {
                (
                    name(&suite),
                    suite.children().filter(roxmltree::Node::is_element).map(case).collect(),
                )
            })
            .collect(),
    )
}
