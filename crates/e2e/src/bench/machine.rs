//! The machine that measures.

use std::fs;

use serde::{Deserialize, Serialize};

/// What figures depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of its cores there are.
    pub cores: usize,
    /// GiB of memory.
    pub memory: u64,
    /// The kernel.
    pub kernel: String,
    /// How much else ran when it began: the load of the last minute.
    pub load: String,
}

impl Machine {
    /// This machine, as reported by the kernel.
    pub(super) fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
            line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned())).unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory: u64 = memory.trim_end_matches("kB").trim().parse().unwrap_or_default();
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: memory.div_ceil(1 << 20),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}
