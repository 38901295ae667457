//! A small MCP server for tests: one tool that only reads, one that changes a file.

use std::io::Write as _;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use serde::Deserialize;

/// The arguments of `append`.
#[derive(Deserialize, JsonSchema)]
struct Append {
    /// The file.
    file: String,
    /// The line.
    line: String,
    /// Whether to wait for ever afterwards.
    #[serde(default)]
    hangs: bool,
}

#[derive(Clone)]
struct Server;

#[tool_router]
impl Server {
    #[tool(description = "Appends a line to a file.")]
    async fn append(&self, Parameters(Append { file, line, hangs }): Parameters<Append>) -> String {
        let opened = std::fs::File::options().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| writeln!(file, "{line}"));
        if hangs {
            std::future::pending::<()>().await;
        }
        format!("{file}: {written:?}")
    }

    #[tool(description = "Says a word.", annotations(read_only_hint = true))]
    async fn word(&self) -> String {
        "finished".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Server {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    eprintln!("a test server begins");
    Server.serve(stdio()).await?.waiting().await?;
    Ok(())
}
