//! Draws the screen.

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_server::status::{Counts, FeatureLine};
use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::feed::Pane;
use super::screen::{Choice, Popup, Screen};
use crate::command::look::sign;
use crate::command::terminal::{safe, short, style};
use crate::status_text::first_line;

/// From this width on, the features are beside the pane instead of above it.
const WIDE: u16 = 110;

const KEYS: &str =
    "↑↓ select  ←→ project  tab pane  p pause  r resume  a approve  f fork  w why  ? help  q quit";

const HELP: &[(&str, &str)] = &[
    ("↑ ↓ j k", "select a feature"),
    ("← → [ ]  o", "the previous or next project; choose one from a list"),
    ("l  t  w  tab", "show the log, the transcript, the reason (why)"),
    ("page up, page down", "scroll"),
    ("p  r", "pause or resume the feature"),
    ("P  R", "pause or resume the project"),
    ("a", "approve the merge of the feature"),
    ("f", "fork the run of the feature from one of its steps"),
    ("q  esc", "quit; the projects continue"),
];

/// Draws everything.
pub(super) fn draw(screen: &Screen, frame: &mut Frame<'_>, now: DateTime<Utc>) {
    let [head, body, message, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(self::head(screen, head.width, now)), head);
    let halves = if body.width >= WIDE { Layout::horizontal } else { Layout::vertical };
    let [features, pane] = halves([Constraint::Percentage(45), Constraint::Fill(1)]).areas(body);
    draw_features(screen, frame, features);
    draw_pane(screen, frame, pane);
    let shown = safe(screen.message.lines().next().unwrap_or_default());
    frame.render_widget(Line::styled(shown, Style::new().yellow()), message);
    frame.render_widget(Line::styled(KEYS, Style::new().dim()), keys);
    match &screen.popup {
        None => {}
        Some(Popup::Help) => {
            let line = |(key, text): &(&str, &str)| Line::from(format!("{key:<20}{text}"));
            popup(frame, " Keys ", HELP.iter().map(line).collect());
        }
        Some(Popup::Choice { of, entries, selected }) => {
            let lines = entries.iter().enumerate().map(|(index, (name, text))| {
                let line = Line::from(format!("{name:<24}{}", safe(text)));
                if index == *selected { line.style(reversed()) } else { line }
            });
            // The selected entry stays visible.
            let room = usize::from(frame.area().height.saturating_sub(4)).max(1);
            let first = (selected + 1).saturating_sub(room);
            let title = match of {
                Choice::Step(run) => format!(" Fork {run} from (enter: fork, esc: close) "),
                Choice::Project => " Projects (enter: show, esc: close) ".into(),
            };
            popup(frame, &title, lines.skip(first).take(room).collect());
        }
    }
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// The project, its state and its counts.
fn head(screen: &Screen, width: u16, now: DateTime<Utc>) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let Some(project) = &screen.project else {
        return vec![Line::styled(
            "no project in this log yet: `longhaul run DIR` starts one",
            bold,
        )];
    };
    let status = &screen.status;
    let state = status.status.as_str();
    let counts = counts(status.counts);
    let place = place(screen, project);
    // The counts are never cut; a long name is.
    let others = place.len() + 2 + state.len() + 2 + counts.len();
    let name = short(project.as_str(), usize::from(width).saturating_sub(others).max(8));
    let first = vec![
        Span::styled(name, bold),
        Span::raw(place),
        Span::raw("  "),
        Span::styled(state, style(status.status)),
        Span::raw(format!("  {counts}")),
    ];
    let paused = status.sessions_paused.as_ref().map(crate::status_text::sessions_paused);
    let note = status.problem.clone().or(status.waits_on_next.clone()).or(paused);
    let owner = if status.is_running { "" } else { "no process runs it; " };
    let note = note.map(|note| first_line(&safe(&note))).unwrap_or_default();
    let time = now.format("%H:%M:%S UTC");
    vec![Line::from(first), Line::styled(format!("{owner}{time}  {note}"), Style::new().dim())]
}

