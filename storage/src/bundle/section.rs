//! One run: the lines that it is written as, and the run that such lines are.

use longhaul_engine::event::Request;
use longhaul_engine::{Event, Message, Payload, RunId, Status, Summary};

use super::{line, v1};
use crate::carried::Carried;
use crate::history_file::{self, HistoryFileError};

/// The lines of a run.
pub(super) fn write(carried: &Carried) -> Result<String, String> {
    let said = |error: HistoryFileError| error.to_string();
    let Carried { run, events, summary, mailbox, published } = carried;
    let mut history = String::new();
    let pruned = if carried.is_pruned() {
        for event in events {
            history += &history_file::event_line(event).map_err(said)?;
            history.push('\n');
        }
        Some(freeze(summary))
    } else {
        history = history_file::write(run, events).map_err(said)?;
        None
    };
    // Each event is a line, whatever is in it; a history has a header and a footer too.
    let lines = events.len() as u64 + if pruned.is_some() { 0 } else { 2 };
    let (mail, count) = (mailbox.len() as u64, published.len() as u64);
    let mut text = line::json_of(&v1::Head { run: run.to_string(), lines, mail, published: count, pruned }) + "\n";
    text += &history;
    for message in mailbox {
        text += &history_file::message_json(message)?;
        text.push('\n');
    }
    for (name, value) in published {
        let value = history_file::payload_json(value)?;
        text += &line::json_of(&v1::Published { name: name.clone(), value });
        text.push('\n');
    }
    Ok(text)
}

/// A message of a line.
pub(super) fn message(line: &str) -> Result<Message, String> {
    let message = history_file::read_message(line)?;
    if history_file::message_json(&message)? == line {
        Ok(message)
    } else {
        Err("a message is written otherwise".into())
    }
}

/// A published value of a line.
pub(super) fn published(text: &str) -> Result<(String, Payload), String> {
    let v1::Published { name, value } = line::read("a published value", text)?;
    let payload = history_file::read_payload(&value)?;
    if history_file::payload_json(&payload)?.get() == value.get() {
        return Ok((name, payload));
    }
    Err("a published value is embedded otherwise than this version does".into())
}

/// A run of its parts.
pub(super) fn whole(run: RunId, events: Vec<Event>) -> Result<Carried, String> {
    let missing = format!("the history of run {run} does not begin with its start");
    let mut carried = Carried::of_history(run, events).ok_or(missing)?;
    carried.published.clear();
    Ok(carried)
}

fn freeze(summary: &Summary) -> v1::Summary {
    let time = history_file::time_text;
    v1::Summary {
        workflow: summary.workflow.clone(),
        parent: summary.parent.as_ref().map(ToString::to_string),
        labels: summary.labels.clone(),
        status: match summary.status.clone() {
            Status::Running => v1::Status::Running,
            Status::Waiting { until, machine } => v1::Status::Waiting { until: until.map(time), machine },
            Status::Paused(Request { by, why }) => v1::Status::Paused { by, why },
            Status::Parked(reason) => v1::Status::Parked(reason),
            Status::Completed => v1::Status::Completed,
            Status::Failed(message) => v1::Status::Failed(message),
            Status::Cancelled => v1::Status::Cancelled,
        },
        origin: summary.origin,
        started_at: time(summary.started_at),
        ended_at: summary.ended_at.map(time),
    }
}

/// The summary of a pruned run.
pub(super) fn thaw(summary: v1::Summary) -> Result<Summary, String> {
    let time = |text: String| history_file::read_time(&text);
    Ok(Summary {
        workflow: summary.workflow,
        parent: summary.parent.map(RunId::new).transpose().map_err(|error| error.to_string())?,
        labels: summary.labels,
        status: match summary.status {
            v1::Status::Running => Status::Running,
            v1::Status::Waiting { until, machine } => Status::Waiting { until: until.map(time).transpose()?, machine },
            v1::Status::Paused { by, why } => Status::Paused(Request { by, why }),
            v1::Status::Parked(reason) => Status::Parked(reason),
            v1::Status::Completed => Status::Completed,
            v1::Status::Failed(message) => Status::Failed(message),
            v1::Status::Cancelled => Status::Cancelled,
        },
        origin: summary.origin,
        started_at: time(summary.started_at)?,
        ended_at: summary.ended_at.map(time).transpose()?,
    })
}
