//! The manifests in `deploy` and the tables in `docs` match the planner.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chart;
mod olm;
mod olm_format;

use std::fs;
use std::path::Path;

use api::Kind;
use planner::Object;
use planner::install::{Part, SERVICE_ACCOUNT, Settings};
use planner::location::table::KeyHandling;
use planner::location::{config, credentials};

/// `make gen` sets this to write the files instead of comparing them.
const WRITE: &str = "NACRE_GEN";

#[test]
fn the_shipped_manifests_are_current() {
    let settings = Settings::default();
    let files = [
        ("nacre.yaml", Part::Controller),
        ("admission.yaml", Part::Admission),
        // Only for API servers that know such policies.
        ("requester.yaml", Part::Requester),
        // For all others: nacre's webhook does it.
        ("requester-webhook.yaml", Part::RequesterWebhook),
        // Only for clusters in which tenants are to use Velero's own tools.
        ("velero-view.yaml", Part::VeleroView),
    ];
    for (file, part) in files {
        is_current(file, part.objects(&settings, SERVICE_ACCOUNT));
    }
}

/// Whether an object is a policy that changes objects, or the binding of one.
fn is_mutation(object: &Object) -> bool {
    matches!(object.kind, Kind::MutatingAdmissionPolicy | Kind::MutatingAdmissionPolicyBinding)
}

fn is_current(name: &str, objects: Vec<Object>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    let parts = objects.into_iter().map(|object| serde_saphyr::to_string(&object.body).unwrap());
    let wanted = parts.collect::<Vec<_>>().join("---\n");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &wanted).expect("a file that can be written");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

#[test]
fn the_guides_tables_of_keys_are_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/storage-keys.md");
    let wanted = keys();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == wanted, "{} is stale: run `make gen`", file.display());
}

/// What becomes of each key a tenant can write into a credential or a location, as the code has it.
fn keys() -> String {
    let head = "# Keys of tenants' storage\n\n\
         Made by `make gen` from the tables that nacre decides by. A key that is in none of them is refused as well. \
         Credentials are parsed and generated again: only the keys listed as kept reach Velero.\n";
    let all = [("Credential", credentials::TABLES), ("Configuration", config::TABLES)];
    let tables =
        all.into_iter().flat_map(|(what, tables)| tables.iter().map(move |(of, rules)| (what, of, rules)));
    let texts = tables.map(|(what, provider, rules)| {
        let rows = rules.iter().map(|rule| {
            let verdict = match rule.verdict {
                KeyHandling::Kept => "checked and kept",
                KeyHandling::Ignored => "left out",
                KeyHandling::Refused => "**refused**",
            };
            format!("| `{}` | {verdict} | {} |\n", rule.key, rule.why.replace('|', "\\|"))
        });
        let rows: String = rows.collect();
        format!("\n## {what}: {provider}\n\n| key | what becomes of it | why |\n| --- | --- | --- |\n{rows}")
    });
    head.to_owned() + &texts.collect::<String>()
}
