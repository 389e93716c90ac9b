//! What an application says about the controller.

use api::DataProtectionApplication;
use serde_json::Value;

use crate::install::Settings;

/// Whether it wants the controller; off unless it says so. What stands where released OADP has it takes precedence over
/// where the design documents put it.
pub fn enabled(one: &DataProtectionApplication) -> bool {
    let released = one.spec.non_admin.as_ref().and_then(|block| block.enable);
    let seeded = one.spec.features.as_ref().and_then(|all| all.non_admin.as_ref()?.enable);
    released.or(seeded).unwrap_or_default()
}

/// How it wants the controller, as OADP's operator reads it.
pub fn settings(one: &DataProtectionApplication, namespace: &str, image: &str) -> Settings {
    let rest = |key: &str| one.spec.rest.get(key);
    let overrides = rest("unsupportedOverrides").and_then(|all| all.get("nonAdminControllerImageFqin"));
    let level = rest("configuration").and_then(|all| all.get("velero")?.get("logLevel"));
    let defaults = Settings::default();
    Settings {
        namespace: namespace.to_owned(),
        image: text(overrides).unwrap_or(image).to_owned(),
        log_level: text(level).and_then(number).unwrap_or(defaults.log_level),
        log_format: text(rest("logFormat")).unwrap_or(&defaults.log_format).to_owned(),
        ..defaults
    }
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The names of the logger that OADP is written with.
fn number(level: &str) -> Option<u8> {
    Some(match level.to_ascii_lowercase().as_str() {
        "panic" => 0,
        "fatal" => 1,
        "error" => 2,
        "warn" | "warning" => 3,
        "info" => 4,
        "debug" => 5,
        "trace" => 6,
        _ => return None,
    })
}
