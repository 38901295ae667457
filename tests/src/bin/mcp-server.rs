//! [`McpServer`] as a program.

use longhaul_tests::mcp::McpServer;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    eprintln!("a test server begins");
    McpServer::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
