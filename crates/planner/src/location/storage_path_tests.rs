use api::velero::BackupStorageLocationSpec;
use serde_json::json;

use super::{StoragePath, endpoint_of};

fn spec(provider: &str, config: &[(&str, &str)], bucket: &str, prefix: &str) -> BackupStorageLocationSpec {
    let config: serde_json::Map<_, _> =
        config.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let spec = json!({
        "provider": provider,
        "config": config,
        "objectStorage": { "bucket": bucket, "prefix": prefix },
    });
    serde_json::from_value(spec).unwrap()
}

fn s3(url: &str, bucket: &str, prefix: &str) -> StoragePath {
    StoragePath::of(&spec("aws", &[("s3Url", url)], bucket, prefix))
}

fn region(region: &str, bucket: &str, prefix: &str) -> StoragePath {
    StoragePath::of(&spec("velero.io/aws", &[("region", region)], bucket, prefix))
}

/// Both ways round, always.
fn meet(one: &StoragePath, other: &StoragePath) -> bool {
    assert_eq!(one.overlaps(other), other.overlaps(one), "{one:?} {other:?}");
    assert!(one.overlaps(one) && other.overlaps(other));
    one.overlaps(other)
}

#[test]
fn prefixes_are_compared_by_segment() {
    let at = |prefix: &str| s3("https://store.example.com", "b", prefix);
    for (one, other) in
        [("shop", "shop"), ("shop", "shop/a"), ("", "shop"), ("shop/./a", "shop"), ("x/../shop", "shop")]
    {
        assert!(meet(&at(one), &at(other)), "{one} {other}");
    }
    for (one, other) in [("shop", "shop2"), ("shop/a", "shop/b"), ("shop/a", "shop/ab"), ("a", "b")] {
        assert!(!meet(&at(one), &at(other)), "{one} {other}");
    }
    assert!(!meet(&at("shop"), &s3("https://store.example.com", "c", "shop")));
    let root = s3("https://store.example.com", "b", "../../c");
    assert!(!meet(&root, &s3("https://store.example.com", "c", "")), "nothing leads out of a bucket");
}

#[test]
fn a_tenant_is_below_its_namespace() {
    let asked = |namespace: &str| StoragePath::asked(&spec("aws", &[("region", "r")], "b", "p"), namespace);
    assert_eq!(asked("shop"), region("r", "b", "shop/p"));
    assert!(!meet(&asked("shop"), &asked("other")));
    assert!(
        meet(&asked("shop"), &region("r", "b", "")),
        "the cluster's own storage at the root of the bucket"
    );
}

#[test]
fn one_store_has_many_names() {
    let here = s3("https://minio.shop.svc:9000", "b", "p");
    for url in
        ["http://minio.shop.svc:9000/", "http://MINIO.shop.svc.cluster.local:9000", "http://minio.shop:9000"]
    {
        assert!(meet(&here, &s3(url, "b", "p")), "{url}");
    }
    for url in ["http://minio.shop.svc", "http://minio.shop2.svc:9000", "http://minio.example.com:9000"] {
        assert!(!meet(&here, &s3(url, "b", "p")), "{url}");
    }
    assert!(meet(&s3("http://minio.svc", "b", "p"), &s3("http://minio.svc.cluster.local", "b", "p")));
    assert!(meet(&s3("https://a.example.com:443", "b", "p"), &s3("http://a.example.com", "b", "p")));
    assert!(meet(&s3("https://[::ffff:10.1.2.3]", "b", "p"), &s3("http://10.1.2.3", "b", "p")));
}

/// C10: the same store under two names, an address and a name, so that two locations share a place in a bucket
#[test]
fn c10_an_address_may_be_any_name_of_a_store() {
    let named = s3("http://minio.shop.svc:9000", "b", "shop/p");
    for url in ["http://10.1.2.3:9000", "http://[fd00::7]:9000"] {
        assert!(meet(&named, &s3(url, "b", "shop/p")) && meet(&named, &s3(url, "b", "")), "{url}");
        assert!(
            !meet(&named, &s3(url, "other", "shop/p")) && !meet(&named, &s3(url, "b", "office")),
            "{url}"
        );
    }
    assert!(!meet(&named, &s3("http://10.1.2.3:9001", "b", "shop/p")), "another port is another store");
    assert!(
        !meet(&region("eu-west-1", "b", "p"), &s3("https://10.1.2.3", "b", "p")),
        "a cloud's names are its own"
    );
    assert!(!meet(&s3("http://10.1.2.3", "b", "p"), &s3("http://10.1.2.4", "b", "p")));
}

