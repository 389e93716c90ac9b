//! Properties of all credential files.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{Credential, aws, azure, gcp, parse};
use crate::location::provider::Provider;
use crate::location::table::{KeyHandling, Rule};

/// A value that occurs nowhere else: not in a key, not in a reason.
const MARK: &str = "Zq9";

fn provider() -> impl Strategy<Value = Provider> {
    prop::sample::select(Provider::ALL.to_vec())
}

fn keys_of(table: &'static [Rule], verdicts: &'static [KeyHandling]) -> impl Strategy<Value = &'static str> {
    let keys: Vec<_> =
        table.iter().filter(|rule| verdicts.contains(&rule.verdict)).map(|rule| rule.key).collect();
    prop::sample::select(keys)
}

/// Values from fine to foul, each with the mark in it.
fn value() -> impl Strategy<Value = String> {
    let tail = prop_oneof![
        4 => "[A-Za-z0-9/+=]{0,12}",
        1 => "[ -~]{0,12}",
        1 => "\\PC{0,6}",
        1 => Just("\ncredential_process = x".to_owned()),
        1 => Just(" # note".to_owned()),
        1 => Just("\r\n[other]\nrole_arn=x".to_owned()),
        1 => Just("'\\\"$(".to_owned()),
    ];
    tail.prop_map(|tail| format!("{MARK}{tail}"))
}

/// A line of an INI file or of one of variables: keys of the table for the most part, in unusual spellings at times.
fn line(table: &'static [Rule]) -> impl Strategy<Value = String> {
    const ANY: &[KeyHandling] = &[KeyHandling::Kept, KeyHandling::Ignored, KeyHandling::Refused];
    const FINE: &[KeyHandling] = &[KeyHandling::Kept, KeyHandling::Ignored];
    let key = prop_oneof![9 => keys_of(table, FINE), 1 => keys_of(table, ANY)];
    let between = prop::sample::select(vec!["=", " = ", "\t=", ": ", " "]);
    let pair = (key, between, value()).prop_map(|(key, between, value)| format!("{key}{between}{value}"));
    prop_oneof![
        12 => pair,
        2 => Just("[default]".to_owned()),
        1 => Just("[profile b] ; c".to_owned()),
        1 => Just("# comment".to_owned()),
        1 => Just(String::new()),
        1 => "[ -~]{0,20}",
        1 => Just("  continued = x".to_owned()),
        1 => Just("\u{feff}\0".to_owned()),
    ]
}

fn lined(table: &'static [Rule], head: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let ending = prop::sample::select(vec!["\n", "\r\n"]);
    let body = prop::collection::vec(line(table), 0..7);
    (body, ending, any::<bool>()).prop_map(move |(body, ending, headed)| {
        let head = if headed { head } else { "" };
        format!("{head}{}", body.join(ending)).into_bytes()
    })
}

/// Files that are accepted as they are, so that the properties below speak of more than refusals.
fn static_credential() -> impl Strategy<Value = (Provider, Vec<u8>)> {
    let word = "[A-Za-z0-9][A-Za-z0-9/+]{0,30}";
    let aws = (word, "[!-~]{1,30}", prop::option::of(word)).prop_map(|(id, secret, token)| {
        let token = token.map(|token| format!("aws_session_token={token}\n")).unwrap_or_default();
        format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n{token}")
    });
    let azure = (word, "[!-~]{1,30}").prop_map(|(key, secret)| {
        format!("AZURE_STORAGE_ACCOUNT_ACCESS_KEY={key}\nAZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\nAZURE_CLIENT_SECRET='{secret}'\n")
    });
    let gcp = ("[A-Za-z0-9+/\n]{1,80}", "[a-z0-9-]{1,20}").prop_map(|(key, project)| {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
        serde_json::json!({"type": "service_account", "private_key": key, "client_email": "a@b.c", "project_id": project})
            .to_string()
    });
    prop_oneof![
        aws.prop_map(|text| (Provider::Aws, text.into_bytes())),
        azure.prop_map(|text| (Provider::Azure, text.into_bytes())),
        gcp.prop_map(|text| (Provider::Gcp, text.into_bytes())),
    ]
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    const ANY: &[KeyHandling] = &[KeyHandling::Kept, KeyHandling::Ignored, KeyHandling::Refused];
    let leaf = prop_oneof![
        4 => value().prop_map(Value::from),
        2 => Just(Value::from("service_account")),
        1 => Just(Value::from("https://oauth2.googleapis.com/token")),
        1 => any::<i32>().prop_map(Value::from),
        1 => Just(serde_json::json!({"file": MARK})),
    ];
    let entries = prop::collection::vec((keys_of(gcp::KEYS, ANY), leaf), 0..8);
    entries.prop_map(|entries| {
        let map: Map<String, Value> =
            entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Value::Object(map).to_string().into_bytes()
    })
}

