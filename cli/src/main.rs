//! The command `longhaul`.

/// Returns freed memory to the system; the lists and logs of large projects are read in one piece.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    longhaul_cli::main()
}
