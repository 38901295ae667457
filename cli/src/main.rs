//! The command `longhaul`.

fn main() -> std::process::ExitCode {
    longhaul_cli::main()
}
