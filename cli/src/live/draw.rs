//! Draws the live display.

use longhaul_workflows::projection::State;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_server::status::{Counts, FeatureLine, ProjectState};
use longhaul_server::views::activity::RunActivity;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Widget};

use super::{Project, View, active, estimate};
use crate::terminal::{safe, span, style};

/// A row of the display.
enum Row<'a> {
    Project(&'a Project),
    Session(&'a FeatureLine, Option<&'a RunActivity>),
    Text(String),
}

impl View {
    /// The display for a terminal of a width and height.
    pub(super) fn draw(&self, (width, height): (u16, u16), now: DateTime<Utc>) -> Buffer {
        // One line remains for messages. Some terminals wrap after the last column.
        let room = usize::from(height.saturating_sub(2));
        let total = self.total(usize::from(width.saturating_sub(1)), now);
        let room = room.saturating_sub(total.len());
        let mut rows = if room > 0 { self.rows(room) } else { Vec::new() };
        rows.extend(total.into_iter().map(Row::Text));
        rows.truncate(usize::from(height.saturating_sub(1).max(1)));
        let height = u16::try_from(rows.len()).unwrap_or(height);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width.saturating_sub(1).max(1), height));
        let names = self.projects.iter().map(|project| project.document.project.chars().count());
        let name = u16::try_from(names.max().unwrap_or_default()).unwrap_or(u16::MAX);
        for (row, area) in rows.iter().zip(buffer.area.rows()) {
            row.draw(area, &mut buffer, name.max(8).min(width / 3), now);
        }
        buffer
    }

    /// As many projects as fit, in the order of the command line: those with sessions first, then
    /// those that need a person, then the others.
    fn rows(&self, room: usize) -> Vec<Row<'_>> {
        let sessions = |project: &Project| active(&project.document).count();
        let mut order: Vec<usize> = (0..self.projects.len()).collect();
        order.sort_by_key(|index| self.projects[*index].rank());
        let all: usize = self.projects.iter().map(|project| 1 + sessions(project)).sum();
        let is_folded = all > room && self.projects.len() > 1;
        let mut left = room.saturating_sub(usize::from(is_folded));
        // The rows for the sessions of each shown project.
        let mut shown = BTreeMap::new();
        for index in order {
            let wanted = 1 + sessions(&self.projects[index]);
            // A project header without any of its sessions is of no use.
            if left < wanted.min(2) {
                break;
            }
            shown.insert(index, wanted.min(left) - 1);
            left -= wanted.min(left);
        }
        let mut rows = Vec::new();
        for (index, room) in &shown {
            let project = &self.projects[*index];
            rows.push(Row::Project(project));
            let folded = sessions(project).saturating_sub(*room);
            let whole = room.saturating_sub(usize::from(folded > 0));
            for line in active(&project.document).take(whole) {
                let activity = line.run.as_ref().and_then(|run| self.activities.get(run));
                rows.push(Row::Session(line, activity));
            }
            if folded > 0 && *room > 0 {
                rows.push(Row::Text(format!("  … {} more", folded + 1)));
            }
        }
        if shown.len() < self.projects.len() {
            rows.push(Row::Text(self.folded(&shown)));
        }
        rows
    }

    /// The states of the projects that are not shown.
    fn folded(&self, shown: &BTreeMap<usize, usize>) -> String {
        let hidden =
            self.projects.iter().enumerate().filter(|(index, _)| !shown.contains_key(index));
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, project) in hidden {
            *states.entry(project.document.status.as_str()).or_default() += 1;
        }
        let count: usize = states.values().sum();
        let states: Vec<String> =
            states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        format!("… {count} more: {}", states.join(", "))
    }

    /// The total line; on a narrow terminal, the times are on a line of their own.
    fn total(&self, width: usize, now: DateTime<Utc>) -> Vec<String> {
        let counts: Counts = self.projects.iter().map(|project| project.document.counts).sum();
        let Counts { total, passed, running, .. } = counts;
        // First the decisions of people, then the waits that end by themselves.
        let blocked = counts.blocked + counts.cancelled;
        let waiting = counts.waiting + counts.pending;
        let mut text = String::new();
        if self.expected > 1 {
            let is_done = |project: &&Project| project.document.status == ProjectState::Done;
            let done = self.projects.iter().filter(is_done).count();
            text = format!("{done}/{} projects, ", self.expected);
        }
        text += &format!(
            "{passed}/{total} passed, {running} running, {blocked} blocked, {waiting} waiting"
        );
        let mut times = span(now - self.begun);
        let known = self.projects.iter().map(|project| (&project.document, &project.durations));
        if let Some(left) = estimate::remaining(known).filter(|_| passed < total) {
            times += &format!(", about {} left", span(left));
        }
        if text.len() + 2 + times.len() > width {
            return vec![text, times];
        }
        vec![format!("{text}, {times}")]
    }
}

