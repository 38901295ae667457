//! The command `longhaul`.

/// Returns freed memory to the system; the lists and logs of large projects are read in one piece.
/// Without huge pages: with them, waiting runs take twice the memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    longhaul_cli::main()
}
