//! Programs that never outlive the one who started them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::sync::watch;

/// Runs a program in a process group of its own and kills that group as soon as standard input ends.
///
/// Only we hold the other end of that pipe, so it ends whenever we do: return, panic, Ctrl-C or `kill -9`.
/// This needs no `unsafe`, no thread that must live on (as `PR_SET_PDEATHSIG` would) and no program of ours.
/// What the program leaves behind in its group dies with it.
///
/// `set -m` gives each job its group. It is taken back before the wait, which would else be content with a
/// program that is merely stopped; and the shell's own remarks about its jobs have no place in the log.
const KEEPER: &str = r#"
exec 3<&0
set -m
"$@" </dev/null >&2 3<&- &
program=$!
exec 2>/dev/null
{ read -r line <&3; kill -s KILL -- "-$program"; } >/dev/null &
lifeline=$!
set +m
echo "$program"
wait "$program"
code=$?
kill -s KILL -- "-$program" "-$lifeline"
wait
exit "$code"
"#;

/// How much of a log an error shows.
const TAIL_LINES: usize = 20;

/// A running program; dropping it kills the program and everything that program started.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    log: PathBuf,
    /// Never written to: it only has to be open while we live.
    lifeline: Option<ChildStdin>,
    exit: watch::Receiver<Option<ExitStatus>>,
    reaper: Option<JoinHandle<()>>,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Seconds of processor time, user and system.
    pub cpu_seconds: f64,
    /// The largest resident set so far, in bytes.
    pub peak_rss: u64,
}

/// How much garbage the bed's programs, all of them written in Go, may let pile up: memory is there, cores are few.
const GARBAGE: &str = "400";

/// A program to start: arguments, environment and where its output goes.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    /// Another program that starts this one, with its arguments; none for most.
    within: Vec<String>,
    path: PathBuf,
    args: Vec<String>,
    env: Vec<(String, Option<String>)>,
    log: PathBuf,
}

impl Program {
    /// The program at `path`, whose standard output and error are appended to `log`.
    pub fn new(path: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self { name, within: Vec::new(), path, args: Vec::new(), env: Vec::new(), log: log.into() }
    }

    /// Has another program start this one: what is given here, then this program and its arguments.
    #[must_use]
    pub fn within<S: Into<String>>(mut self, starter: impl IntoIterator<Item = S>) -> Self {
        self.within = starter.into_iter().map(Into::into).collect();
        self
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Removes an environment variable that would be inherited.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Starts the program.
    pub fn start(&self) -> Result<Process> {
        ensure!(
            self.path.is_file(),
            "{} is not there (`make tools` builds the bed's own programs)",
            self.path.display()
        );
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("opening {}", self.log.display()))?;
        let mut keeper = Command::new("bash");
        keeper
            .args(["-c", KEEPER, "keeper"])
            .args(&self.within)
            .arg(&self.path)
            .args(&self.args)
            .env("GOGC", GARBAGE);
        for (name, value) in &self.env {
            match value {
                Some(value) => keeper.env(name, value),
                None => keeper.env_remove(name),
            };
        }
        // A group of its own keeps the terminal's Ctrl-C away: the pipe is the one way down.
        keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = keeper.spawn().with_context(|| format!("starting bash to keep {}", self.name))?;
        let lifeline = child.stdin.take();
        let pid = read_pid(&mut child).with_context(|| format!("starting {}", self.name))?;
        let (exit, reaper) = reap(child);
        Ok(Process {
            name: self.name.clone(),
            pid,
            log: self.log.clone(),
            lifeline,
            exit,
            reaper: Some(reaper),
        })
    }
}