fn file() -> impl Strategy<Value = (Provider, Vec<u8>)> {
    prop_oneof![
        3 => lined(aws::KEYS, "[default]\n").prop_map(|bytes| (Provider::Aws, bytes)),
        3 => lined(azure::KEYS, "").prop_map(|bytes| (Provider::Azure, bytes)),
        2 => json().prop_map(|bytes| (Provider::Gcp, bytes)),
        3 => static_credential(),
        1 => (provider(), prop::collection::vec(any::<u8>(), 0..200)),
    ]
}

/// The keys of a rendered file, read in the simplest way there is.
fn rendered_keys(credential: &Credential) -> Vec<String> {
    let text = credential.render();
    match credential {
        Credential::Gcp(_) => {
            let file: Map<String, Value> = serde_json::from_str(&text).expect("rendered JSON");
            file.keys().cloned().collect()
        }
        Credential::Aws(_) => {
            let mut lines = text.lines();
            assert!(lines.next().is_some_and(|first| first.starts_with('[') && first.ends_with(']')));
            lines.map(|line| line.split_once(" = ").expect("key = value").0.to_owned()).collect()
        }
        Credential::Azure(_) => {
            text.lines().map(|line| line.split_once('=').expect("KEY=value").0.to_owned()).collect()
        }
    }
}

fn table(provider: Provider) -> &'static [Rule] {
    match provider {
        Provider::Aws => aws::KEYS,
        Provider::Azure => azure::KEYS,
        Provider::Gcp => gcp::KEYS,
    }
}

/// Every word of the input that could be a value, long enough not to occur in a reason by chance.
fn told_a_value(bytes: &[u8], reported: &str) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let marked = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.contains(MARK));
    marked.into_iter().any(|word| reported.contains(word)) || reported.contains(MARK)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_accepted_is_read_again_as_the_same((provider, bytes) in file(), named in any::<bool>()) {
        let profile = named.then_some("default");
        if let Ok(credential) = parse(provider, &bytes, profile) {
            let again = parse(provider, credential.render().as_bytes(), profile);
            prop_assert_eq!(again.as_ref().ok(), Some(&credential));
            for key in rendered_keys(&credential) {
                let kept = table(provider).iter().any(|rule| rule.key == key && rule.verdict == KeyHandling::Kept);
                prop_assert!(kept, "{}", key);
            }
        }
    }

    #[test]
    fn no_refusal_repeats_a_value((provider, bytes) in file()) {
        if let Err(refusal) = parse(provider, &bytes, None) {
            prop_assert!(!told_a_value(&bytes, &refusal.to_string()), "{}", refusal);
        }
    }

    #[test]
    fn a_dangerous_key_is_never_accepted(
        (provider, bytes) in static_credential(),
        pick in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        capitals in any::<bool>(),
        between in prop::sample::select(vec!["=", " = ", "\t=\t", ": "]),
    ) {
        let refused: Vec<_> = table(provider).iter().filter(|rule| rule.verdict == KeyHandling::Refused).collect();
        let key = refused[pick.index(refused.len())].key;
        let key = if capitals { key.to_uppercase() } else { key.to_owned() };
        let text = String::from_utf8(bytes).expect("text");
        let planted = if provider == Provider::Gcp {
            text.replacen('{', &format!("{{\"{key}\": \"x\","), 1)
        } else {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.insert(place.index(lines.len() + 1), format!("{key}{between}x"));
            lines.join("\n")
        };
        prop_assert!(parse(provider, planted.as_bytes(), None).is_err(), "{}", planted);
    }

    #[test]
    fn most_static_credentials_are_accepted_as_they_are(suffix in "[A-Za-z0-9/+=.@!-]{1,40}") {
        let secret = format!("s{suffix}");
        let aws = format!("[default]\naws_access_key_id = a\naws_secret_access_key = {secret}\n");
        prop_assert_eq!(parse(Provider::Aws, aws.as_bytes(), None).map(|found| found.render()), Ok(aws));
        let azure = format!("AZURE_STORAGE_ACCOUNT_ACCESS_KEY={secret}\n");
        prop_assert!(parse(Provider::Azure, azure.as_bytes(), None).is_ok());
    }
}
