//! Completion in the real shells: zsh with its completion system in a terminal, fish by its own `complete`. Names from the
//! cluster are tested end to end; here is no cluster.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder with the program under its name, and the scripts for shells.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_kubectl-nacre"), folder.path().join("kubectl-nacre")).unwrap();
    for (shell, name) in [("zsh", "_kubectl-nacre"), ("fish", "kubectl-nacre.fish")] {
        let script =
            Command::new(env!("CARGO_BIN_EXE_kubectl-nacre")).args(["completion", shell]).output().unwrap();
        assert!(script.status.success());
        fs::write(folder.path().join(name), script.stdout).unwrap();
    }
    folder
}

/// Whether this machine has the shell. Where everything must run, it has.
fn has(shell: &str) -> bool {
    let found =
        Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "{shell} is not installed");
    if !found {
        let _ = writeln!(std::io::stderr(), "{shell} is not installed: its completion was not tested");
    }
    found
}

/// What a shell prints when it runs this script.
fn run(shell: &str, folder: &TempDir, flags: &[&str], script: &str) -> String {
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args(flags)
        .arg(script)
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("KUBECONFIG", folder.path().join("none"))
        .env("TERM", "dumb")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn fish_completes_commands_flags_and_values() {
    if !has("fish") {
        return;
    }
    let folder = folder();
    let offered = |line: &str| -> Vec<String> {
        let script = format!("source kubectl-nacre.fish; complete --do-complete '{line}'");
        let text = run("fish", &folder, &["--no-config", "--command"], &script);
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert_eq!(offered("kubectl-nacre rest"), ["restore"]);
    assert!(offered("kubectl-nacre backup ").contains(&"describe".to_owned()));
    assert_eq!(offered("kubectl-nacre backup create --snapshot-move"), ["--snapshot-move-data"]);
    assert_eq!(offered("kubectl-nacre backup get -o y"), ["yaml"]);
    assert_eq!(offered("kubectl-nacre backup create --no-such-flag"), [""; 0]);
}

/// An interactive zsh in a terminal of its own, in which Tab is pressed behind a line. What it makes of the line is printed.
const TYPED: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; stty -echo; fpath=($PWD \$fpath); autoload -U compinit; compinit -u -d $PWD/dump"
zpty -w shell "tab() { zle complete-word; print -r -- \"made<\$LBUFFER>\"; zle kill-whole-line }; zle -N tab; bindkey '^I' tab; print re''ady"
zpty -r -m shell said '*ready*'
zpty -w -n shell "$LINE"$'\t'
zpty -r -m shell said '*made<*>*'
print -r -- ${${said##*made<}%%>*}
zpty -d shell
"#;

#[test]
fn zsh_completes_commands_flags_and_values() {
    if !has("zsh") {
        return;
    }
    let folder = folder();
    let made = |line: &str| {
        let script = format!("LINE='{line}'\n{TYPED}");
        run("zsh", &folder, &["-f", "-c"], &script).trim_end_matches('\n').to_owned()
    };
    assert_eq!(made("kubectl-nacre rest"), "kubectl-nacre restore ");
    assert_eq!(made("kubectl-nacre backup desc"), "kubectl-nacre backup describe ");
    assert_eq!(
        made("kubectl-nacre backup create --snapshot-move"),
        "kubectl-nacre backup create --snapshot-move-data "
    );
    assert_eq!(made("kubectl-nacre backup get -o y"), "kubectl-nacre backup get -o yaml ");
    assert_eq!(made("kubectl-nacre nonsense x"), "kubectl-nacre nonsense x");
}
