//! Tests of files of runs: round trips, and every kind of damage.
