//! `longhaul graph`.

mod layout;
mod svg;
mod text;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;

use super::terminal::Terminal;
use crate::arguments::Output;
use crate::arguments::look::{Graph, GraphForm};
use crate::document;
use crate::exit::{Exit, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::{self, GraphDocument};
use longhaul_workflows::projection::{ProjectView, State};

pub(in crate::command) use text::{DagRow, dag_rows, sign};

pub(super) async fn run(data_dir: &Path, arguments: &Graph) -> Result<Exit> {
    let document = document(data_dir, &Project::at(&arguments.dir).await?).await?;
    if arguments.output == Output::Json {
        document::print(&document)?;
        return Ok(Exit::Ok);
    }
    term::print(match arguments.form {
        GraphForm::Text => {
            text::draw(Terminal::here(), &document, arguments.limit) + &text::cycles(&document)
        }
        GraphForm::Dot => dot(&document),
        GraphForm::Mermaid => mermaid(&document),
        GraphForm::Svg => svg::draw(&document),
    });
    Ok(Exit::Ok)
}

/// The features of the current list with the states of the log.
async fn document(data_dir: &Path, project: &Project) -> Result<GraphDocument> {
    // A process that runs the project has read its list.
    let client = super::reach(data_dir).await;
    if let Ok(client @ Client::Remote(_)) = &client {
        let graph = views::Graph { project: project.id.clone(), list: None };
        match super::call(client, graph).await {
            Err(error) if super::is_usage(&error) => {}
            document => return document,
        }
    }
    let loaded = longhaul_activities::project::load(&project.root).await;
    let list = loaded.as_ref().ok().map(|loaded| loaded.features.clone());
    let graph = views::Graph { project: project.id.clone(), list };
    let of_log = match client {
        Ok(client) => super::call(&client, graph).await,
        Err(error) => Err(error),
    };
    match of_log {
        // There is no log, or it does not contain the project yet.
        Err(error) if super::is_usage(&error) => {
            let view = ProjectView::default().with_list(loaded.map_err(usage)?.features);
            Ok(GraphDocument::of(&project.id, &view))
        }
        document => document,
    }
}

/// The fill and border colours of a state.
fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Passed | State::Done => ("#d7f0d9", "#2e7d32"),
        State::Pending => ("#ffffff", "#616161"),
        State::Waiting => ("#f0f0f0", "#9e9e9e"),
        State::Blocked | State::Failed | State::Cancelled | State::NeedsAttention => {
            ("#fbdcdc", "#c62828")
        }
        State::Running | State::Paused | State::Parked => ("#d6e6fb", "#1565c0"),
    }
}

/// The graph for Graphviz.
fn dot(document: &GraphDocument) -> String {
    let mut text = String::from(
        "digraph features {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n",
    );
    let quoted =
        |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ");
    for node in &document.features {
        let (fill, border) = colours(node.status);
        let label = format!("{}\\n{}", quoted(&node.id), node.status);
        let tip = quoted(&node.name);
        text += &format!(
            "  \"{}\" [label=\"{label}\", tooltip=\"{tip}\", \
             fillcolor=\"{fill}\", color=\"{border}\"];\n",
            quoted(&node.id)
        );
    }
    let in_cycles: HashSet<(&str, &str)> = links_of_cycles(document).collect();
    for (from, to) in edges(document) {
        let colour = if in_cycles.contains(&(from, to)) { " [color=\"#c62828\"]" } else { "" };
        text += &format!("  \"{}\" -> \"{}\"{colour};\n", quoted(from), quoted(to));
    }
    text + "}"
}

/// The graph for Mermaid, whose ids may contain only letters and digits.
fn mermaid(document: &GraphDocument) -> String {
    let mut text = String::from("graph LR\n");
    let numbers: HashMap<&str, usize> =
        document.features.iter().map(|node| node.id.as_str()).zip(0..).collect();
    let number = |id: &str| numbers.get(id).copied();
    for (index, node) in document.features.iter().enumerate() {
        let label = node.id.replace('"', "#quot;");
        text += &format!("  f{index}[\"{label}<br/>{}\"]:::{}\n", node.status, node.status);
    }
    for (from, to) in edges(document) {
        if let (Some(from), Some(to)) = (number(from), number(to)) {
            text += &format!("  f{from} --> f{to}\n");
        }
    }
    let states = [State::Passed, State::Running, State::Pending, State::Waiting, State::Blocked];
    let classes = states.map(|state| {
        let (fill, border) = colours(state);
        format!("  classDef {state} fill:{fill},stroke:{border}")
    });
    text + &classes.join("\n")
}

/// The edges: dependency, dependant.
fn edges(document: &GraphDocument) -> impl Iterator<Item = (&str, &str)> {
    document
        .features
        .iter()
        .flat_map(|node| node.depends_on.iter().map(|need| (need.as_str(), node.id.as_str())))
}

/// The edges of the cycles: dependency, dependant.
fn links_of_cycles(document: &GraphDocument) -> impl Iterator<Item = (&str, &str)> {
    document
        .cycles
        .iter()
        .flat_map(|cycle| cycle.path.windows(2).map(|link| (link[1].as_str(), link[0].as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_workflows::backlog::{Cycle, FeatureId};

    /// Tests with small dependency graphs.
    pub(super) fn sample(features: &[(&str, State, &[&str])]) -> GraphDocument {
        let node = |(id, state, needs): &(&str, State, &[&str])| views::graph::FeatureNode {
            id: (*id).into(),
            name: format!("<{id}> & \"more\""),
            status: *state,
            depends_on: needs.iter().map(|need| (*need).into()).collect(),
        };
        let features = features.iter().map(node).collect();
        GraphDocument { project: "shop".into(), features, cycles: Vec::new() }
    }

    #[test]
    fn other_tools_get_quoted_text() {
        let graph = sample(&[("a", State::Passed, &[]), ("b", State::Running, &["a"])]);
        let dot = super::dot(&graph);
        assert!(
            dot.contains(r#"tooltip="<a> & \"more\"""#) && dot.contains(r#"  "a" -> "b";"#),
            "{dot}"
        );
        let mermaid = mermaid(&graph);
        assert!(
            mermaid.contains("  f0 --> f1\n")
                && mermaid.contains("f1[\"b<br/>running\"]:::running"),
            "{mermaid}"
        );
    }

    #[test]
    fn cycles_are_marked() {
        let mut graph = sample(&[("a", State::Waiting, &["b"]), ("b", State::Waiting, &["a"])]);
        let id = |text: &str| FeatureId::new(text).unwrap();
        graph.cycles = vec![Cycle {
            path: vec![id("a"), id("b"), id("a")],
            without_in: id("a"),
            without: id("b"),
        }];
        let dot = super::dot(&graph);
        assert!(dot.contains(r##""b" -> "a" [color="#c62828"];"##), "{dot}");
        assert_eq!(
            text::cycles(&graph),
            "\n\n1 dependency cycle; take one link of each out of `depends_on`:\n  \
             a -> b -> a  (`a` without `b`)"
        );
    }
}
