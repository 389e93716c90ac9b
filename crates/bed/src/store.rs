//! An S3 store whose buckets are folders.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::binaries::Binaries;
use crate::ports::free_ports;
use crate::process::{Process, Program};
use crate::wait::eventually;

const TIMEOUT: Duration = Duration::from_mins(1);

/// The one region the store answers to.
pub const REGION: &str = "us-east-1";

/// The keys of the store's own account, which may do everything.
const ACCESS_KEY: &str = "bed-access-key";
const SECRET_KEY: &str = "bed-secret-key";

/// Puts a disk of so many bytes in place of the folder of buckets, empty ones of the same names in it, and starts the
/// rest of its arguments there. The disk is seen in a mount namespace of its own and ends with it; nobody needs to be
/// root outside.
const SMALL_DISK: &str = r#"
set -e
folder=$1 bytes=$2
shift 2
cd "$folder"
buckets=(*)
mount -t tmpfs -o "size=$bytes" small "$folder"
cd "$folder"
mkdir -- "${buckets[@]}"
exec "$@"
"#;

/// The running store.
#[derive(Debug)]
pub struct Store {
    process: Mutex<Option<Process>>,
    server: Program,
    program: PathBuf,
    url: String,
    buckets: PathBuf,
}

impl Store {
    pub(crate) async fn start(binaries: &Binaries, folder: &Path) -> Result<Self> {
        let [port] = free_ports()?;
        let buckets = buckets(folder);
        fs::create_dir_all(&buckets)?;
        let store = Self {
            process: Mutex::new(None),
            server: program(binaries, folder, port),
            program: binaries.path("versitygw"),
            url: format!("http://{}", address(port)),
            buckets,
        };
        store.go_up().await?;
        Ok(store)
    }

    /// Kills the store: nobody listens any more.
    pub fn go_down(&self) {
        drop(self.process.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Starts the store, again if it was killed.
    pub async fn go_up(&self) -> Result<()> {
        self.go_up_as(&self.server).await
    }

    /// Starts the store on an empty disk of so many bytes, after it was killed.
    pub async fn go_up_on_small_disk(&self, bytes: usize) -> Result<()> {
        let (folder, bytes) = (self.buckets.display().to_string(), bytes.to_string());
        let starter = ["unshare", "--mount", "--map-root-user", "bash", "-c", SMALL_DISK, "small disk"];
        let starter = starter.map(String::from).into_iter().chain([folder, bytes]);
        self.go_up_as(&self.server.clone().within(starter)).await
    }

    async fn go_up_as(&self, server: &Program) -> Result<()> {
        let process = server.start()?;
        let address = self.url.trim_start_matches("http://");
        let up = eventually("the S3 store to listen", TIMEOUT, async || TcpStream::connect(address));
        process.must_do(up).await?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
        Ok(())
    }

    /// Where S3 is spoken, for `s3Url`; path style only.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The root account's keys as an AWS credentials file, as Velero's Secrets hold it.
    pub fn credentials(&self) -> String {
        root_credentials()
    }

    /// Opens another account that may do everything, and returns its keys in the same form.
    pub async fn open_account(&self, name: &str) -> Result<String> {
        let secret = format!("{name}-secret-key");
        self.admin(&["create-user", "--access", name, "--secret", &secret, "--role", "admin"]).await?;
        Ok(credentials(name, &secret))
    }

    /// Closes such an account: its keys open nothing any more.
    pub async fn close_account(&self, name: &str) -> Result<()> {
        self.admin(&["delete-user", "--access", name]).await
    }

    async fn admin(&self, args: &[&str]) -> Result<()> {
        let output = tokio::process::Command::new(&self.program)
            .args(["admin", "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--endpoint-url", &self.url])
            .args(args)
            .kill_on_drop(true)
            .output()
            .await?;
        ensure!(output.status.success(), "versitygw admin: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Makes a bucket; one that is there already is fine.
    pub fn make_bucket(&self, bucket: &str) -> Result<()> {
        fs::create_dir_all(self.buckets.join(bucket)).with_context(|| format!("making bucket {bucket}"))
    }

    /// The file of an object, to look at it or to tamper with it.
    pub fn path(&self, bucket: &str, key: &str) -> PathBuf {
        self.buckets.join(bucket).join(key)
    }

    /// The keys of all objects in a bucket, sorted.
    pub fn keys(&self, bucket: &str) -> Result<Vec<String>> {
        let root = self.buckets.join(bucket);
        let mut keys = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    keys.push(path.strip_prefix(&root)?.to_string_lossy().into_owned());
                }
            }
        }
        keys.sort();
        Ok(keys)
    }
}

pub(crate) fn program(binaries: &Binaries, folder: &Path, port: u16) -> Program {
    program_at(binaries, folder, &address(port))
}

/// The store on an address with port, its buckets below `folder`.
pub(crate) fn program_at(binaries: &Binaries, folder: &Path, address: &str) -> Program {
    Program::new(binaries.path("versitygw"), folder.join("versitygw.log"))
        .env("ROOT_ACCESS_KEY", ACCESS_KEY)
        .env("ROOT_SECRET_KEY", SECRET_KEY)
        // Accounts are looked up in a file at every request, so that a closed one is closed at once.
        .args(["--port", address, "--iam-cache-disable", "--iam-dir"])
        .arg(folder.display().to_string())
        .args(["posix", "--nometa"])
        .arg(buckets(folder).display().to_string())
}

/// The root account's keys as an AWS credentials file.
pub(crate) fn root_credentials() -> String {
    credentials(ACCESS_KEY, SECRET_KEY)
}

fn credentials(access_key: &str, secret_key: &str) -> String {
    format!("[default]\naws_access_key_id={access_key}\naws_secret_access_key={secret_key}\n")
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

pub(crate) fn buckets(folder: &Path) -> PathBuf {
    folder.join("buckets")
}
