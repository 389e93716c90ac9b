//! Every page shows the command that does the same, and it is one that the command line accepts.

use super::{admin::with_request, *};

/// The commands of a page, each as a shell takes it apart.
fn commands(page: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = page.split("<code tabindex=\"0\">").skip(1).collect();
    assert!(!lines.is_empty(), "no command: {page}");
    lines.into_iter().map(|rest| command(rest.split_once("</code>").unwrap().0)).collect()
}

fn command(line: &str) -> Vec<String> {
    let line = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(line.to_owned(), |line, (escaped, plain)| line.replace(escaped, plain));
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => words.last_mut().unwrap().extend(letters.next()),
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(words[..2], ["kubectl", "nacre"], "{line}");
    words.split_off(1)
}

/// The words of all of them.
fn is_accepted(path: &str, page: &str) -> Vec<String> {
    let all = commands(page);
    for words in &all {
        let read = crate::args::command().try_get_matches_from(words);
        assert!(read.is_ok(), "{path}: {words:?}: {}", read.unwrap_err());
    }
    all.concat()
}

fn cluster() -> ApiServer {
    let server = with_request("bucket");
    server.put(&format!("{OWN}nonadminbackups"), backup("daily", ""));
    let restore = json!({"metadata": {"name": "back", "namespace": "shop"}, "spec": {"restoreSpec": {"backupName": "daily"}}});
    server.put(&format!("{OWN}nonadminrestores"), restore);
    let schedule = json!({"metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}}});
    server.put(&format!("{OWN}nonadminschedules"), schedule);
    server
}

#[tokio::test]
async fn the_command_of_every_page_is_one() {
    let router = on_laptop(&cluster());
    let cookie = enter(&router).await;
    let of_namespace = [
        "",
        "/backups",
        "/backups/daily",
        "/new-backup",
        "/restores",
        "/restores/back",
        "/restore",
        "/restore/daily?resource=configmaps&resource=secrets&selector=app%3Dit's+new&existing=update&volumes=false",
        "/replace/daily?claim=files&unsafe=yes&managers=yes",
        "/schedules",
        "/schedules/nightly",
        "/new-schedule",
        "/locations",
        "/locations/mine",
        "/new-location",
    ];
    let of_administrators =
        ["requests", "requests/shop/mine", "queue", "usage", "policy", "migration", "doctor"];
    let paths = of_namespace.map(|path| format!("/ns/shop{path}")).into_iter();
    let paths = paths.chain(of_administrators.map(|path| format!("/admin/{path}")));
    for path in paths.chain(["/".to_owned()]) {
        is_accepted(&path, &send(&router, get(&path, &cookie)).await.text);
    }
}

#[tokio::test]
async fn the_command_after_a_form_has_all_that_was_filled_in() {
    let router = on_laptop(&cluster());
    let cookie = enter(&router).await;
    let token = csrf(&send(&router, get("/ns/shop/new-backup", &cookie)).await.text);
    let forms = [
        (
            "/ns/shop/backups",
            "do=check&name=first&ttl=72h&resources=configmaps&selector=app%3Dshop",
            "--selector=app=shop",
        ),
        (
            "/ns/shop/schedules",
            "do=check&name=hourly&schedule=@hourly&zone=Europe/Berlin&last=3&within=30d",
            "--keep-last=3",
        ),
        ("/ns/shop/schedules/nightly", "do=delete&confirm=other", "delete"),
        (
            "/ns/shop/locations",
            "do=check&name=own&provider=aws&bucket=b&config=a%3Db&secret=key&key=cloud&mode=ReadOnly",
            "--credential=key=cloud",
        ),
        ("/ns/shop/backups/daily/files", "do=BackupLog", "logs"),
        (
            "/ns/shop/replace/daily",
            "do=replace&confirm=other&claim=files&asked=claim%3Dfiles",
            "--only-claim=files",
        ),
        ("/admin/requests/shop/mine", "do=reject&version=1&reason=not+ours", "not ours"),
        ("/admin/queue", "do=hold+backup+shop/none&reason=it's+late", "it's late"),
        ("/admin/policy", "policy=backup:+%7B%7D", "--requests"),
    ];
    for (path, fields, word) in forms {
        let answer = send(&router, post(path, &cookie, &format!("csrf={token}&{fields}"))).await;
        let words = is_accepted(path, &answer.text);
        assert!(words.iter().any(|one| one == word), "{path} {fields}: {words:?}");
    }
}

#[tokio::test]
async fn a_page_that_acts_shows_the_commands_that_act() {
    let server = cluster();
    let mut waits = backup("waits", "");
    waits["status"] = json!({"phase": "New"});
    server.put(&format!("{OWN}nonadminbackups"), waits);
    let mut good = backup("good", "");
    good["status"] = json!({"phase": "Created", "veleroBackup": {"name": "v", "status": {"phase": "Completed",
        "completionTimestamp": "2026-11-15T12:10:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}}}});
    server.put(&format!("{OWN}nonadminbackups"), good);
    let all = [
        ("/ns/shop/restore/good?existing=update", "restore create --existing-resource-policy=update"),
        ("/admin/requests/shop/mine", "request approve shop/mine --resource-version 7"),
        ("/admin/requests/shop/mine", "request reject shop/mine --resource-version 7"),
        ("/admin/queue", "queue promote backup shop/"),
        ("/admin/queue", "queue hold backup shop/"),
        ("/ns/shop/schedules/nightly", "schedule run nightly"),
        ("/ns/shop/schedules/nightly", "schedule pause nightly"),
    ];
    let router = on_laptop(&server);
    let cookie = enter(&router).await;
    for (path, wanted) in all {
        let page = send(&router, get(path, &cookie)).await.text;
        is_accepted(path, &page);
        let lines: Vec<String> = commands(&page).iter().map(|words| words.join(" ")).collect();
        let has = |line: &String| wanted.split(' ').all(|word| line.contains(word));
        assert!(lines.iter().any(has), "{path} {wanted}: {lines:?}");
    }
    // Whoever may only look sees none of them.
    let router = on_laptop(&ApiServer { read_only: true, ..server });
    let cookie = enter(&router).await;
    for (path, _) in all {
        let page = send(&router, get(path, &cookie)).await.text;
        assert_eq!(commands(&page).len(), 1, "{path}: {page}");
    }
}
