//! Processes the bench starts: their output, their processor time, their memory, their end.

mod child;
mod cpu;
mod family;
mod memory;
mod output;

pub(crate) use child::Process;
pub(crate) use cpu::{cpu_seconds, own_cpu_seconds};
pub(crate) use family::Family;
pub(crate) use memory::{settled, settled_sum};
