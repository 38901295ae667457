//! The order of tasks in formats where it follows from the place in the file.

use super::task::Task;

/// Each task waits for the one before; nothing waits for an optional one.
pub(super) fn sequence(tasks: &mut [Task]) {
    let mut before: Option<String> = None;
    for task in tasks {
        if let Some(before) = &before {
            task.needs(before);
        }
        if !task.is_optional {
            before = task.id().map(str::to_owned);
        }
    }
}

/// The phases of spec-kit. Within a phase, tasks follow each other, and those marked as parallel
/// form one step. User stories wait for the phase before all of them; another phase waits for all
/// phases before it.
///
/// `phases` has the phase of each task.
pub(super) fn phases(tasks: &mut [Task], phases: &[usize]) {
    let mut base: Vec<String> = Vec::new();
    // The last steps of the user stories since the base.
    let mut stories: Vec<String> = Vec::new();
    let mut start = 0;
    while start < tasks.len() {
        let end = (start..tasks.len()).find(|index| phases[*index] != phases[start]);
        let end = end.unwrap_or(tasks.len());
        let phase = &mut tasks[start..end];
        let is_story = phase.iter().any(Task::has_story);
        if !is_story && !stories.is_empty() {
            base = std::mem::take(&mut stories);
        }
        let last = steps(phase, &base);
        if is_story {
            stories.extend(last);
        } else {
            base = last;
        }
        start = end;
    }
}

/// Orders the steps of a phase and returns the tasks of the last one.
fn steps(phase: &mut [Task], base: &[String]) -> Vec<String> {
    let mut before = base.to_vec();
    let mut step: Vec<String> = Vec::new();
    let mut is_parallel = false;
    for task in phase {
        let continues = task.is_parallel && is_parallel;
        if !continues && !step.is_empty() {
            before = std::mem::take(&mut step);
        }
        is_parallel = task.is_parallel;
        for id in &before {
            task.needs(id);
        }
        step.extend(task.id().map(str::to_owned));
    }
    if step.is_empty() { before } else { step }
}
