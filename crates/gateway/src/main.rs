//! The gateway daemon.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    tidegate_gateway::daemon::main(std::env::args_os());
}
