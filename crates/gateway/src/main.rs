//! The gateway daemon.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match tidegate_gateway::daemon::main(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            // Nobody is left to be told if this fails.
            let _ = writeln!(std::io::stderr(), "tidegate-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}
