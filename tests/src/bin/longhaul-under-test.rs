//! The command `longhaul` once more, so that the tests of this package can start it: cargo tells a
//! test only where the binaries of its own package are.

fn main() -> std::process::ExitCode {
    longhaul_cli::main()
}
