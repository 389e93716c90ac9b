//! A tar archive of whatever entries one likes: Velero's own tools, and those of others, write only tidy ones.

use std::io::Write;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Types of entries, as the format numbers them.
pub(super) const FILE: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const LINK: u8 = b'2';
pub(super) const DEVICE: u8 = b'3';
pub(super) const FOLDER: u8 = b'5';
pub(super) const PIPE: u8 = b'6';
const LONG_NAME: u8 = b'L';

const BLOCK: usize = 512;

#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, contents: &[u8]) {
        self.entry(FILE, name, "", contents);
    }

    /// Adds an entry of any type; links point to `target`.
    pub(super) fn entry(&mut self, kind: u8, name: &str, target: &str, contents: &[u8]) {
        if name.len() >= 100 {
            let mut long = name.as_bytes().to_vec();
            long.push(0);
            self.write(LONG_NAME, "././@LongLink", "", &long);
        }
        self.write(kind, name, target, contents);
    }

    fn write(&mut self, kind: u8, name: &str, target: &str, contents: &[u8]) {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, length: usize, text: &[u8]| {
            let length = text.len().min(length);
            header[at..at + length].copy_from_slice(&text[..length]);
        };
        put(0, 99, name.as_bytes());
        put(100, 8, b"0000644\0");
        put(108, 8, b"0000000\0");
        put(116, 8, b"0000000\0");
        put(124, 12, format!("{:011o}\0", contents.len()).as_bytes());
        put(136, 12, b"00000000000\0");
        put(148, 8, b"        ");
        put(156, 1, &[kind]);
        put(157, 100, target.as_bytes());
        put(257, 8, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    /// The packed archive.
    pub(super) fn packed(mut self) -> Result<Vec<u8>> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        packed(&self.bytes)
    }
}

pub(super) fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
