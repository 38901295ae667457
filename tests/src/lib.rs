//! What the tests stand on: a manual clock, a store that dies on request, workflows and
//! activities as closures, real projects with a scripted agent, and the command line as
//! people use it.

pub mod clock;
pub mod command;
pub mod dice;
pub mod disk;
pub mod dying;
pub mod history;
pub mod mcp;
pub mod plain;
pub mod player;
pub mod project;
pub mod script;
pub mod shape;
pub mod terminal;
pub mod wait;
pub mod witness;
pub mod xml;

pub use longhaul_model_server as model_server;
