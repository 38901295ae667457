//! The requests that the socket accepts, by their names on the wire.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::perform::AnyRequest;
use crate::request::Request;

/// An incoming request before its type is known.
#[derive(Deserialize)]
pub(crate) struct Incoming<'a> {
    request: String,
    #[serde(borrow)]
    body: &'a RawValue,
    #[serde(default)]
    pub(crate) watch: bool,
}

/// Decodes the listed requests.
macro_rules! requests {
    ($($request:ty,)*) => {
        impl Incoming<'_> {
            /// Decodes a request; the error says why it is unreadable.
            pub(crate) fn read(&self) -> Result<Box<dyn AnyRequest>, String> {
                let body = self.body.get();
                match self.request.as_str() {
                    $(<$request as Request>::NAME => match serde_json::from_str::<$request>(body) {
                        Ok(request) => Ok(Box::new(request)),
                        Err(error) => Err(error.to_string()),
                    },)*
                    unknown => Err(format!("there is no request `{unknown}`")),
                }
            }
        }
    };
}

requests! {
    crate::batches::BatchStatus,
    crate::batches::SubmitBatch,
    crate::due::ShowDue,
    crate::served::TakeUpEdits,
    crate::maintenance::Check,
    crate::maintenance::Export,
    crate::maintenance::Import,
    crate::maintenance::InspectPages,
    crate::maintenance::Prune,
    crate::maintenance::Unfinished,
    crate::open::SetLimits,
    crate::questions::AnswerQuestion,
    crate::rewind::Fork,
    crate::rewind::ListCheckpoints,
    crate::rewind::RollBack,
    crate::rewind::TakeCheckpoint,
    crate::begin::Begin,
    crate::begin::ProjectStatus,
    crate::deliver::Reconcile,
    crate::deliver::SendSignal,
    crate::steering::Steer,
    crate::stuck::StuckRuns,
    crate::views::activity::ShowActivity,
    crate::views::Describe,
    crate::views::FindProject,
    crate::views::FindRun,
    crate::views::Graph,
    crate::views::Overview,
    crate::views::Tree,
    crate::views::Why,
    crate::views::ShowHandoff,
    crate::views::ShowSession,
    crate::views::history::ShowHistory,
    crate::views::ListRuns,
    crate::views::session::list::ListSessions,
    crate::views::session::transcript::Transcript,
    crate::views::usage::ShowUsage,
}