#[test]
fn a_bucket_may_be_a_host() {
    let plain = s3("https://store.example.com", "b", "shop/p");
    assert!(meet(&plain, &s3("https://b.store.example.com", "shop", "")));
    assert!(!meet(&plain, &s3("https://b.store.example.com", "other", "")));
    assert!(!meet(&plain, &s3("https://c.store.example.com", "shop", "")));
    assert!(!meet(&plain, &s3("https://bstore.example.com", "shop", "")));
}

#[test]
fn all_of_amazon_is_one_store() {
    let here = region("eu-west-1", "b", "p");
    for other in [
        region("us-east-1", "b", "p"),
        region("", "b", "p"),
        s3("https://s3.amazonaws.com", "b", "p"),
        s3("https://s3-eu-west-1.amazonaws.com", "b", "p"),
        s3("https://s3.dualstack.eu-west-1.amazonaws.com", "b", "p"),
        s3("https://b.s3.eu-west-1.amazonaws.com", "p", ""),
        s3("https://bucket.vpce-1a.s3.eu-west-1.vpce.amazonaws.com", "b", "p"),
    ] {
        assert!(meet(&here, &other), "{other:?}");
    }
    // Only on a private way "bucket" is no bucket, and there the bucket itself may come before it.
    assert!(meet(&region("r", "bucket", "p"), &s3("https://bucket.s3.eu-west-1.amazonaws.com", "p", "")));
    assert!(meet(&here, &s3("https://b.bucket.vpce-1a.s3.eu-west-1.vpce.amazonaws.com", "p", "")));
    assert!(!meet(&here, &region("cn-north-1", "b", "p")), "another partition");
    assert!(!meet(&here, &region("eu-west-1", "c", "p")));
}

#[test]
fn google_and_azure_are_known_by_any_provider() {
    let google = StoragePath::of(&spec("gcp", &[], "b", "p"));
    assert!(meet(&google, &s3("https://storage.googleapis.com", "b", "p")));
    assert!(meet(&google, &s3("https://b.storage.googleapis.com", "p", "")));
    assert!(!meet(&google, &region("r", "b", "p")));
    let azure = |config: &[(&str, &str)]| StoragePath::of(&spec("azure", config, "b", "p"));
    let account = azure(&[("storageAccount", "shop")]);
    let uri =
        azure(&[("storageAccount", "shop"), ("storageAccountURI", "https://shop.blob.core.windows.net/")]);
    let zone = azure(&[("storageAccountURI", "https://shop.z17.blob.storage.azure.net")]);
    assert!(meet(&account, &uri) && meet(&account, &zone));
    assert!(!meet(&account, &azure(&[("storageAccount", "shop2")])));
    let nobodys = |host: &str| s3(&format!("https://blob.core.{host}"), "b", "p");
    assert!(!meet(&nobodys("example.com"), &nobodys("example.net")), "without an account it is any host");
}

#[test]
fn an_approver_sees_where_it_is() {
    let shown = |provider: &str, config: &[(&str, &str)]| {
        endpoint_of(&spec(provider, config, "b", "")).map(|endpoint| endpoint.to_string())
    };
    assert_eq!(
        shown("aws", &[("s3Url", "HTTP://Minio.Shop.svc:80/")]).as_deref(),
        Some("http://minio.shop.svc")
    );
    assert_eq!(
        shown("aws", &[("region", "eu-west-1")]).as_deref(),
        Some("https://s3.eu-west-1.amazonaws.com")
    );
    assert_eq!(shown("example.io/x", &[]), None);
}

#[test]
fn what_cannot_be_read_is_compared_as_it_stands() {
    let odd = s3("https://127.1:9000", "b", "p");
    assert!(meet(&odd, &s3("HTTPS://127.1:9000", "b", "p/q")));
    assert!(!meet(&odd, &s3("https://127.2:9000", "b", "p")));
    let plugin = |name: &str| StoragePath::of(&spec(name, &[], "b", "p"));
    assert!(meet(&plugin("example.io/x"), &plugin("example.io/x")));
    assert!(!meet(&plugin("example.io/x"), &plugin("example.io/y")));
    let like_s3 = StoragePath::of(&spec("example.io/x", &[("s3Url", "https://a.example.com")], "b", "p"));
    assert!(meet(&like_s3, &s3("https://a.example.com", "b", "p")));
}
