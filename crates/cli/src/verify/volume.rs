//! What runs in the pod of `verify`: it fills an empty volume with random bytes, and prints the checksum of what is there.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use ring::digest::{Context, SHA256};

use crate::{
    interrupt::interrupted,
    output::{Outcome, say},
};

/// So much that it is not one block, and little enough for any cluster.
const BYTES: u64 = 8 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Volume {
    /// Where the volume is.
    folder: PathBuf,
}

/// What the pod found in its volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// It was empty, and was filled with bytes of this checksum.
    Wrote(String),
    /// It has bytes of this checksum.
    Found(String),
}

impl Content {
    /// Reads it from the pod's log.
    pub(super) fn in_log(log: &str) -> Option<Self> {
        log.lines().find_map(|line| match line.split_once(' ')? {
            ("wrote", checksum) => Some(Self::Wrote(checksum.to_owned())),
            ("found", checksum) => Some(Self::Found(checksum.to_owned())),
            _ => None,
        })
    }

    fn line(&self) -> String {
        match self {
            Self::Wrote(checksum) => format!("wrote {checksum}\n"),
            Self::Found(checksum) => format!("found {checksum}\n"),
        }
    }
}

/// Prints one line, and stays until the pod ends.
pub(crate) async fn run(args: &Volume) -> Result<Outcome> {
    say(&look(&args.folder, &mut File::open("/dev/urandom")?)?.line())?;
    interrupted().await;
    Ok(Outcome::Good)
}

/// Fills an empty volume. One that is not empty is left as it is.
fn look(folder: &Path, random: &mut impl Read) -> Result<Content> {
    let path = folder.join("bytes");
    if path.exists() {
        return Ok(Content::Found(checksum(&path)?));
    }
    // Renamed when it is whole, so that a restart in between does not count as a find.
    let partial = folder.join("bytes.partial");
    let mut file = File::create(&partial).with_context(|| format!("writing to {}", folder.display()))?;
    io::copy(&mut random.take(BYTES), &mut file)?;
    file.sync_all()?;
    std::fs::rename(&partial, &path)?;
    Ok(Content::Wrote(checksum(&path)?))
}

fn checksum(path: &Path) -> Result<String> {
    let mut context = Context::new(&SHA256);
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => context.update(&buffer[..length]),
        }
    }
    Ok(planner::hex(context.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_volume_is_filled_once_and_other_bytes_have_another_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let Content::Wrote(first) = look(folder.path(), &mut io::repeat(1)).unwrap() else {
            panic!("the volume was empty")
        };
        assert_eq!(look(folder.path(), &mut io::repeat(2)).unwrap(), Content::Found(first.clone()));
        std::fs::write(folder.path().join("bytes"), "others").unwrap();
        let Content::Found(other) = look(folder.path(), &mut io::repeat(2)).unwrap() else {
            panic!("the volume is not empty")
        };
        assert_ne!(other, first);
    }

    #[test]
    fn the_log_shows_what_was_found() {
        let found = Content::Found("abc".to_owned());
        assert_eq!(Content::in_log(&format!("noise\n{}", found.line())), Some(found));
        assert_eq!(Content::in_log("noise\n"), None);
    }
}
