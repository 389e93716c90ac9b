//! The policies in the guides are valid: whoever copies one gets what it says.

use planner::policy::{IN_APPLICATIONS, check, examine};

/// Every page that shows policies.
const PAGES: [(&str, &str); 4] = [
    ("admin-guide.md", include_str!("../../../../docs/admin-guide.md")),
    ("ten-policies.md", include_str!("../../../../docs/ten-policies.md")),
    ("policy.md", include_str!("../../../../docs/policy.md")),
    ("user-guide.md", include_str!("../../../../docs/user-guide.md")),
];

/// The blocks of YAML on a page that are no manifests.
fn policies(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| !block.contains("kind:"))
}

#[test]
fn every_policy_in_the_guides_is_valid() {
    let mut checked = 0;
    for (name, page) in PAGES {
        for block in policies(page) {
            assert_eq!(check(block), [], "in docs/{name}:\n{block}");
            checked += 1;
        }
    }
    assert!(checked > 0, "no page shows a policy any more");
}

/// The blocks of YAML on a page that are applications.
fn applications(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains("kind: DataProtectionApplication"))
}

#[test]
fn every_application_in_the_guides_is_valid() {
    let mut checked = 0;
    for (name, page) in PAGES {
        for block in applications(page) {
            assert_eq!(examine(block).problems, [], "in docs/{name}:\n{block}");
            checked += 1;
        }
    }
    assert!(checked > 0, "no page shows an application any more");
}

/// Whoever looks for a switch by its name finds it in the administrator's guide, explained and in an example.
#[test]
fn every_switch_of_an_application_is_in_the_guide() {
    let (_, guide) = PAGES[0];
    let example = applications(guide).next().unwrap();
    for (ours, theirs) in IN_APPLICATIONS {
        assert!(guide.contains(&format!("| `{theirs}` | `{ours}` |")), "{theirs}");
        assert!(example.contains(theirs), "{theirs}");
    }
    for key in ["storageLocations.mode", "restore.fromTenantStorage", "downloads.platformStorage"] {
        assert!(guide.contains(&format!("| `{key}` |")), "{key}");
    }
}
