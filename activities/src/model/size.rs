//! Estimates of the size of a conversation in tokens. The figures of the provider come with its
//! answer; these serve for limits, and for answers without figures.

use longhaul_workflows::contracts::{Block, Message, ModelCall, ToolSpec, Usage};

/// The usual bytes of a token.
const TOKEN: u64 = 4;
/// Estimates below this number of tokens are too coarse for a comparison.
const COMPARABLE: u64 = 1024;
/// The least number of tokens that an answer may take, where the window is nearly full.
const LEAST: u64 = 256;

fn bytes(messages: &[Message]) -> u64 {
    let bytes: usize = messages
        .iter()
        .map(|message| match message {
            Message::Start { system, tools } => {
                let tool =
                    |tool: &ToolSpec| tool.name.len() + tool.description.len() + tool.schema.len();
                system.len() + tools.iter().map(tool).sum::<usize>()
            }
            Message::User { blocks } | Message::Model { blocks } => blocks.iter().map(length).sum(),
        })
        .sum();
    bytes as u64
}

fn length(block: &Block) -> usize {
    match block {
        Block::Text { text } | Block::ToolResult { text, .. } => text.len(),
        // Reasoning of earlier turns is left out of the prompt by the provider.
        Block::Opaque { .. } => 0,
        Block::ToolUse(call) => call.name.len() + call.input.len(),
    }
}

/// The most tokens of the answer: the setting, or the rest of the window. Providers refuse a
/// request whose prompt and answer may exceed the window together.
pub(super) fn output_limit(call: &ModelCall, messages: &[Message]) -> u64 {
    // An estimate on the safe side: code has more tokens per byte than prose.
    let used = bytes(messages) / (TOKEN - 1);
    let left = call.window.saturating_sub(used).max(LEAST);
    call.api.max_output.min(left).max(1)
}

/// The tokens of an answer for which a server reported none.
pub(super) fn estimate(messages: &[Message], answer: &[Block]) -> Usage {
    let output = answer.iter().map(length).sum::<usize>() as u64 / TOKEN;
    Usage { input: bytes(messages) / TOKEN, output, ..Usage::default() }
}

/// Whether a server has read much less than the conversation: some drop its begin without a word
/// when it does not fit.
pub(super) fn is_shortened(messages: &[Message], prompt_tokens: u64) -> bool {
    let estimate = bytes(messages) / TOKEN;
    prompt_tokens > 0 && estimate >= COMPARABLE && prompt_tokens < estimate / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_lost_its_begin_is_noticed() {
        let text = "a line of code\n".repeat(1000);
        let messages = [Message::User { blocks: vec![Block::Text { text }] }];
        for (tokens, expected) in [(0, false), (1800, true), (1900, false), (5000, false)] {
            assert_eq!(is_shortened(&messages, tokens), expected, "{tokens}");
        }
        let short = [Message::User { blocks: vec![Block::Text { text: "a".repeat(4000) }] }];
        assert!(!is_shortened(&short, 10));
    }
}
