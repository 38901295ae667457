//! `longhaul demo`: creates a small project with a scripted agent, then does the same as `longhaul
//! run`.

use std::path::Path;

use anyhow::Result;

use crate::arguments::{AtOnce, Demo, Output, Run};
use crate::exit::Exit;
use crate::{demo, term};
use longhaul_server::advice;

pub(super) async fn run(data_dir: &Path, arguments: &Demo) -> Result<Exit> {
    demo::create(&arguments.dir)?;
    let dir = arguments.dir.display();
    term::say(format!(
        "demo: {} features in {dir}; now {}",
        demo::FEATURES,
        advice::run(&arguments.dir)
    ));
    let run = Run {
        dirs: vec![arguments.dir.clone()],
        take_over: false,
        limits: AtOnce { agents: None, checks: None },
        output: Output::Table,
    };
    super::run::run(data_dir, &run).await
}
