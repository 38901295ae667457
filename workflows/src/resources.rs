//! Resources that sessions use.

use serde::{Deserialize, Serialize};

/// Amounts of resources of sessions: spent, reserved or available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Answers of the model.
    pub turns: u32,
    /// Tokens that are not read from a cache.
    pub tokens: u64,
    /// Money in millionths of a US dollar.
    pub cost_micros: u64,
    /// Time of sessions in milliseconds, without waits for people.
    pub time_ms: u64,
}

impl Resources {
    /// Whether there are none.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// The rest after this use.
    #[must_use]
    pub fn minus(self, used: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(used.turns),
            tokens: self.tokens.saturating_sub(used.tokens),
            cost_micros: self.cost_micros.saturating_sub(used.cost_micros),
            time_ms: self.time_ms.saturating_sub(used.time_ms),
        }
    }

    /// The lesser of each amount.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            turns: self.turns.min(other.turns),
            tokens: self.tokens.min(other.tokens),
            cost_micros: self.cost_micros.min(other.cost_micros),
            time_ms: self.time_ms.min(other.time_ms),
        }
    }

    /// One of equal parts.
    #[must_use]
    pub fn divided(self, parts: u32) -> Self {
        let parts = parts.max(1);
        Self {
            turns: self.turns / parts,
            tokens: self.tokens / u64::from(parts),
            cost_micros: self.cost_micros / u64::from(parts),
            time_ms: self.time_ms / u64::from(parts),
        }
    }

    /// The resource that is used up.
    pub fn lacks(&self) -> Option<Resource> {
        let amounts = [
            (Resource::Turns, u64::from(self.turns)),
            (Resource::Tokens, self.tokens),
            (Resource::Cost, self.cost_micros),
            (Resource::Time, self.time_ms),
        ];
        amounts.into_iter().find(|(_, amount)| *amount == 0).map(|(resource, _)| resource)
    }
}

impl std::ops::AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        self.time_ms = self.time_ms.saturating_add(other.time_ms);
    }
}

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Answers of the model.
    Turns,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
    /// Time.
    Time,
}

impl Resource {
    /// Its key in the settings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
        }
    }

    /// An amount of it, for people.
    pub fn amount(self, amounts: &Resources) -> String {
        match self {
            Self::Turns => format!("{} turns", amounts.turns),
            Self::Tokens => format!("{} tokens", amounts.tokens),
            Self::Cost => format!("{} USD", usd(amounts.cost_micros)),
            Self::Time => format!("{} s of sessions", amounts.time_ms / 1000),
        }
    }
}

/// An amount of money in US dollars, with cents, or with all digits if it has fractions of cents.
pub fn usd(micros: u64) -> String {
    let whole = micros / 1_000_000;
    let rest = micros % 1_000_000;
    if rest.is_multiple_of(10_000) {
        return format!("{whole}.{:02}", rest / 10_000);
    }
    format!("{whole}.{rest:06}").trim_end_matches('0').to_owned()
}
