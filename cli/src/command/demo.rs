//! `longhaul demo`: creates a small project with a scripted agent, then does the same as `longhaul
//! run`.

use std::path::Path;

use anyhow::Result;

use longhaul_model_server::ModelServer;

use crate::arguments::{AtOnce, Demo, DemoAgent, Output, Run};
use crate::exit::Exit;
use crate::{demo, term};
use longhaul_server::advice;

pub(super) async fn run(data_dir: &Path, arguments: &Demo) -> Result<Exit> {
    let is_hosted = arguments.agent == Some(DemoAgent::Api);
    let model = demo::model(&arguments.dir, is_hosted)?;
    demo::create(&arguments.dir, model.as_ref().map(ModelServer::url).as_deref())?;
    let dir = arguments.dir.display();
    term::say(format!(
        "demo: {} features in {dir}; now {}",
        demo::FEATURES,
        advice::run(&arguments.dir)
    ));
    let run = Run {
        dirs: vec![arguments.dir.clone()],
        once: false,
        max_time: None,
        take_over: false,
        limits: AtOnce { agents: None, checks: None },
        output: Output::Table,
    };
    let exit = super::run::run(data_dir, &run, None).await;
    if model.is_some() {
        term::say(format!(
            "`longhaul session list {dir}` lists the sessions; `session handoff ID` and `usage \
             {dir}` show more"
        ));
    }
    exit
}
