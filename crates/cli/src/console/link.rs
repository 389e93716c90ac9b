//! The link that opens the console on a laptop. It holds a code, and the arguments of a program can be read by everybody on
//! the machine: so the browser is opened with a page that leads to the link, and that nobody else can read.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use maud::{DOCTYPE, html};
use tempfile::TempPath;

use super::login::secret;

/// A link that is valid once.
pub(super) struct Link {
    pub(super) code: String,
    port: u16,
    /// The page that leads to it. Its file goes with the link.
    page: Option<TempPath>,
}

impl Link {
    pub(super) fn new(port: u16) -> Result<Self> {
        Ok(Self::with_code(port, secret()?))
    }

    pub(super) const fn with_code(port: u16, code: String) -> Self {
        Self { code, port, page: None }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/start?code={}", self.port, self.code)
    }

    /// Writes the page that leads to it, and returns where it is.
    pub(super) fn write_page(&mut self) -> Result<&Path> {
        let url = self.url();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="refresh" content={ "0; url=" (url) };
                    title { "nacre" }
                }
                body { a href=(url) { "To the console" } }
            }
        };
        // Only the owner can read such a file.
        let mut file = tempfile::Builder::new().prefix("nacre-console-").suffix(".html").tempfile()?;
        file.write_all(page.0.as_bytes()).with_context(|| format!("writing {}", file.path().display()))?;
        Ok(self.page.insert(file.into_temp_path()))
    }
}

/// Opens a page in the browser; whether there was something to open it with.
pub(super) fn open(page: &Path) -> bool {
    opener(page).spawn().is_ok()
}

fn opener(page: &Path) -> Command {
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_on_the_machine_learns_the_code() {
        let mut link = Link::new(7000).unwrap();
        let code = link.code.clone();
        let page = link.write_page().unwrap().to_owned();
        let command = opener(&page);
        let given: Vec<_> = command.get_args().map(|one| one.to_string_lossy().into_owned()).collect();
        assert_eq!(given, [page.display().to_string()]);
        assert!(!given[0].contains(&code), "{given:?}");
        assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&page).unwrap();
        let to = format!("content=\"0; url=http://127.0.0.1:7000/start?code={code}\"");
        assert!(text.contains(&to), "{text}");
        drop(link);
        assert!(!page.exists(), "the file goes with the link");
    }
}
