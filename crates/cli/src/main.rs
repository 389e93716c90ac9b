//! `kubectl-nacre`, the program on a laptop.

use clap::Parser;

/// Backup and restore for namespace owners.
#[derive(Parser)]
#[command(name = "kubectl-nacre", bin_name = "kubectl nacre", version, about)]
struct Args {}

fn main() {
    Args::parse();
}
