//! Limits of model providers, from the file `providers.toml` in the data directory, which people
//! edit. All projects of the data directory share them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::settings_file;

/// The name of the file.
const FILE: &str = "providers.toml";

/// The limits of providers. There are none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Providers {
    /// By the name of a provider, as `ApiSettings::provider_name` gives it.
    #[serde(default)]
    providers: BTreeMap<String, ProviderLimits>,
}

/// The limits of one provider. An absent one does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderLimits {
    /// The most requests within any minute.
    pub requests_per_minute: Option<u32>,
    /// The most tokens within any minute that are not read from the provider's cache.
    pub tokens_per_minute: Option<u64>,
    /// The most requests at the same time.
    pub concurrent: Option<u32>,
}

impl Providers {
    /// The limits of a data directory.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is wrong; the text names the line.
    pub fn load(data_dir: &Path) -> Result<Self, String> {
        settings_file::load(&data_dir.join(FILE), Self::checked)
    }

    /// The limits of a provider. There are none if the file is wrong: work goes on without them.
    pub(crate) fn limits_of(data_dir: &Path, provider: &str) -> ProviderLimits {
        let providers = Self::load(data_dir).inspect_err(|error| {
            tracing::warn!(error, "the limits of providers are not known");
        });
        providers.unwrap_or_default().of(provider)
    }

    fn checked(self) -> Result<Self, String> {
        for (name, limits) in &self.providers {
            let ProviderLimits { requests_per_minute, tokens_per_minute, concurrent } = *limits;
            let numbers =
                [requests_per_minute.map(u64::from), tokens_per_minute, concurrent.map(u64::from)];
            if numbers.contains(&Some(0)) {
                return Err(format!("a limit of `{name}` is 0; give a number from 1"));
            }
        }
        Ok(self)
    }

    /// The limits of a provider.
    pub fn of(&self, provider: &str) -> ProviderLimits {
        self.providers.get(provider).copied().unwrap_or_default()
    }

    /// The limits on concurrent requests, by the name of the provider.
    pub fn concurrent(&self) -> impl Iterator<Item = (&str, u32)> {
        let limit = |limits: &ProviderLimits| limits.concurrent;
        self.providers
            .iter()
            .filter_map(move |(name, limits)| Some((name.as_str(), limit(limits)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_provider_and_checked() {
        let read = |text: &str| {
            toml::from_str(text).map_err(|error| error.to_string()).and_then(Providers::checked)
        };
        let text = "[providers.\"api.anthropic.com\"]\nrequests_per_minute = 50\nconcurrent = 4\n";
        let providers: Providers = read(text).unwrap();
        assert_eq!(providers.of("api.anthropic.com").requests_per_minute, Some(50));
        assert_eq!(providers.of("api.openai.com"), ProviderLimits::default());
        assert_eq!(providers.concurrent().collect::<Vec<_>>(), [("api.anthropic.com", 4)]);
        assert!(read("[providers.a]\nconcurrent = 0").is_err());
        assert!(read("[providers.a]\nrequests = 1").is_err());
    }
}
