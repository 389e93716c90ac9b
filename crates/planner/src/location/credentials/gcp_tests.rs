use serde_json::{Value, json};

use super::super::parse;
use super::{KEYS, TYPES};
use crate::location::provider::Provider;
use crate::location::table::KeyHandling;

fn key() -> Value {
    json!({
        "type": "service_account",
        "project_id": "shop-1",
        "private_key_id": "0a1b",
        "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE+/w=\n-----END PRIVATE KEY-----\n",
        "client_email": "velero@shop-1.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
        "universe_domain": "googleapis.com",
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut file = key();
    file[name] = value;
    file
}

fn read(file: &Value) -> Result<Value, String> {
    text(&serde_json::to_string_pretty(file).unwrap())
}

fn text(text: &str) -> Result<Value, String> {
    parse(Provider::Gcp, text.as_bytes(), None)
        .map(|credential| serde_json::from_str(&credential.render()).unwrap())
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn what_is_kept_is_written_anew() {
    assert_eq!(read(&key()), Ok(key()));
    let mut full = key();
    full["client_id"] = json!("1");
    full["auth_uri"] = json!("https://elsewhere.example");
    full["auth_provider_x509_cert_url"] = json!(["x"]);
    full["client_x509_cert_url"] = json!(null);
    full["token_uri"] = json!("https://accounts.google.com/o/oauth2/token");
    assert_eq!(read(&full), Ok(key()), "other addresses go, and the token's becomes today's");
    let mut least = key();
    for name in ["project_id", "private_key_id"] {
        least.as_object_mut().unwrap().remove(name);
    }
    let whole = least.clone();
    for name in ["token_uri", "universe_domain"] {
        least.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(read(&least), Ok(whole), "the addresses are Google's without saying so");
}

#[test]
fn refusals_name_line_and_key() {
    let own = "line 6: token_uri must be Google's own; use the file as Google made it";
    let odd = "holds something that cannot be there; use the file as Google made it";
    let mut nameless = key();
    nameless.as_object_mut().unwrap().remove("client_email");
    let cases = [
        (with("token_uri", json!("https://evil.example/token")), own.to_owned()),
        (with("token_uri", json!("https://oauth2.googleapis.com/token/../x")), own.to_owned()),
        (
            with("universe_domain", json!("evil.example")),
            "line 8: universe_domain must be googleapis.com".to_owned(),
        ),
        (
            with("private_key", json!("x")),
            "line 3: private_key is not a private key in PEM; use the file as Google made it".to_owned(),
        ),
        (
            with("private_key", json!("-----BEGIN PRIVATE KEY-----\n$(id)\n-----END PRIVATE KEY-----\n")),
            "line 3: private_key is not a private key in PEM; use the file as Google made it".to_owned(),
        ),
        (with("client_email", json!("a@b@c")), format!("line 2: client_email {odd}")),
        (with("client_email", json!("a")), format!("line 2: client_email {odd}")),
        (with("private_key_id", json!("a b")), format!("line 4: private_key_id {odd}")),
        (with("project_id", json!({"a": 1})), "line 5: project_id is not a text".to_owned()),
        (json!({"type": "service_account"}), "private_key is missing".to_owned()),
        (nameless, "client_email is missing".to_owned()),
        (
            json!({}),
            "type must be service_account; make a key for a service account and use that file".to_owned(),
        ),
        (
            with("Token_Uri", json!("x")),
            "the file holds a key that nacre does not know; take it out".to_owned(),
        ),
        (with("token_urix", json!("x")), "token_urix is not a key that nacre knows; take it out".to_owned()),
    ];
    for (given, wanted) in cases {
        assert_eq!(read(&given), Err(wanted), "{given}");
    }
}

#[test]
fn a_refused_key_is_told_with_its_line() {
    let file = "{\n  \"type\": \"service_account\",\n  \"credential_source\": {\"file\": \"/x\"}\n}";
    let why = "line 3: credential_source reads a file, asks a server or runs a program in Velero's pod; take it out";
    assert_eq!(text(file), Err(why.to_owned()));
}

#[test]
fn what_is_not_one_plain_object_is_refused() {
    let whole = key().to_string();
    let twice = whole.replacen('{', "{\"type\": \"external_account\",", 1);
    assert!(text(&twice).unwrap_err().ends_with("is there twice; keep one of them"));
    for given in
        ["", "[]", "null", "{", "\u{feff}{}", "{'type': 1}", &format!("{whole}{whole}"), &"[".repeat(5000)]
    {
        assert_eq!(
            text(given),
            Err("line 1 is not JSON; use the file as Google made it".to_owned()),
            "{given:.20}"
        );
    }
}

#[test]
fn each_dangerous_key_and_type_is_refused() {
    for rule in KEYS.iter().filter(|rule| rule.verdict == KeyHandling::Refused) {
        for value in [json!("x"), json!({"file": "/x"}), json!(null)] {
            let refusal =
                parse(Provider::Gcp, with(rule.key, value).to_string().as_bytes(), None).unwrap_err();
            assert_eq!(refusal.key.as_deref(), Some(rule.key));
        }
    }
    for rule in TYPES {
        let accepted = read(&with("type", json!(rule.key))).is_ok();
        assert_eq!(accepted, rule.verdict == KeyHandling::Kept, "{}", rule.key);
    }
}
