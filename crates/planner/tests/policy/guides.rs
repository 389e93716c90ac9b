//! The policies in the guides are valid: whoever copies one gets what it says.

use planner::policy::check;

/// Every page that shows policies.
const PAGES: [(&str, &str); 3] = [
    ("admin-guide.md", include_str!("../../../../docs/admin-guide.md")),
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
