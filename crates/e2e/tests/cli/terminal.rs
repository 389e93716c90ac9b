//! A terminal: a program that writes to one, and what a person sees on it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bed::eventually;
use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

const ROWS: u16 = 60;
const COLUMNS: u16 = 100;
const TIMEOUT: Duration = Duration::from_mins(2);

/// A program on a terminal, which is 100 columns wide unless a story wants another.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<vt100::Parser>>,
    columns: u16,
}

impl Terminal {
    /// Starts `kubectl nacre` on a terminal.
    pub(crate) fn start(kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        Self::of_width(COLUMNS, kubeconfig, arguments)
    }

    /// The same on a terminal of this width.
    pub(crate) fn of_width(columns: u16, kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        let name = ptsname(&near, Vec::new())?;
        let far = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits().cast_signed())
            .open(std::ffi::OsStr::from_bytes(name.as_bytes()))?;
        tcsetwinsize(&far, Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        let child = Command::new(e2e::command_line()?)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::from(OwnedFd::from(far.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(far.try_clone()?)))
            .stderr(Stdio::from(OwnedFd::from(far)))
            .spawn()?;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, columns, 0)));
        let (mut near, seen) = (File::from(near), Arc::clone(&screen));
        let keyboard = near.try_clone()?;
        // Reading fails when the program has gone: then everything has been seen.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = near.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..length]);
            }
        });
        Ok(Self { child, keyboard, screen, columns })
    }

    /// What is on the screen now.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The rows that went on in the next one because they were too long.
    pub(crate) fn too_long(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap();
        let screen = parser.screen();
        let rows = (0..ROWS).zip(screen.rows(0, self.columns));
        rows.filter(|(row, _)| screen.row_wrapped(*row)).map(|(_, text)| text).collect()
    }

    /// Whether any of it is in colour.
    pub(crate) fn is_coloured(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        let cells = (0..ROWS).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        let cells = cells.filter_map(|(row, column)| parser.screen().cell(row, column).cloned());
        cells.into_iter().any(|cell| cell.fgcolor() != vt100::Color::Default)
    }

    /// Waits until the screen shows these words, and returns the line they are in.
    pub(crate) async fn shows(&self, words: &str) -> Result<String> {
        eventually(&format!("the terminal to show {words:?}"), TIMEOUT, async || {
            let text = self.text();
            text.lines().find(|line| line.contains(words)).map(|line| line.trim_end().to_owned()).ok_or(text)
        })
        .await
    }

    /// Types this.
    pub(crate) fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.keyboard.write_all(text.as_bytes())?)
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) -> Result<()> {
        bed::send_signal(self.child.id(), "INT")
    }

    /// Waits until the program has ended, and returns its exit code.
    pub(crate) async fn ends(&mut self) -> Result<i32> {
        let child = &mut self.child;
        let status = eventually("the program to end", TIMEOUT, async || {
            child.try_wait().map_err(|error| error.to_string())?.ok_or_else(|| "it runs".to_owned())
        })
        .await?;
        // Give the reader the rest.
        tokio::task::yield_now().await;
        status.code().context("an exit code")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Gone already, mostly.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