/// Feature counts by state; that of cancelled features only if there are some.
fn counts(counts: Counts) -> String {
    let Counts { total, passed, running, blocked, cancelled, .. } = counts;
    let waiting = counts.waiting + counts.pending;
    let cancelled = if cancelled > 0 { format!(", {cancelled} cancelled") } else { String::new() };
    format!(
        "{passed}/{total} passed, {running} running, {blocked} blocked{cancelled}, \
         {waiting} waiting"
    )
}

/// The place of the project among several.
fn place(screen: &Screen, project: &RunId) -> String {
    let of = screen.projects.len();
    let index = screen.projects.iter().position(|line| line.header.run.as_ref() == Some(project));
    match index {
        Some(index) if of > 1 => format!(" ({} of {of} projects)", index + 1),
        _ => String::new(),
    }
}

/// The features as a graph: each below one of its dependencies, which the layout selects.
fn draw_features(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::bordered().title(" Features ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let height = usize::from(inner.height);
    let first = screen.selected.saturating_sub(height.saturating_sub(1) / 2);
    let first = first.min(screen.rows.len().saturating_sub(height));
    let lines: std::collections::HashMap<&str, &FeatureLine> =
        screen.status.features.iter().map(|line| (line.id.as_str(), line)).collect();
    let shown = screen.rows.iter().enumerate().skip(first).take(height);
    let lines = shown.map(|(number, row)| {
        let node = &screen.graph.features[row.index];
        let line = lines.get(node.id.as_str());
        let state = line.map_or(node.status, |line| line.status);
        let mut spans = vec![
            Span::styled(row.lead.clone(), Style::new().dim()),
            Span::styled(sign(state), style(state)),
            Span::raw(format!(" {}  ", node.id)),
            Span::styled(state.as_str(), style(state)),
        ];
        let remark = line.and_then(|line| line.remark().or_else(|| line.step.clone()));
        if let Some(remark) = remark.filter(|_| !line.is_some_and(|line| line.passes)) {
            spans.push(Span::raw(format!("  {}", first_line(&safe(&remark)))));
        } else if !row.also.is_empty() {
            let text = format!("  also needs {}", row.also.join(", "));
            spans.push(Span::styled(text, Style::new().dim()));
        }
        let line = Line::from(spans);
        if number == screen.selected { line.style(reversed()) } else { line }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// The log, the transcript or the reason of the selected feature.
fn draw_pane(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let name = match screen.pane {
        Pane::Log => "Log",
        Pane::Transcript => "Transcript",
        Pane::Why => "Why",
    };
    let run = screen.line().and_then(|line| line.run.as_ref()).map(ToString::to_string);
    let of = run.or_else(|| screen.feature().map(str::to_owned)).unwrap_or_default();
    let block = Block::bordered().title(format!(" {name} {of} "));
    let inner = block.inner(area);
    let end = screen.lines.len().saturating_sub(screen.scrolled);
    let begin = end.saturating_sub(usize::from(inner.height));
    // A reason is read from its beginning, and as a whole.
    let (begin, end) =
        if screen.pane == Pane::Why { (0, screen.lines.len()) } else { (begin, end) };
    let lines = screen.lines[begin..end].iter().map(|line| Line::from(line.as_str()));
    let mut text = Paragraph::new(lines.collect::<Vec<_>>()).block(block);
    if screen.pane == Pane::Why {
        text = text.wrap(Wrap { trim: false });
    }
    frame.render_widget(text, area);
}

fn popup(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'_>>) {
    let width = lines.iter().map(Line::width).max().unwrap_or_default().max(title.len()) + 4;
    let [area] = Layout::horizontal([Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX))])
        .flex(Flex::Center)
        .areas(frame.area());
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let [area] = Layout::vertical([Constraint::Length(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}
