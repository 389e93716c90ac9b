//! Reading what one of Velero's links leads to. No redirect is followed: the link names the storage, and nothing else does.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Collected, Limited};
use kube::client::Body;
use kube::{Client, Config};

use crate::error::chain;

/// How many bytes of an answer that is not the file are read: an S3 refusal has a few hundred.
const LONGEST_REFUSAL: usize = 16 * 1024;

/// Which authorities of certificates to trust.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The system's.
    #[default]
    System,
    /// Those in a file.
    File(PathBuf),
    /// Public ones and these, in PEM: for a container, which has no files of a system.
    PublicAnd(Option<Vec<u8>>),
    /// Any, without a check.
    Any,
}

/// Why a link led nowhere.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It is no link, or names no host.
    #[error("Velero's link is not one")]
    NotALink,
    /// Nobody answered.
    #[error("the storage at {host} cannot be reached: {why}")]
    Unreachable {
        /// The host.
        host: String,
        /// What went wrong with the connection.
        why: String,
    },
    /// The answer is not the file.
    #[error("the storage at {host} answered {status}{code}")]
    Refused {
        /// The host.
        host: String,
        /// The status.
        status: StatusCode,
        /// The one word of an S3 answer that says what is wrong, in brackets. The rest may hold keys.
        code: String,
    },
    /// There is more than was wanted.
    #[error("the file is larger than {0} bytes")]
    TooLarge(usize),
    /// The storage broke off.
    #[error("the storage at {host} broke off: {why}")]
    BrokenOff {
        /// The host.
        host: String,
        /// What went wrong with the connection.
        why: String,
    },
    /// It cannot be uncompressed: a part is missing, or it is no gzip.
    #[error("the file is not whole, or is not compressed with gzip")]
    Torn,
    /// It was not read to its end in time.
    #[error("reading the file took too long")]
    TooSlow,
}

/// A link that whoever has it can follow: it is never shown.
pub struct Link {
    uri: Uri,
    host: String,
}

impl Link {
    /// The link with this address.
    pub fn new(url: &str) -> Result<Self, LinkError> {
        let uri = url.parse::<Uri>().map_err(|_| LinkError::NotALink)?;
        let host = uri.authority().map(ToString::to_string).ok_or(LinkError::NotALink)?;
        Ok(Self { uri, host })
    }

    /// The host that it leads to.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The answer, if it is the file.
    pub async fn open(&self, trust: &Trust) -> Result<Response<Body>, LinkError> {
        let unreachable = |why: String| LinkError::Unreachable { host: self.host.clone(), why };
        let config = self.config(trust)?;
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let request = Request::get(target).body(Body::empty()).map_err(|_| LinkError::NotALink)?;
        let client = Client::try_from(config).map_err(|error| unreachable(chain(&error).to_string()))?;
        let response = client.send(request).await.map_err(|error| unreachable(root(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = Limited::new(response.into_body(), LONGEST_REFUSAL).collect().await;
        let text = text.map(Collected::to_bytes).unwrap_or_default();
        let code = code(&String::from_utf8_lossy(&text));
        Err(LinkError::Refused { host: self.host.clone(), status, code })
    }

    fn config(&self, trust: &Trust) -> Result<Config, LinkError> {
        let mut config = Config::new(self.uri.clone());
        config.cluster_url = Uri::builder()
            .scheme(self.uri.scheme_str().unwrap_or("https"))
            .authority(self.host.as_str())
            .path_and_query("/")
            .build()
            .map_err(|_| LinkError::NotALink)?;
        match trust {
            Trust::System => {}
            Trust::File(file) => config.root_cert_file = Some(file.clone()),
            Trust::PublicAnd(pem) => config.root_cert = Some(authorities(pem.as_deref().unwrap_or_default())),
            Trust::Any => config.accept_invalid_certs = true,
        }
        // What is in the bucket is wanted as it is.
        config.disable_compression = true;
        config.default_retry = false;
        Ok(config)
    }

    /// The bytes of a file, which is not larger than this.
    pub async fn read(&self, trust: &Trust, most: usize) -> Result<Vec<u8>, LinkError> {
        let mut body = self.open(trust).await?.into_body();
        let mut file = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| LinkError::BrokenOff {
                host: self.host.clone(),
                why: chain(&error).to_string(),
            })?;
            if let Ok(bytes) = frame.into_data() {
                file.extend_from_slice(&bytes);
            }
            if file.len() > most {
                return Err(LinkError::TooLarge(most));
            }
        }
        Ok(file)
    }
}

/// Uncompressed, if that is not larger than this.
pub(crate) fn inflated(compressed: &[u8], most: usize) -> Result<Vec<u8>, LinkError> {
    let mut text = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = MultiGzDecoder::new(compressed).take(limit).read_to_end(&mut text);
    match read {
        Ok(length) if length <= most => Ok(text),
        Ok(_) => Err(LinkError::TooLarge(most)),
        Err(_) => Err(LinkError::Torn),
    }
}

/// Passes on the lines of a compressed text one by one, if it is not larger than this uncompressed. Of a line that is longer
/// than `longest` nothing is passed on. Returns how many such lines there are. `take` returns whether there is time for
/// more.
pub(crate) fn inflated_lines(
    compressed: &[u8],
    most: usize,
    longest: usize,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<usize, LinkError> {
    let limit = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let mut text = BufReader::new(MultiGzDecoder::new(compressed));
    let (mut total, mut too_long, mut is_begun) = (0, 0, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = text.by_ref().take(limit(longest)).read_until(b'\n', &mut line);
        let read = read.map_err(|_| LinkError::Torn)?;
        if read == 0 {
            return Ok(too_long);
        }
        total += read;
        if total > most {
            return Err(LinkError::TooLarge(most));
        }
        let is_end = read < longest || line.ends_with(b"\n");
        match (is_begun, is_end) {
            (false, true) if !take(&line) => return Err(LinkError::TooSlow),
            (false, false) => too_long += 1,
            (false, true) | (true, _) => {}
        }
        is_begun = !is_end;
    }
}

/// Public authorities, and those in a PEM file.
fn authorities(pem: &[u8]) -> Vec<Vec<u8>> {
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let own = CertificateDer::pem_slice_iter(pem).flatten();
    let public = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
    own.chain(public).map(|certificate| certificate.to_vec()).collect()
}

/// The innermost cause, which says most.
fn root(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn code(text: &str) -> String {
    let word =
        text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(word, _)| word);
    word.map_or_else(String::new, |word| format!(" ({word})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{Link, LinkError, Trust, authorities, code, inflated, inflated_lines};

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Answers one request with these bytes, and returns the address.
    async fn answers(answer: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
        });
        format!("http://{address}/bucket/file?signature=x")
    }

    fn ok(body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn a_file_is_read_and_one_that_is_too_large_is_not() {
        let link = Link::new(&answers(ok(&compressed(b"{}"))).await).unwrap();
        let file = link.read(&Trust::System, 100).await.unwrap();
        assert_eq!(inflated(&file, 100).unwrap(), b"{}");
        let link = Link::new(&answers(ok(&[0; 200])).await).unwrap();
        assert!(matches!(link.read(&Trust::System, 100).await, Err(LinkError::TooLarge(100))));
    }

    #[tokio::test]
    async fn no_redirect_is_followed() {
        let target = answers(ok(&compressed(b"{}"))).await;
        let moved = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let link = Link::new(&answers(moved.into_bytes()).await).unwrap();
        let found = link.read(&Trust::System, 100).await;
        assert!(matches!(found, Err(LinkError::Refused { status, .. }) if status == 302), "{found:?}");
    }

    /// What is no file may have any size, and only its first bytes are of interest.
    #[tokio::test]
    async fn a_refusal_without_end_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/bucket/file", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let head = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 9999999999\r\n\r\n";
            let _ = stream.write_all(head).await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        });
        let link = Link::new(&url).unwrap();
        let found = tokio::time::timeout(Duration::from_mins(1), link.open(&Trust::System)).await;
        let found = found.expect("an answer, however long the refusal is").map(drop);
        assert!(matches!(found, Err(LinkError::Refused { status, .. }) if status == 403), "{found:?}");
    }

