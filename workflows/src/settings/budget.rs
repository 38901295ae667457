//! `[budget]`: the resources that all sessions of a project may use.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::resources::Resources;

use super::Seconds;

/// `[budget]`: for the project, since its first run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSettings {
    /// The most money, in US dollars, as far as the cost is known.
    pub cost: Usd,
    /// The most tokens that are not read from a cache, as far as they are counted.
    pub tokens: u64,
    /// The most time of all sessions, without waits for people.
    pub time: Seconds,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { cost: Usd::whole(1000), tokens: 2_000_000_000, time: Seconds(365 * 86_400) }
    }
}

impl BudgetSettings {
    /// As amounts; turns are not limited.
    pub fn resources(&self) -> Resources {
        Resources {
            turns: u32::MAX,
            tokens: self.tokens,
            cost_micros: self.cost.0,
            time_ms: self.time.millis(),
        }
    }
}

/// Money in millionths of a US dollar; in the settings a number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub u64);

impl Usd {
    /// Whole dollars.
    pub const fn whole(dollars: u64) -> Self {
        Self(dollars * 1_000_000)
    }
}

impl Serialize for Usd {
    #[expect(clippy::cast_precision_loss, reason = "amounts of money are below 2^52")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Usd {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the amount is checked to be in range"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if !(0.0..=1e9).contains(&dollars) {
            return Err(de::Error::custom(format!(
                "{dollars} is not an amount of US dollars, as 25 or 0.5 is"
            )));
        }
        Ok(Self((dollars * 1e6).round() as u64))
    }
}
