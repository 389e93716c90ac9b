//! `image`: makes nacre's image from programs that are built already. `make image` builds them first.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use image::nacre;
use image::release::Release;

/// nacre's image, without a registry and without a daemon.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the image as an archive that podman, docker, skopeo and containerd load, and print its size
    Archive {
        /// The folder with the static programs
        #[arg(long)]
        programs: PathBuf,
        /// The name it is loaded under, with a tag
        #[arg(long, default_value = concat!("localhost/nacre:", env!("CARGO_PKG_VERSION")))]
        name: String,
        /// The programs are not static: add the shared libraries that they need. For a look around, not to ship
        #[arg(long)]
        with_libraries: bool,
        /// The archive to write
        to: PathBuf,
    },
    /// Write a whole release to an empty folder: archives, chart, manifests, bundle, documents and checksums
    Release {
        /// The folder with the static programs
        #[arg(long)]
        programs: PathBuf,
        /// The programs are not static. For a look at the packaging, not to ship
        #[arg(long)]
        with_libraries: bool,
        /// The commit that the programs were built from
        #[arg(long)]
        commit: String,
        /// The time of that commit, in seconds since 1970
        #[arg(long, env = "SOURCE_DATE_EPOCH")]
        time: u64,
        /// The tag of the commit
        #[arg(long)]
        tag: Option<String>,
        /// The folder to write to
        to: PathBuf,
    },
    /// Fill a folder with everything that is in the image, for builders that take it from there
    Root {
        /// The folder with the static programs
        #[arg(long)]
        programs: PathBuf,
        /// The folder to fill
        to: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even that cannot be written, the exit code must do.
            let _ = writeln!(io::stderr(), "image: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Archive { programs, name, with_libraries, to } => {
            let image = if with_libraries {
                nacre::test_image(&name, &programs)?
            } else {
                nacre::image(&name, &programs)?
            };
            image.write(&to)?;
            writeln!(io::stdout(), "{name}: {} in {}", size(&to)?, to.display())?;
            for (program, path) in &image.files {
                writeln!(io::stdout(), "  {}: {} before compression", path.display(), size(program)?)?;
            }
            Ok(())
        }
        Command::Release { programs, with_libraries, commit, time, tag, to } => {
            let release = Release { programs, with_libraries, commit, time, tag };
            for name in release.write(&to)? {
                writeln!(io::stdout(), "  {name}: {}", size(&to.join(&name))?)?;
            }
            Ok(())
        }
        Command::Root { programs, to } => nacre::image("root", &programs)?.fill(&to),
    }
}

fn size(file: &Path) -> Result<String> {
    let tenths = fs::metadata(file)?.len() * 10 / (1 << 20);
    Ok(format!("{}.{} MiB", tenths / 10, tenths % 10))
}
