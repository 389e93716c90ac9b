//! What a wait prints where there is no terminal, against a server that knows one backup.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use snapbox::cmd::Command;

/// A finished backup.
fn finished() -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "uid": "1", "resourceVersion": "7"},
        "spec": {"backupSpec": {}},
        "status": {"phase": "Created", "veleroBackup": {"name": "x", "status": {"phase": "Completed",
            "progress": {"totalItems": 3, "itemsBackedUp": 3}}}}})
}

/// Answers every list with one object, as an API server does.
fn answer(mut connection: TcpStream) {
    let mut request = BufReader::new(connection.try_clone().unwrap());
    let mut line = String::new();
    while request.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.ends_with("\r\n\r\n") || line == "\r\n" {
            let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupList",
                "metadata": {"resourceVersion": "7"}, "items": [finished()]})
            .to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}",
                body.len()
            );
            write!(connection, "{head}\r\n\r\n{body}").unwrap();
        }
        line.clear();
    }
}

/// What `backup wait daily` prints: standard output and standard error.
fn wait(format: &[&str]) -> (String, String) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in server.incoming().flatten() {
            std::thread::spawn(move || answer(connection));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]});
    std::fs::write(folder.path().join("kubeconfig"), config.to_string()).unwrap();
    let done = Command::new(snapbox::cmd::cargo_bin!("kubectl-nacre"))
        .args(["backup", "wait", "daily", "--timeout", "1m"])
        .args(format)
        .env("KUBECONFIG", folder.path().join("kubeconfig"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr))
}

const END: &str = "backup daily: complete, 3 items\n";

#[test]
fn the_last_line_is_printed_once() {
    assert_eq!(wait(&[]), (END.to_owned(), String::new()));
}

#[test]
fn a_program_gets_the_object_and_people_the_line() {
    let (object, line) = wait(&["-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&object).unwrap()["metadata"]["name"], "daily");
    assert_eq!(line, END);
    assert_eq!(wait(&["-o", "name"]), (String::new(), END.to_owned()));
}
