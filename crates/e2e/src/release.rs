//! Releases of nacre on a node: this one, and the one before it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use image::nacre;

use crate::{NodeCluster, command_line, deploy};

/// A folder of the release before: `nacre`, `kubectl-nacre` and `deploy`. `tools/previous.sh` makes it of a commit.
const PREVIOUS: &str = "NACRE_PREVIOUS";
/// The name of its image.
const IMAGE: &str = "localhost/nacre:previous";

/// What a release consists of.
pub struct Release {
    /// Its image, loaded on the node.
    pub image: String,
    /// Its command line.
    pub command_line: PathBuf,
    /// Its manifests.
    pub deploy: PathBuf,
    /// Whether it was built from other sources than this one.
    pub is_other: bool,
}

impl NodeCluster {
    /// This release.
    pub fn this_release(&self) -> Result<Release> {
        let image = self.image.clone();
        Ok(Release { image, command_line: command_line()?, deploy: deploy(""), is_other: false })
    }

    /// The release before: of `NACRE_PREVIOUS`, else this one under another name.
    pub async fn previous_release(&self) -> Result<Release> {
        let node = self.site.node()?;
        let Some(folder) = std::env::var_os(PREVIOUS).filter(|folder| !folder.is_empty()).map(PathBuf::from)
        else {
            node.tag_image(&self.image, IMAGE).await?;
            return Ok(Release { image: IMAGE.to_owned(), ..self.this_release()? });
        };
        ensure!(folder.join("deploy").is_dir(), "{} has no folder deploy", folder.display());
        let archive = node.folder().join("previous.tar");
        nacre::test_image(IMAGE, &folder)?.write(&archive)?;
        node.load_image(&archive).await?;
        let command_line = folder.join("kubectl-nacre");
        Ok(Release { image: IMAGE.to_owned(), command_line, deploy: folder.join("deploy"), is_other: true })
    }
}
