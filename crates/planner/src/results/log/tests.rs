//! Which lines of a log a namespace gets, and that it never gets more.

use api::{LogLines, MOST_LINES};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{LONGEST_LINE, MOST_BYTES, OwnLines};
use crate::results::NotResults;

const UID: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";

fn read(log: &str) -> Result<LogLines, NotResults> {
    let velero = [format!("velero/shop-daily-{UID}")];
    let is_namespace = |name: &str| ["bank", "default", "velero", "shop"].contains(&name);
    let mut own = OwnLines::new("shop", &velero, is_namespace);
    log.split('\n').for_each(|line| own.add(line.as_bytes()));
    own.finish()
}

/// The line as it is published; none if it is left out.
fn shown(line: &str) -> Option<String> {
    let read = read(&line.replace("OWN", &format!("velero/shop-daily-{UID}"))).unwrap();
    assert_eq!(read.lines.len() + read.left_out.unwrap_or_default() as usize, 1, "{read:?}");
    read.lines.into_iter().next()
}

#[test]
fn lines_about_the_namespace_are_shown_with_what_is_of_interest() {
    insta::assert_snapshot!(shown(r#"time="2026-11-18T07:00:00Z" level=info msg="Backing up item" backup=OWN logSource="pkg/backup/item_backupper.go:200" name=default namespace=shop resource=serviceaccounts worker=3"#).unwrap(),
        @r#"time=2026-11-18T07:00:00Z level=info msg="Backing up item" namespace=shop resource=serviceaccounts name=default"#);
    insta::assert_snapshot!(shown(r#"{"level": "error", "msg": "no", "error.message": "Get \"https://s3.internal/b?X-Amz-Signature=0\": timeout", "restore": "OWN", "name": "web"}"#).unwrap(),
        @r#"level=error msg=no error="Get \"<address>\": timeout" name=web"#);
    insta::assert_snapshot!(shown(r#"level=info msg="Attempting to restore ConfigMap: prices" groupResource=configmaps namespace=shop original name=prices restore=OWN"#).unwrap(),
        @r#"level=info msg="Attempting to restore ConfigMap: prices" namespace=shop resource=configmaps name=prices"#);
    let of_backup = shown(r#"level=info msg="Starting OWN, 3 items" backup=OWN progress="#).unwrap();
    assert_eq!(of_backup, format!("level=info msg=\"Starting shop-daily-{UID}, 3 items\""));
    for own in [
        "level=info msg=a name=shop/prices",
        "level=info msg=a name=shop namespace= resource=namespaces backup=OWN",
        "level=info msg=a includedNamespaces=[shop]",
    ] {
        assert!(shown(own).is_some(), "{own}");
    }
}

#[test]
fn lines_about_anything_else_are_left_out() {
    for line in [
        // Nothing proves that they are the namespace's.
        "level=info msg=a",
        "level=info msg=a namespace= name=pv-1",
        "level=error msg=a backup=velero/bank-daily",
        // Of the backup, and about an object that is in no namespace.
        "level=info msg=a backup=OWN name=pv-1 namespace= resource=persistentvolumes",
        // They name another namespace.
        "level=error msg=a backup=OWN namespace=bank name=db",
        "level=error msg=a backup=OWN namespace=gone name=db",
        "level=info msg=a namespace=shop name=bank/db",
        "level=info msg=a namespace=shop targetNamespace=bank",
        "level=info msg=a namespace=shop pod=bank/db",
        r#"level=info msg="exists in namespace \"bank\"" namespace=shop"#,
        r#"level=error msg="lookup db.bank.svc" backup=OWN"#,
        r#"level=info msg="Including default and bank" backup=OWN"#,
        r#"level=info msg="file velero/other is there" namespace=shop"#,
        // They look as if they held a key.
        r#"level=error msg="denied for AKIAIOSFODNN7EXAMPLE" namespace=shop"#,
        r#"level=info msg=a error="password=x" namespace=shop"#,
    ] {
        assert_eq!(shown(line), None, "{line}");
    }
}

/// A word such as `default` may be an object of the namespace as well.
#[test]
fn words_that_are_also_namespaces_stay_in_the_namespaces_own_lines() {
    assert!(shown(r#"level=info msg="ServiceAccount default exists" namespace=shop"#).is_some());
    assert!(shown(r#"level=error msg="no volume default" backup=OWN"#).is_some());
}

#[test]
fn errors_and_warnings_are_kept_first_and_the_order_stays() {
    let lines: Vec<String> = (0..1000)
        .map(|number| {
            let level = if number % 10 == 0 { "warning" } else { "info" };
            format!("level={level} msg={number} namespace=shop")
        })
        .collect();
    let read = read(&lines.join("\n")).unwrap();
    assert_eq!((read.lines.len(), read.not_listed, read.left_out), (MOST_LINES, Some(800), None));
    assert_eq!(read.lines.iter().filter(|line| line.contains("warning")).count(), 100);
    let number = |line: &String| line.split("msg=").nth(1)?.split(' ').next()?.parse::<u32>().ok();
    assert!(read.lines.is_sorted_by_key(number), "{:?}", read.lines);
    assert!(read.lines.last().unwrap().contains("msg=999"), "the end says how it ended");
}

#[test]
fn whatever_its_size_what_is_published_is_small() {
    let long = format!("level=error msg=\"{0}\" error=\"{0}\" name={0} namespace=shop\n", "é".repeat(5000));
    let read = read(&long.repeat(300)).unwrap();
    assert!(read.lines.iter().all(|line| line.len() <= LONGEST_LINE && line.ends_with("...")));
    let bytes: usize = read.lines.iter().map(String::len).sum();
    assert!(bytes <= MOST_BYTES && bytes > MOST_BYTES / 2, "{bytes}");
    assert_eq!(read.lines.len() + read.not_listed.unwrap() as usize, 300);
}

#[test]
fn what_velero_does_not_write_is_no_log() {
    assert_eq!(read("<html>\n</html>"), Err(NotResults));
    assert_eq!(read("\n"), Ok(LogLines::default()));
}

/// A value with what should never be published, wherever it can be.
fn value() -> impl Strategy<Value = String> {
    let hostile = prop_oneof![
        Just("namespace bank".to_owned()),
        Just("bank/db".to_owned()),
        Just(format!("bank-daily-{UID}")),
        Just("db.bank.svc".to_owned()),
        Just("https://s3.internal/bank?X-Amz-Signature=0".to_owned()),
        Just("s3://keys/AKIAIOSFODNN7EXAMPLE".to_owned()),
        Just("AKIAIOSFODNN7EXAMPLE".to_owned()),
        Just("\u{1b}[31m\u{9b}2J\u{202e}\r\n".to_owned()),
        Just("\" namespace=\"shop".to_owned()),
        "\\PC{0,40}",
        "[c-z]{0,600}",
    ];
    prop::collection::vec(hostile, 1..4).prop_map(|parts| parts.join(" "))
}

/// A line, as fields.
fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let word = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let field = prop_oneof![
        (
            word(&["namespace", "targetNamespace", "includedNamespaces"]),
            word(&["shop", "bank", "", "[bank]"])
        ),
        (word(&["name", "original name"]), word(&["prices", "shop/prices", "bank/db", ""])),
        (word(&["backup", "restore"]), word(&["velero/shop-daily-UID", "velero/bank-daily-UID"])),
        (word(&["pod", "error", "resource", "group"]), value()),
    ];
    let first = (word(&["info", "error", "warning", "debug"]), value());
    (first, prop::collection::vec(field, 0..5)).prop_map(|((level, message), mut fields)| {
        fields.insert(0, ("msg".to_owned(), message));
        fields.insert(0, ("level".to_owned(), level));
        fields
    })
}

/// As Velero writes it.
fn written(fields: &[(String, String)], as_json: bool) -> String {
    let value = |value: &str| value.replace("UID", UID);
    if as_json {
        let fields = fields.iter().map(|(key, text)| (key.clone(), Value::String(value(text))));
        return Value::Object(fields.collect::<Map<_, _>>()).to_string();
    }
    let pairs = fields.iter().map(|(key, text)| format!("{key}={:?}", value(text)));
    pairs.collect::<Vec<_>>().join(" ")
}

/// What must not be in what is published.
fn complaint(lines: &[String]) -> Option<String> {
    let is_bad = |line: &&String| {
        line.contains("bank")
            || line.contains("://")
            || line.contains("AKIA")
            || line.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\r', '\n'])
            || line.len() > LONGEST_LINE
    };
    let bytes: usize = lines.iter().map(String::len).sum();
    let is_too_much = lines.len() > MOST_LINES || bytes > MOST_BYTES;
    lines.iter().find(is_bad).cloned().or_else(|| is_too_much.then(|| "too much".to_owned()))
}

/// A log of many lines.
fn log() -> impl Strategy<Value = Vec<String>> {
    let line = (fields(), any::<bool>()).prop_map(|(fields, as_json)| written(&fields, as_json));
    (prop::collection::vec(line, 1..40), 1..12_usize)
        .prop_map(|(lines, times)| std::iter::repeat_n(lines, times).flatten().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_line_names_another_namespace_or_holds_a_key_and_there_are_never_too_many(lines in log()) {
        if let Ok(read) = read(&lines.join("\n")) {
            prop_assert_eq!(complaint(&read.lines), None);
            let all = read.lines.len() + (read.not_listed.unwrap_or(0) + read.left_out.unwrap_or(0)) as usize;
            prop_assert_eq!(all, lines.len());
        }
    }
}

/// The property can fail: a log as Velero writes it does not have it.
#[test]
fn the_property_does_not_hold_for_a_log_as_it_is() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let found = runner.run(&log(), |lines| {
        prop_assert_eq!(complaint(&lines), None);
        Ok(())
    });
    assert!(found.is_err());
    // It is not for nothing that lines are shown, either.
    let mut shown = 0;
    let _ = runner
        .run(&log(), |lines| {
            prop_assert!(read(&lines.join("\n")).is_ok_and(|read| read.lines.is_empty()));
            Ok(())
        })
        .inspect_err(|_| shown += 1);
    assert_eq!(shown, 1);
}
