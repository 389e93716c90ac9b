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

/// The variable with the uid of the pod: a pod that restarted after it had written is not one that found data.
pub(super) const WRITER: &str = "NACRE_POD_UID";
/// So much that it is not one block, and little enough for any cluster.
const BYTES: u64 = 8 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Volume {
    /// Where the volume is.
    folder: PathBuf,

    /// The uid of the pod.
    #[arg(long, env = WRITER, default_value = "")]
    writer: String,
}

/// What the pod found in its volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// It was empty, and this pod filled it with bytes of this checksum.
    Wrote(String),
    /// It has bytes of this checksum, and another pod wrote them.
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
    say(&look(&args.folder, &args.writer, &mut File::open("/dev/urandom")?)?.line())?;
    interrupted().await;
    Ok(Outcome::Good)
}

/// Fills an empty volume. One that is not empty is left as it is. A container that restarts after it has written, and
/// reads what it wrote, prints the same line again: only the log of the last start is read.
fn look(folder: &Path, writer: &str, random: &mut impl Read) -> Result<Content> {
    let (path, written_by) = (folder.join("bytes"), folder.join("writer"));
    if path.exists() {
        let own = !writer.is_empty() && std::fs::read_to_string(written_by).is_ok_and(|uid| uid == writer);
        let checksum = checksum(&path)?;
        return Ok(if own { Content::Wrote(checksum) } else { Content::Found(checksum) });
    }
    std::fs::write(&written_by, writer).with_context(|| format!("writing to {}", folder.display()))?;
    // Renamed when it is whole, so that a restart in between does not count as a find.
    let partial = folder.join("bytes.partial");
    let mut file = File::create(&partial)?;
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
        let Content::Wrote(first) = look(folder.path(), "pod-1", &mut io::repeat(1)).unwrap() else {
            panic!("the volume was empty")
        };
        let found = |writer: &str| look(folder.path(), writer, &mut io::repeat(2)).unwrap();
        assert_eq!(found("pod-2"), Content::Found(first.clone()));
        std::fs::write(folder.path().join("bytes"), "others").unwrap();
        let Content::Found(other) = found("pod-2") else { panic!("the volume is not empty") };
        assert_ne!(other, first);
    }

    #[test]
    fn a_container_that_restarts_after_it_has_written_says_so_again() {
        let folder = tempfile::tempdir().unwrap();
        let look = |writer: &str, bytes: u8| look(folder.path(), writer, &mut io::repeat(bytes)).unwrap();
        // Killed while it wrote: nothing is there yet.
        std::fs::write(folder.path().join("bytes.partial"), "half").unwrap();
        std::fs::write(folder.path().join("writer"), "pod-1").unwrap();
        let written = look("pod-1", 1);
        assert!(matches!(written, Content::Wrote(_)), "{written:?}");
        assert_eq!((look("pod-1", 2), look("pod-1", 3)), (written.clone(), written.clone()));
        // The pod that a restore makes has another uid; one of an older version has none.
        let Content::Wrote(checksum) = written else { panic!("see above") };
        assert_eq!(look("pod-2", 4), Content::Found(checksum.clone()));
        assert_eq!(look("", 5), Content::Found(checksum));
    }

    #[test]
    fn the_log_shows_what_was_found() {
        let found = Content::Found("abc".to_owned());
        assert_eq!(Content::in_log(&format!("noise\n{}", found.line())), Some(found));
        assert_eq!(Content::in_log("noise\n"), None);
    }
}
