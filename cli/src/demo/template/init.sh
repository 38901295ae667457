#!/bin/sh
# Makes a fresh work tree ready. Longhaul runs it once in each.
set -eu
cargo --version
rustc --version
cargo fetch --quiet --offline --locked
echo "Run it with 'cargo run', test it with 'cargo test --test acceptance'."
