//! A small MCP server: one tool that only reads, one that changes a file, one that remembers.
//! It speaks on standard
//! input and output, or over HTTP.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
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

/// The server. It counts its calls of `count`.
#[derive(Debug, Clone, Default)]
pub struct McpServer {
    counted: Arc<AtomicUsize>,
}

#[tool_router]
impl McpServer {
    #[tool(description = "Appends a line to a file.")]
    async fn append(&self, Parameters(Append { file, line, hangs }): Parameters<Append>) -> String {
        let opened = std::fs::File::options().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| writeln!(file, "{line}"));
        if hangs {
            std::future::pending::<()>().await;
        }
        format!("{file}: {written:?}")
    }

    #[tool(description = "Counts its calls.")]
    async fn count(&self) -> String {
        format!("call {}", self.counted.fetch_add(1, Ordering::SeqCst) + 1)
    }

    #[tool(description = "Says a word.", annotations(read_only_hint = true))]
    async fn word(&self) -> String {
        "finished".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for McpServer {}

/// A server over HTTP in this process, which asks for a key.
#[derive(Debug)]
pub struct HttpMcpServer {
    /// Its address.
    pub url: String,
    refused: Arc<AtomicUsize>,
}

impl HttpMcpServer {
    /// Starts it. It ends with the process.
    pub fn start(key: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it has an address"));
        listener.set_nonblocking(true).expect("a socket can be asynchronous");
        let refused = Arc::default();
        let counter = Arc::clone(&refused);
        let expected = format!("Bearer {key}");
        std::thread::spawn(move || serve(listener, &expected, &counter));
        Self { url, refused }
    }

    /// The number of requests without the key.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn serve(listener: TcpListener, expected: &str, refused: &Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime runs");
    let sessions: Arc<LocalSessionManager> = Arc::default();
    let config = StreamableHttpServerConfig::default();
    let tools = StreamableHttpService::new(|| Ok(McpServer::default()), sessions, config);
    while let Ok((stream, _)) = listener.accept().await {
        let (tools, expected, refused) = (tools.clone(), expected.to_owned(), Arc::clone(refused));
        let answer = service_fn(move |request: Request<Incoming>| {
            let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec());
            let is_allowed = given.is_some_and(|given| given == expected.as_bytes());
            refused.fetch_add(usize::from(!is_allowed), Ordering::SeqCst);
            let tools = tools.clone();
            async move {
                if is_allowed {
                    return Ok::<_, std::convert::Infallible>(tools.handle(request).await);
                }
                let mut response = Response::default();
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                Ok(response)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(connection);
    }
}
