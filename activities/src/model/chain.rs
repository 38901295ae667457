//! The cache of conversations: one file per message, named by the digest of its content, which
//! includes the digest of the message before it.
//!
//! A file is `<digest of the parent>\n<message as JSON>`, its name the blake3 digest of these
//! bytes; the first message has an empty parent. A missing or damaged file makes the chain unknown,
//! and the workflow sends the conversation again, so files are not synced.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;
use longhaul_workflows::contracts::{CallModel, Message, ModelCall};

use crate::files::placed::{self, Links};

use super::files::write;

/// The longest file of a message, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;
/// The most messages of a conversation.
const MOST: usize = 100_000;

/// One message as a file.
#[derive(Debug, Clone)]
struct Node {
    digest: String,
    content: Vec<u8>,
}

impl Node {
    fn new(parent: &str, message: &Message) -> Self {
        let mut content = format!("{parent}\n").into_bytes();
        serde_json::to_writer(&mut content, message).expect("a message has a JSON form");
        Self { digest: blake3::hash(&content).to_hex().to_string(), content }
    }
}

/// A conversation, and the files of its new part.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    directory: PathBuf,
    messages: Vec<Message>,
    new: Vec<Node>,
    head: String,
    /// The length of all files.
    bytes: usize,
}

impl Conversation {
    /// The conversation of a call: the chain that its head names, and its new messages. `known`
    /// looks the chain up in memory.
    ///
    /// # Errors
    /// [`CallModel::UNKNOWN_HEAD`] if the chain is neither in memory nor in the directory; a
    /// terminal failure if the conversation does not begin with exactly one [`Message::Start`].
    pub(super) fn of(
        directory: &Path,
        known: impl FnOnce(&str) -> Option<Self>,
        call: &ModelCall,
    ) -> Result<Self, Failure> {
        let mut conversation = match &call.head {
            Some(head) => {
                known(head).or_else(|| Self::read(directory, head)).ok_or_else(|| unknown(head))?
            }
            None => Self { directory: directory.to_owned(), ..Self::default() },
        };
        for message in &call.new {
            conversation.push(message.clone());
        }
        let is_start = |message: &&Message| matches!(message, Message::Start { .. });
        let begins = conversation.messages.first().as_ref().is_some_and(is_start);
        if !begins || conversation.messages.iter().filter(is_start).count() != 1 {
            return Err(Failure::terminal(
                "a conversation begins with a start message, and has no other",
            ));
        }
        Ok(conversation)
    }

    /// Adds a message.
    pub(super) fn push(&mut self, message: Message) {
        let node = Node::new(&self.head, &message);
        self.head.clone_from(&node.digest);
        self.bytes += node.content.len();
        self.new.push(node);
        self.messages.push(message);
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) fn head(&self) -> &str {
        &self.head
    }

    /// The length of all messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this is the conversation of a directory that ends with this head.
    pub(super) fn is(&self, directory: &Path, head: &str) -> bool {
        self.head == head && self.directory == directory
    }

    /// Writes the new messages.
    pub(super) fn save(&mut self) -> io::Result<()> {
        self.new.drain(..).try_for_each(|node| write(&self.directory, &node.digest, &node.content))
    }

    /// The conversation of a chain, if all its files are intact.
    fn read(directory: &Path, head: &str) -> Option<Self> {
        let mut conversation =
            Self { directory: directory.to_owned(), head: head.to_owned(), ..Self::default() };
        let messages = &mut conversation.messages;
        let mut next = head.to_owned();
        while messages.is_empty() || !next.is_empty() {
            let is_digest = next.len() == 64 && next.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_digest || messages.len() == MOST {
                return None;
            }
            let content = placed::read(&directory.join(&next), Links::Refused, LONGEST).ok()??;
            if blake3::hash(&content).to_hex().as_str() != next {
                return None;
            }
            let split = content.iter().position(|byte| *byte == b'\n')?;
            messages.push(serde_json::from_slice(&content[split + 1..]).ok()?);
            conversation.bytes += content.len();
            next = String::from_utf8(content[..split].to_vec()).ok()?;
        }
        messages.reverse();
        Some(conversation)
    }
}

fn unknown(head: &str) -> Failure {
    let message = format!("the conversation {head:.64} is not in the cache");
    Failure::terminal(message).with_code(CallModel::UNKNOWN_HEAD)
}
