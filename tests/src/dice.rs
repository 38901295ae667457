//! Numbers that look random and are the same for the same seed.

/// Marsaglia's xorshift: enough to choose places and times. The seed must not be zero.
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`; zero if there are none.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (sides.max(1) as u64)).unwrap_or(0)
    }
}
