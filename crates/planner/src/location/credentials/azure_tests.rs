use super::super::{Credential, LONGEST_VALUE, parse};
use super::{ACCESS_KEY, Account, KEYS};
use crate::location::provider::Provider;
use crate::location::table::KeyHandling;

const PRINCIPAL: &str = "AZURE_CLIENT_ID=c-1\nAZURE_CLIENT_SECRET=s~e.c_\nAZURE_TENANT_ID=t.example\n";
const KEY: &str = "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a+b/c==\n";

fn account(text: &str) -> Result<Account, String> {
    match parse(Provider::Azure, text.as_bytes(), None) {
        Ok(Credential::Azure(account)) => Ok(account),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => Err(refusal.to_string()),
    }
}

fn read(text: &str) -> Result<String, String> {
    account(text).map(|account| account.render())
}

#[test]
fn what_is_kept_is_written_anew() {
    assert_eq!(read(KEY).as_deref(), Ok(KEY));
    assert_eq!(read(PRINCIPAL).as_deref(), Ok(PRINCIPAL));
    let whole = "# x\n\nexport AZURE_SUBSCRIPTION_ID=\"s-1\"\r\nAZURE_RESOURCE_GROUP='g (1)'\n"
        .replace(" (", "(")
        + "AZURE_CLOUD_NAME = azurepubliccloud\n"
        + KEY;
    let wanted = "AZURE_CLOUD_NAME=AzurePublicCloud\nAZURE_RESOURCE_GROUP='g(1)'\n\
                  AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a+b/c==\nAZURE_SUBSCRIPTION_ID=s-1\n";
    assert_eq!(read(&whole).as_deref(), Ok(wanted));
    let signs = PRINCIPAL.replace("s~e.c_", "'a#b$c{}'");
    assert_eq!(read(&signs).as_deref(), Ok(signs.as_str()));
}

#[test]
fn it_knows_what_it_can_do() {
    let both = account(&format!("{PRINCIPAL}{KEY}AZURE_CLOUD_NAME=AzureChinaCloud\n")).unwrap();
    assert!(both.has_access_key() && both.has_service_principal());
    assert_eq!(both.blob_domain(), "blob.core.chinacloudapi.cn");
    let key = account(KEY).unwrap();
    assert!(key.has_access_key() && !key.has_service_principal());
    assert_eq!(key.blob_domain(), "blob.core.windows.net");
}

#[test]
fn refusals_name_line_and_key() {
    let secret = "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\n";
    let none = "the file holds neither AZURE_STORAGE_ACCOUNT_ACCESS_KEY nor a service principal; without one Velero would use the identity of its own pod";
    let cases = [
        ("", none),
        ("AZURE_SUBSCRIPTION_ID=x\n", none),
        (secret, "AZURE_CLIENT_SECRET is missing; without it Velero would use the identity of its own pod"),
        (
            "\nAZURE_CLIENT_CERTIFICATE_PATH=/x\n",
            "line 2: AZURE_CLIENT_CERTIFICATE_PATH reads a file in Velero's pod; take it out",
        ),
        (
            "AZURE_CLOUD_NAME=Mine\n",
            "line 1: AZURE_CLOUD_NAME is no cloud of Azure's; write AzurePublicCloud, AzureChinaCloud or AzureUSGovernment",
        ),
        (
            "AZURE_RESOURCE_GROUP=../x\n",
            "line 1: AZURE_RESOURCE_GROUP can only have letters, digits, dots, dashes, underscores and brackets",
        ),
        ("AZURE_TENANT_ID=../x\n", "line 1: AZURE_TENANT_ID can only have letters, digits, dots and dashes"),
        (
            "AZURE_CLIENT_SECRET=a#b\n",
            "line 1: AZURE_CLIENT_SECRET holds a sign with a meaning of its own; put the value in single quotes",
        ),
        (
            "AZURE_CLIENT_SECRET=a\\b\n",
            "line 1: AZURE_CLIENT_SECRET holds blanks, quotation marks or backslashes where none can be",
        ),
        ("AZURE_CLIENT_SECRET=''\n", "line 1: AZURE_CLIENT_SECRET is empty; give it a value or take it out"),
        ("HTTPS_PROXY=http://x\n", "line 1: HTTPS_PROXY is not a key that nacre knows; take it out"),
        ("LD_PRELOAD=/x\n", "line 1: LD_PRELOAD is not a key that nacre knows; take it out"),
        ("AZURE_CLIENT_ID: x\n", "line 1 is not of the form KEY=value"),
    ];
    for (given, wanted) in cases {
        assert_eq!(read(given), Err(wanted.to_owned()), "{given:?}");
    }
    assert!(read(&format!("{KEY}{KEY}")).unwrap_err().contains("twice"));
    assert!(
        read(&format!("{ACCESS_KEY}={}\n", "a".repeat(LONGEST_VALUE + 1))).unwrap_err().contains("too long")
    );
    assert!(read(&format!("{ACCESS_KEY}={}\n", "a".repeat(LONGEST_VALUE))).is_ok());
    assert_eq!(
        read("AZURE_CLIENT_ID=c\nAZURE_TENANT_ID=t\n\u{1}"),
        Err("line 3 holds a control character; type it again".to_owned())
    );
    let binary = parse(Provider::Azure, b"AZURE_CLIENT_ID=c\n\xff", None).unwrap_err();
    assert_eq!(binary.to_string(), "line 2 is not text");
}

#[test]
fn what_readers_could_differ_about_is_refused() {
    for given in [
        "azure_storage_account_access_key=x\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a b\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY='a'b'\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=\"a\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=\"$HOME\"\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a # b\n",
        " AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY=a`b\n",
        "AZURE_STORAGE_ACCOUNT_ACCESS_KEY:a=b\n",
    ] {
        assert!(read(given).is_err(), "{given:?}");
    }
}

#[test]
fn each_dangerous_key_is_refused_wherever_it_stands() {
    for rule in KEYS.iter().filter(|rule| rule.verdict == KeyHandling::Refused) {
        for given in [
            format!("{}=x\n{KEY}", rule.key),
            format!("{KEY}export {} = 'x'\n", rule.key),
            format!("{KEY}{}=\n{PRINCIPAL}", rule.key),
        ] {
            let refusal = parse(Provider::Azure, given.as_bytes(), None).unwrap_err();
            assert_eq!(refusal.key.as_deref(), Some(rule.key), "{given:?}");
        }
    }
}
