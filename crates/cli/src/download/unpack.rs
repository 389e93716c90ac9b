//! Unpacking what a tenant's bucket holds: no more than a limit, and nothing that a terminal would obey.

use std::io::{self, Write};

/// Passes on so many bytes and no more: a few kilobytes can be packed gigabytes.
pub(super) struct Bounded<W> {
    inner: W,
    left: u64,
    limit: u64,
}

impl<W: Write> Bounded<W> {
    pub(super) const fn new(inner: W, limit: u64) -> Self {
        Self { inner, left: limit, limit }
    }

    pub(super) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            let limit = indicatif::HumanBytes(self.limit);
            return Err(io::Error::other(format!("unpacked it is larger than {limit}")));
        };
        self.inner.write_all(bytes)?;
        self.left = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Passes on text, with what a terminal would obey written out: the control characters but for line ends and tabs, and
/// those that UTF-8 begins with the byte C2.
pub(super) struct Printable<W> {
    inner: W,
    /// The byte C2 came last, and is not passed on yet.
    begun: bool,
}

const BEGIN: u8 = 0xc2;

impl<W: Write> Printable<W> {
    pub(super) const fn new(inner: W) -> Self {
        Self { inner, begun: false }
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if std::mem::take(&mut self.begun) {
                if (0x80..0xa0).contains(&byte) {
                    write!(out, "\\x{byte:02x}")?;
                    continue;
                }
                out.push(BEGIN);
            }
            match byte {
                b'\n' | b'\t' => out.push(byte),
                0..0x20 | 0x7f => write!(out, "\\x{byte:02x}")?,
                BEGIN => self.begun = true,
                _ => out.push(byte),
            }
        }
        self.inner.write_all(&out)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, MultiGzDecoder};

    use super::*;

    /// H13: terminal escapes, and gigabytes of zeros, in a log that comes from a tenant's bucket
    #[test]
    fn h13_a_log_cannot_command_the_terminal() {
        let mut out = Printable::new(Vec::new());
        let hostile = "level=info \u{1b}]0;owned\u{7} \u{9b}2J \u{1b}[8m\rhidden\nnaïve © ok\t.\n";
        // In pieces, so that a character is torn apart.
        for byte in hostile.as_bytes() {
            out.write_all(&[*byte]).unwrap();
        }
        let text = String::from_utf8(out.inner).unwrap();
        assert_eq!(text, "level=info \\x1b]0;owned\\x07 \\x9b2J \\x1b[8m\\x0dhidden\nnaïve © ok\t.\n");
    }

    #[test]
    fn h13_a_packed_bomb_ends_at_the_limit() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..8 {
            packed.write_all(&vec![0; 1 << 20]).unwrap();
        }
        let packed = packed.finish().unwrap();
        assert!(packed.len() < 1 << 17, "it is small: {}", packed.len());
        let mut unpacked = MultiGzDecoder::new(Bounded::new(Vec::new(), 1 << 20));
        let error = unpacked.write_all(&packed).and_then(|()| unpacked.try_finish()).unwrap_err();
        assert!(error.to_string().contains("larger than 1.00 MiB"), "{error}");
        assert!(unpacked.get_ref().inner.len() <= 1 << 20);
        // Without the limit all of it is unpacked.
        let mut open = MultiGzDecoder::new(Bounded::new(Vec::new(), u64::MAX));
        open.write_all(&packed).unwrap();
        assert_eq!(open.finish().unwrap().into_inner().len(), 8 << 20);
    }
}
