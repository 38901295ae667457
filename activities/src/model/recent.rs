//! The last conversations, in memory: a session whose conversation is here does not read its files
//! for each turn.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chain::Conversation;

/// The most bytes of all of them. Others are read from their files.
const MOST: usize = 64 * 1024 * 1024;

/// Conversations after their last answer, the latest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent(Arc<Mutex<VecDeque<Conversation>>>);

impl Recent {
    /// Removes and returns the conversation of a directory that ends with this head.
    pub(super) fn take(&self, directory: &Path, head: &str) -> Option<Conversation> {
        let mut conversations = self.lock();
        let at = conversations.iter().rposition(|known| known.is(directory, head))?;
        conversations.remove(at)
    }

    /// Adds a conversation. The oldest ones leave if all together are too long.
    pub(super) fn put(&self, conversation: Conversation) {
        let mut conversations = self.lock();
        conversations.push_back(conversation);
        let mut bytes: usize = conversations.iter().map(Conversation::bytes).sum();
        while bytes > MOST
            && let Some(oldest) = conversations.pop_front()
        {
            bytes -= oldest.bytes();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Conversation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
