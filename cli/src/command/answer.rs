//! `longhaul answer`.

use std::path::Path;

use anyhow::Result;

use super::steer::OrderDocument;
use super::terminal;
use crate::arguments::{AnswerArguments, Output};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::{AnswerQuestion, Answered};

pub(super) async fn run(data_dir: &Path, arguments: AnswerArguments) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = super::named::run(&client, &arguments.one.run, &arguments.one.scope.dir).await?;
    let request = arguments.request.request();
    let answer = AnswerQuestion { run, text: arguments.text, request: request.clone() };
    let Answered { session, question, waits } = super::call(&client, answer).await?;
    let done = if waits { "will be answered when its project runs next" } else { "answered" };
    match arguments.output {
        Output::Table => {
            terminal::print(format!("{session}  {done}"));
            term::say(format!("its question was: {}", terminal::safe(&question)));
        }
        Output::Json => {
            document::print(OrderDocument::of_one("answer", session.as_str(), waits, &request))?;
        }
    }
    Ok(Exit::Ok)
}