impl Project {
    fn rank(&self) -> u8 {
        match self.document.status {
            _ if active(&self.document).next().is_some() => 0,
            ProjectState::NeedsAttention | ProjectState::Paused => 1,
            ProjectState::Done | ProjectState::Cancelled => 3,
            _ => 2,
        }
    }

    /// The state, unless it is evident.
    fn remark(&self) -> Line<'_> {
        let document = &self.document;
        let mut spans = Vec::new();
        if document.counts.blocked > 0 {
            let text = format!("{} blocked  ", document.counts.blocked);
            spans.push(Span::styled(text, style(State::Blocked)));
        }
        let state = document.status;
        if state != ProjectState::Running {
            spans.push(Span::styled(state.as_str(), style(state)));
        }
        let paused = document.sessions_paused.as_ref();
        if let Some(paused) = paused {
            spans.push(Span::raw(safe(&crate::status_text::sessions_paused(paused))));
        }
        Line::from(spans)
    }
}

impl Row<'_> {
    fn draw(&self, area: Rect, buffer: &mut Buffer, name: u16, now: DateTime<Utc>) {
        match self {
            Self::Text(text) => put(text, Style::default(), area, buffer),
            Self::Project(project) => {
                let [title, gauge, remark] = Layout::horizontal([
                    Constraint::Length(name),
                    Constraint::Length(32),
                    Constraint::Fill(1),
                ])
                .spacing(2)
                .areas(area);
                let bold = Style::default().add_modifier(Modifier::BOLD);
                put(&project.document.project, bold, title, buffer);
                let Counts { total, passed, .. } = project.document.counts;
                let label = format!("{:>9}", format!("{passed}/{total}"));
                LineGauge::default()
                    .ratio(share(passed, total))
                    .label(label)
                    .filled_style(style(State::Passed))
                    .unfilled_style(Style::new().dim())
                    .render(gauge, buffer);
                project.remark().render(remark, buffer);
            }
            Self::Session(line, activity) => {
                let [_, title, elapsed, step, output] = Layout::horizontal([
                    Constraint::Length(0),
                    Constraint::Length(name),
                    Constraint::Length(7),
                    Constraint::Length(22.min(area.width / 4)),
                    Constraint::Fill(1),
                ])
                .spacing(2)
                .areas(area);
                put(&line.id, Style::default(), title, buffer);
                let age = activity.map(|activity| span(now - activity.since)).unwrap_or_default();
                put(&format!("{age:>7}"), Style::default(), elapsed, buffer);
                let text = line.step.as_deref().unwrap_or_default();
                put(text, style(line.status), step, buffer);
                let last = activity.and_then(|activity| activity.last_line.clone());
                let text = line.remark().or(last).unwrap_or_default();
                put(&text, Style::new().dim(), output, buffer);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// A text on one line; a longer one ends with an ellipsis.
fn put(text: &str, style: Style, area: Rect, buffer: &mut Buffer) {
    let text = safe(&crate::term::clean(text));
    let room = usize::from(area.width);
    if textwrap::core::display_width(&text) <= room {
        buffer.set_stringn(area.x, area.y, text, room, style);
        return;
    }
    let (x, _) = buffer.set_stringn(area.x, area.y, text, room.saturating_sub(1), style);
    if room > 0 {
        buffer.set_stringn(x, area.y, "…", 1, style);
    }
}
