//! Processes the bench starts: their output, their processor time, their memory, their end.

mod child;
mod cpu;
mod memory;
mod output;

pub(crate) use child::Process;
pub(crate) use cpu::cpu_seconds;
pub(crate) use memory::settled;
