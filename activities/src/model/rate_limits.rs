//! The rate limits that providers have stated. Each is kept in a file, so that other runs, and
//! later processes, wait for its end before their first request.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::files::placed::{self, Links};

/// The longest file, in bytes.
const LONGEST: u64 = 4096;
/// The name of all models of a provider.
const ALL: &str = "";

/// The rate limits in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct RateLimits {
    directory: PathBuf,
}

/// A rate limit that a provider has stated.
#[derive(Debug, Serialize, Deserialize)]
struct RateLimit {
    provider: String,
    model: String,
    until: DateTime<Utc>,
}

impl RateLimits {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { directory: data_dir.join("providers") }
    }

    /// The provider accepts no request for a model before this time.
    pub(crate) fn close(&self, provider: &str, model: &str, until: DateTime<Utc>) {
        if self.of(provider, model).is_some_and(|known| known >= until) {
            return;
        }
        let closed = RateLimit { provider: provider.to_owned(), model: model.to_owned(), until };
        let content = serde_json::to_vec(&closed).expect("a rate limit has a JSON form");
        let write = || {
            std::fs::create_dir_all(&self.directory)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            std::io::Write::write_all(&mut file, &content)?;
            file.persist(self.file(provider, model))?;
            Ok::<_, std::io::Error>(())
        };
        // Without the file, each run learns of the limit by a request of its own.
        if let Err(error) = write() {
            tracing::warn!(provider, %error, "a rate limit of a provider is not kept");
        }
    }

    /// The same for all its models: an agent does not say which of them it uses.
    pub(crate) fn close_all(&self, provider: &str, until: DateTime<Utc>) {
        self.close(provider, ALL, until);
    }

    /// The end of the rate limit of a model.
    pub(crate) fn until(&self, provider: &str, model: &str) -> Option<DateTime<Utc>> {
        self.of(provider, model).max(self.of(provider, ALL))
    }

    fn of(&self, provider: &str, model: &str) -> Option<DateTime<Utc>> {
        let file = self.file(provider, model);
        let content = placed::read(&file, Links::Refused, LONGEST).ok()??;
        let closed: RateLimit = serde_json::from_slice(&content).ok()?;
        (closed.provider == provider && closed.model == model).then_some(closed.until)
    }

    fn file(&self, provider: &str, model: &str) -> PathBuf {
        let digest = blake3::hash(format!("{provider}\n{model}").as_bytes()).to_hex();
        self.directory.join(&digest[..16])
    }
}

/// A time in the text of a failure.
pub(crate) fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn a_limit_that_the_provider_states_holds_in_the_next_process() {
        let place = tempfile::tempdir().unwrap();
        let stated_limits = || RateLimits::new(place.path());
        stated_limits().close("p", "m", at(100));
        stated_limits().close("p", "m", at(50));
        assert_eq!(stated_limits().until("p", "m"), Some(at(100)));
        assert_eq!(stated_limits().until("p", "other"), None);
        stated_limits().close_all("p", at(200));
        assert_eq!(stated_limits().until("p", "m"), Some(at(200)));
        assert_eq!(stated_limits().until("p", "other"), Some(at(200)));
        assert_eq!(stated_limits().until("other", "m"), None);
    }
}
