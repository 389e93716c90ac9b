use super::super::{Credential, LARGEST_FILE, LONGEST_VALUE, parse};
use super::{KEYS, is_profile};
use crate::location::provider::Provider;
use crate::location::table::KeyHandling;

const GOOD: &str = "[default]\naws_access_key_id = AKIA1\naws_secret_access_key = se/cr+et=\n";

fn read(text: &str, profile: Option<&str>) -> Result<String, String> {
    parse(Provider::Aws, text.as_bytes(), profile)
        .map(|credential| credential.render())
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn what_is_kept_is_written_anew() {
    let cases = [
        ("plain", GOOD, GOOD),
        ("tight", "[default]\naws_access_key_id=AKIA1\naws_secret_access_key=se/cr+et=", GOOD),
        ("crlf", "[default]\r\naws_access_key_id = AKIA1\r\naws_secret_access_key = se/cr+et=\r\n", GOOD),
        (
            "capitals, comments, quotes, tabs",
            "# ключ\n\n  ; x\n[ profile\tdefault ] # y\nAWS_Access_Key_ID\t=\t\"AKIA1\" # z\naws_secret_access_key = 'se/cr+et='\t;z\n",
            GOOD,
        ),
        (
            "region and output go",
            "[default]\nregion = eu-west-1\noutput =\naws_access_key_id = AKIA1\naws_secret_access_key = se/cr+et=\n",
            GOOD,
        ),
        ("a single profile is the default one", &GOOD.replace("default", "backup"), GOOD),
        ("the default one of several", &format!("{GOOD}[other]\nregion = x\n"), GOOD),
    ];
    for (case, given, wanted) in cases {
        assert_eq!(read(given, None).as_deref(), Ok(wanted), "{case}");
    }
    let token = format!("{GOOD}aws_session_token = to/ken\n");
    assert_eq!(read(&token, None).as_deref(), Ok(token.as_str()));
    let named = format!("{}{}", GOOD, GOOD.replace("default", "b"));
    assert_eq!(read(&named, Some("b")), Ok(GOOD.replace("default", "b")));
}

#[test]
fn refusals_name_line_and_key() {
    let smuggled = format!("{GOOD}credential_process = /bin/sh\n");
    let cases = [
        (smuggled.as_str(), "line 4: credential_process runs a program in Velero's pod; take it out"),
        ("", "the file holds no profile; write [default] and the two keys below it"),
        (
            "aws_access_key_id = a\n",
            "line 1: aws_access_key_id stands before any profile; put [default] above it",
        ),
        (
            "[default]\naws_secret_access_key = s\n",
            "line 1: aws_access_key_id is missing from this profile; without it Velero would use an identity of its own",
        ),
        (
            "[default]\naws_access_key_id =\n",
            "line 2: aws_access_key_id is empty; without it Velero would use an identity of its own",
        ),
        (
            "[default]\naws_secret_key = x\n",
            "line 2: aws_secret_key is not a key that nacre knows; take it out",
        ),
        ("[default]\nwJalrXUtn/FEMI=\n", "line 2 holds a key that nacre does not know; take it out"),
        ("[default]\nnonsense\n", "line 2 is not of the form key = value"),
        (
            "[default]\n  role_arn = x\n",
            "line 2 begins with a blank, which makes it part of the line above; write every key at the start of its line",
        ),
        ("[services x]\n", "line 1 begins a section that is not a profile; take it out"),
        ("[a\n", "line 1 is not the name of a profile; write for example [default]"),
        ("\u{feff}[default]\n", "the file begins with a byte order mark; save it without one"),
        (
            "[default]\nregion = a\rcredential_process = x\n",
            "line 2 holds a control character; type it again",
        ),
        (
            "[default]\naws_access_key_id\u{a0}= x\n",
            "line 2 holds a character that is not ASCII; type it again",
        ),
        (
            "[a]\n[b]\n",
            "the file holds several profiles and no [default]; name one as profile in the configuration of the location",
        ),
    ];
    for (given, wanted) in cases {
        assert_eq!(read(given, None), Err(wanted.to_owned()), "{given:?}");
    }
    let named = read(GOOD, Some("other"));
    assert_eq!(
        named,
        Err("the file does not hold the profile that the configuration of the location names".to_owned())
    );
}

/// Each is a good file but for one thing.
#[test]
fn what_readers_could_differ_about_is_refused() {
    let long = "a".repeat(20_000);
    let comment = format!("#{}\n[default]", "a".repeat(40_000));
    for (part, instead) in [
        ("AKIA1", "a b"),
        ("AKIA1", "a\tb"),
        ("AKIA1", "\"a"),
        ("AKIA1", "a'"),
        ("AKIA1", "\""),
        ("AKIA1", "\"\""),
        ("AKIA1", "'\"a\"'"),
        ("AKIA1", "\"#a\""),
        ("= AKIA1", "=#a"),
        ("= AKIA1", "=;a"),
        ("= AKIA1", ": a"),
        ("= AKIA1", "= # a"),
        ("AKIA1", &long),
        ("aws_access_key_id =", "= "),
        ("aws_access_key_id =", "aws_access_key_id\0 ="),
        ("aws_access_key_id =", "\taws_access_key_id ="),
        ("[default]", &comment),
        ("[default]", "[default] [other]"),
        ("[default]", "[default]x"),
        ("[default]", "[de fau lt]"),
        ("[default]", "[other default]"),
        ("[default]", "[def#ault]"),
        ("[default]", "[]"),
        ("[default]", "default"),
        ("et=\n", "et=\nAWS_ACCESS_KEY_ID = b\n"),
        ("et=\n", "et=\n[default]\n"),
        ("et=\n", "et=\n[profile default]\n"),
        ("et=\n", "et=\n[Default]\n"),
        ("et=\n", "et=\nnonsense\n"),
    ] {
        let given = GOOD.replacen(part, instead, 1);
        assert_ne!(given, GOOD);
        assert!(read(&given, None).is_err(), "{instead:.30?}");
    }
    assert!(parse(Provider::Aws, &[GOOD.as_bytes(), b"# \xff"].concat(), None).is_err());
}

#[test]
fn each_dangerous_key_is_refused_wherever_it_stands() {
    let refused: Vec<_> = KEYS.iter().filter(|rule| rule.verdict == KeyHandling::Refused).collect();
    assert!(refused.len() > 30);
    for rule in refused {
        for given in [
            format!("{} = x\n{GOOD}", rule.key),
            format!("{GOOD}{} = x\n", rule.key),
            format!("{GOOD}{}=\n", rule.key.to_uppercase()),
            format!("{GOOD}[other]\n{} = x\n", rule.key),
            format!("[other]\n{}\t= x\n{GOOD}", rule.key),
        ] {
            let refusal = parse(Provider::Aws, given.as_bytes(), Some("default")).unwrap_err();
            assert_eq!(refusal.key.as_deref(), Some(rule.key), "{given:?}");
        }
    }
}

#[test]
fn profiles_have_plain_names() {
    assert!(is_profile("default") && is_profile("team-1_a.b"));
    assert!(!is_profile("") && !is_profile("a b") && !is_profile("a]") && !is_profile(&"a".repeat(65)));
}

#[test]
fn secrets_stay_out_of_logs() {
    let credential = parse(Provider::Aws, GOOD.as_bytes(), None).unwrap();
    assert_eq!(format!("{credential:?}"), "Credential(aws)");
    let Credential::Aws(keys) = credential else { panic!("keys of AWS") };
    assert_eq!(keys.profile(), "default");
}

#[test]
fn files_and_values_are_as_long_as_they_may_be() {
    let keys = |many: usize| {
        format!("[default]\naws_access_key_id = {}\naws_secret_access_key = s\n", "a".repeat(many))
    };
    assert!(read(&keys(LONGEST_VALUE), None).is_ok());
    assert!(read(&keys(LONGEST_VALUE + 1), None).unwrap_err().ends_with("is too long"));
    let file = |many: usize| format!("{:#<many$}", format!("{}#", keys(1)));
    assert!(read(&file(LARGEST_FILE), None).is_ok());
    assert!(read(&file(LARGEST_FILE + 1), None).unwrap_err().contains("too long for a credential"));
}
