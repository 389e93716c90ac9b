//! Ports for the programs that are started here.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

/// Below those that the kernel gives to whoever connects or asks for any port: between being found free and being
/// taken by the program it is for, nobody comes upon one of these by chance.
const OURS: Range<u16> = 10_000..32_000;
/// Distance between the port ranges of test programs that run at the same time.
const APART: u32 = 331;

/// How many this program has looked at.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// Ports that were free a moment ago, and are given to nobody else in this program.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free_port()?;
    }
    Ok(ports)
}

fn free_port() -> Result<u16> {
    let first = std::process::id().wrapping_mul(APART);
    for _ in OURS {
        let step = LOOKED_AT.fetch_add(1, Ordering::Relaxed);
        let at = first.wrapping_add(step) % u32::from(OURS.end - OURS.start);
        // It is less than the length of a range of ports.
        let port = OURS.start + u16::try_from(at)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("of the ports from {} to {} none is free", OURS.start, OURS.end - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn a_port_is_given_once_and_never_one_that_is_taken() {
        let first = free_port().unwrap();
        let _held: Vec<_> =
            (1..4).filter_map(|more| TcpListener::bind((Ipv4Addr::LOCALHOST, first + more)).ok()).collect();
        let ports: BTreeSet<u16> = free_ports::<100>().unwrap().into();
        assert_eq!(ports.len(), 100);
        assert!(
            (0..4).all(|more| !ports.contains(&(first + more))),
            "{first} and the next are taken: {ports:?}"
        );
    }

    #[test]
    fn the_kernel_gives_away_none_of_them() {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let lowest: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        assert!(OURS.end <= lowest, "the kernel gives away ports from {lowest}");
    }
}