impl Process {
    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that has its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Everything it has written so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        self.exit.borrow().is_none()
    }

    /// Waits for its end. A program that died of signal n ends with code 128 + n.
    pub async fn exited(&self) -> Option<i32> {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await.ok()?;
        status.as_ref().and_then(ExitStatus::code)
    }

    /// Waits for its end, without holding on to it.
    pub(crate) fn is_over(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move { _ = exit.wait_for(Option::is_some).await }
    }

    /// Sends a signal by its short name: `TERM`, `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) -> Result<()> {
        ensure!(self.is_running(), "{} has ended, signal {signal} comes too late", self.name);
        send_signal(self.pid, signal)
    }

    /// Kills it without a chance to say goodbye and waits until it is gone.
    pub async fn kill(&self) -> Result<()> {
        if self.is_running() {
            self.signal("KILL")?;
        }
        self.exited().await;
        Ok(())
    }

    /// Asks it to end (`SIGTERM`), waits, and returns its exit code.
    pub async fn terminate(&self, within: Duration) -> Result<Option<i32>> {
        self.signal("TERM")?;
        tokio::time::timeout(within, self.exited())
            .await
            .map_err(|_| self.failure(&format!("still runs {within:?} after SIGTERM")))
    }

    /// Processor time and memory so far. Only a running process can be asked.
    pub fn usage(&self) -> Result<Usage> {
        let proc = PathBuf::from(format!("/proc/{}", self.pid));
        let stat = std::fs::read_to_string(proc.join("stat"))?;
        let status = std::fs::read_to_string(proc.join("status"))?;
        parse_usage(&stat, &status).with_context(|| format!("reading what {} uses", self.name))
    }

    /// Fails as soon as the process ends: to be raced against whatever is waited for.
    pub async fn must_live<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased; // when it is gone, an answer came from somebody else
            code = self.exited() => {
                let code = code.map_or_else(|| "?".into(), |code| code.to_string());
                Err(self.failure(&format!("ended with code {code}")))
            }
            done = work => done,
        }
    }

    /// As `must_live`, and shows the log if the process lives on but `work` fails.
    pub async fn must_do<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let work = async { work.await.map_err(|error| self.failure("still runs").context(error)) };
        self.must_live(work).await
    }

    /// An error that names the program and shows the end of its log.
    pub fn failure(&self, what: &str) -> anyhow::Error {
        anyhow!("{} {what}; the end of {}:\n{}", self.name, self.log.display(), tail(&self.output()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The keeper ends once the program is gone, so after this its ports and files are free.
        if let Some(reaper) = self.reaper.take() {
            // A reaper that panicked has nothing left to wait for.
            let _ = reaper.join();
        }
    }
}

/// Sends a signal to any process by its short name, through the shell's own `kill`.
pub fn send_signal(pid: u32, signal: &str) -> Result<()> {
    let status = Command::new("bash")
        .args(["-c", r#"kill -s "$1" "$2""#, "kill", signal, &pid.to_string()])
        .status()?;
    ensure!(status.success(), "signal {signal} did not reach process {pid}");
    Ok(())
}

fn read_pid(keeper: &mut Child) -> Result<u32> {
    let mut line = String::new();
    let output = keeper.stdout.take().context("the keeper has no output")?;
    BufReader::new(output).read_line(&mut line)?;
    line.trim().parse().context("the keeper named no process")
}

/// Waits for the keeper on a thread of its own, so that it works under any async runtime, or none.
fn reap(mut keeper: Child) -> (watch::Receiver<Option<ExitStatus>>, JoinHandle<()>) {
    let (ended, exit) = watch::channel(None);
    let reaper = std::thread::spawn(move || {
        let status = keeper.wait().unwrap_or_default();
        ended.send_replace(Some(status));
    });
    (exit, reaper)
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn parse_usage(stat: &str, status: &str) -> Option<Usage> {
    /// `USER_HZ`, which the kernel fixes for every architecture Kubernetes runs on.
    const TICKS_PER_SECOND: f64 = 100.0;
    // The program's name, in parentheses, may hold anything: count from behind it. There, utime and
    // stime are the 12th and 13th fields.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(Usage { cpu_seconds: f64::from(user + system) / TICKS_PER_SECOND, peak_rss: kilobytes * 1024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_past_a_name_with_spaces_and_parentheses() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0";
        let usage = parse_usage(stat, "Name:\ta\nVmHWM:\t    2048 kB\n").unwrap();
        assert_eq!(usage, Usage { cpu_seconds: 2.0, peak_rss: 2 * 1024 * 1024 });
    }

    #[test]
    fn a_tail_is_the_end_of_a_text() {
        let text = (1..=30).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        assert!(tail(&text).starts_with("11\n"));
        assert_eq!(tail("one"), "one");
    }
}
