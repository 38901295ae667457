//! Prices of models, from the file `prices.toml` in the data directory, which people edit.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_workflows::contracts::Usage;
use serde::Deserialize;

use crate::settings_file;

/// The name of the file.
const FILE: &str = "prices.toml";

/// The prices of models. There are none by default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// By the name of a model, in which `*` stands for any characters.
    #[serde(default)]
    models: BTreeMap<String, Price>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    output: f64,
    /// Absent: the price of input.
    cache_read: Option<f64>,
    /// Absent: the price of input.
    cache_write: Option<f64>,
}

impl Prices {
    /// The prices of a data directory.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is wrong; the text names the line.
    pub fn load(data_dir: &Path) -> Result<Self, String> {
        settings_file::load(&data_dir.join(FILE), Self::checked)
    }

    /// The cost of an answer in millionths of a US dollar, from the prices of a data directory.
    /// A file that cannot be used gives no cost: an answer that is paid for must not be lost.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cost is checked to be a finite number from 0 up"
    )]
    pub(crate) fn cost_in(data_dir: &Path, model: &str, usage: &Usage) -> Option<u64> {
        let prices = Self::load(data_dir).inspect_err(|error| {
            tracing::warn!(error, "the cost of an answer is not known");
        });
        prices.ok()?.cost_micros(model, usage).map(|micros| micros.ceil() as u64)
    }

    fn checked(self) -> Result<Self, String> {
        for (model, price) in &self.models {
            let Price { input, output, cache_read, cache_write } = *price;
            let prices = [Some(input), Some(output), cache_read, cache_write];
            if prices.iter().flatten().any(|price| !price.is_finite() || *price < 0.0) {
                return Err(format!("a price of `{model}` is not a number from 0 up"));
            }
        }
        Ok(self)
    }

    /// The cost of tokens in millionths of a US dollar; `None` if the model has no price. Of
    /// several patterns that match, the longest counts.
    pub fn cost_micros(&self, model: &str, usage: &Usage) -> Option<f64> {
        let matching = self.models.iter().filter(|(pattern, _)| matches(pattern, model));
        let (_, price) = matching.max_by_key(|(pattern, _)| pattern.len())?;
        let cost = |tokens: u64, price: f64| count(tokens) * price;
        Some(
            cost(usage.input, price.input)
                + cost(usage.output, price.output)
                + cost(usage.cache_read, price.cache_read.unwrap_or(price.input))
                + cost(usage.cache_write, price.cache_write.unwrap_or(price.input)),
        )
    }
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens and of money are below 2^52")]
fn count(count: u64) -> f64 {
    count as f64
}

/// Whether a text matches a pattern in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(text: &str) -> Result<Prices, String> {
        toml::from_str::<Prices>(text).map_err(|error| error.to_string()).and_then(Prices::checked)
    }

    #[test]
    fn the_longest_pattern_counts() {
        let prices = prices(
            "[models.\"claude-*\"]\ninput = 1\noutput = 2\n\
             [models.\"claude-sonnet-*\"]\ninput = 3.0\noutput = 15.0\ncache_read = 0.3\n",
        )
        .unwrap();
        let usage = Usage { input: 10, output: 2, cache_read: 100, cache_write: 1 };
        let cost = |model| prices.cost_micros(model, &usage);
        assert_eq!(cost("claude-sonnet-4-5"), Some(30.0 + 30.0 + 30.0 + 3.0));
        assert_eq!(cost("claude-opus-4"), Some(10.0 + 4.0 + 100.0 + 1.0));
        assert_eq!(cost("gpt-5"), None);
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*-mini*", "gpt-5-mini-2", true),
            ("é*", "éa", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_wrong_file_is_refused() {
        for wrong in [
            "[models.a]\ninput = 1",
            "[models.a]\ninput = -1\noutput = 1",
            "[models.a]\ninput = nan\noutput = 1",
            "[models.a]\ninput = 1\noutput = 1\nprice = 2",
            "[model.a]\ninput = 1\noutput = 1",
        ] {
            assert!(prices(wrong).is_err(), "{wrong}");
        }
    }
}