    /// A small file that becomes a large one would fill the memory.
    #[test]
    fn a_bomb_is_not_inflated() {
        let bomb = compressed(&vec![0; 10_000_000]);
        assert!(bomb.len() < 20_000);
        assert!(matches!(inflated(&bomb, 1_000_000), Err(LinkError::TooLarge(_))));
    }

    #[test]
    fn what_is_torn_or_no_gzip_is_not_called_too_large() {
        let whole = compressed(b"{}");
        for torn in [&whole[..whole.len() - 4], &whole[..10], b"{}"] {
            assert!(matches!(inflated(torn, 100), Err(LinkError::Torn)), "{torn:?}");
        }
    }

    #[tokio::test]
    async fn a_storage_that_breaks_off_is_not_called_too_large() {
        let mut answer = ok(&compressed(b"{}"));
        answer.pop();
        let url = answers(answer).await;
        let read = Link::new(&url).unwrap().read(&Trust::System, 100).await.unwrap_err();
        assert!(matches!(read, LinkError::BrokenOff { .. }), "{read:?}");
        assert!(!read.to_string().contains("signature"), "a link is not shown: {read}");
    }

    #[test]
    fn lines_are_passed_on_one_by_one_and_none_that_is_too_long() {
        let lines = |text: &[u8], most| {
            let mut lines = Vec::new();
            let take = |line: &[u8]| {
                lines.push(String::from_utf8_lossy(line).trim_end().to_owned());
                true
            };
            inflated_lines(&compressed(text), most, 8, take).map(|too_long| (lines, too_long))
        };
        let (passed, too_long) =
            lines(b"one\nsevens.\n\n0123456789012345678901\neight...\nend", 100).unwrap();
        assert_eq!(passed, ["one", "sevens.", "", "end"]);
        assert_eq!(too_long, 2);
        assert!(matches!(lines(&[b'\n'; 101], 100), Err(LinkError::TooLarge(100))));
        let bomb = compressed(&vec![0; 10_000_000]);
        let read = inflated_lines(&bomb, 1_000_000, 1000, |_| panic!("nothing is a line"));
        assert!(matches!(read, Err(LinkError::TooLarge(_))));
        let torn = compressed(b"one\n");
        let read = inflated_lines(&torn[..torn.len() - 4], 100, 8, |_| true);
        assert!(matches!(read, Err(LinkError::Torn)), "{read:?}");
        let mut many = 0;
        let two = |_: &[u8]| {
            many += 1;
            many < 2
        };
        let read = inflated_lines(&compressed(b"one\ntwo\nthree\n"), 100, 8, two);
        assert!(matches!(read, Err(LinkError::TooSlow)) && many == 2, "{read:?}");
    }

    #[test]
    fn only_the_code_of_an_answer_is_shown() {
        let answer = "<Error><Code>AccessDenied</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(code(answer), " (AccessDenied)");
        assert_eq!(code("<html>"), "");
    }

    #[test]
    fn public_authorities_are_known_without_any_file() {
        assert!(authorities(b"").len() > 50);
    }
}
