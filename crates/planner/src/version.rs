//! What `--version` prints: nacre's version, the commit it was built from, and the versions of Velero and Kubernetes that it is
//! made for. `docs/compatibility.md` has what was run.

/// The oldest and the newest version of Velero that nacre works with.
pub const VELERO: (&str, &str) = ("1.14", "1.18");
/// The same of Kubernetes.
pub const KUBERNETES: (&str, &str) = ("1.30", "1.36");

/// As `--version` prints it, without the program's name. `make release` sets the commit.
pub fn text(commit: Option<&str>) -> String {
    let commit = commit.filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    format!(
        "{} (commit {commit}, Velero {} to {}, Kubernetes {} to {})",
        env!("CARGO_PKG_VERSION"),
        VELERO.0,
        VELERO.1,
        KUBERNETES.0,
        KUBERNETES.1
    )
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn it_names_commit_and_ranges() {
        let version = env!("CARGO_PKG_VERSION");
        let rest = "Velero 1.14 to 1.18, Kubernetes 1.30 to 1.36)";
        assert_eq!(text(Some("0123abcd")), format!("{version} (commit 0123abcd, {rest}"));
        assert_eq!(text(None), format!("{version} (commit unknown, {rest}"));
        assert_eq!(text(Some("")), text(None));
    }
}
