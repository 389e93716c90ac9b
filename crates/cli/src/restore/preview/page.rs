//! A preview, for people.

use std::collections::BTreeMap;

use anstyle::Style;
use indicatif::HumanBytes;
use planner::restore_preview::{Difference, Effect, LeftOutBy, ObjectPreview, VolumeEffect, VolumePreview};

use super::{KindPreview, Removed, RestorePreview};
use crate::{
    allowed::Source,
    describe::page::{Page, section, top as top_lines},
    output::lines,
    style,
    table::{Cell, Table},
    text::{count, printable},
};

/// How many fields of an object are named on its line.
const FIELDS: usize = 4;

pub(super) fn page(answer: &RestorePreview) -> Page {
    top(answer) + objects_section(answer) + end(answer)
}

/// What comes before the objects.
fn top(answer: &RestorePreview) -> Page {
    let head =
        format!("restore from {} into namespace {}: {}", answer.backup, answer.namespace, headline(answer));
    let mut top = vec![head];
    top.extend(answer.reason.as_ref().map(|why| format!("  {}", printable(why))));
    if answer.objects_known {
        top.push(format!("  {}", summary(answer.preview.objects.iter())));
    }
    top_lines(top) + answer.removed.as_ref().map(removed).unwrap_or_default()
}

fn objects_section(answer: &RestorePreview) -> Page {
    section("Objects", objects(&answer.preview.objects))
}

/// What comes after the objects.
pub(super) fn end(answer: &RestorePreview) -> Page {
    let mut open: Vec<String> = answer.unknown.iter().map(|why| printable(why)).collect();
    if !answer.objects_known {
        open.push("so it cannot be said which objects come back; what exists stays as it is".to_owned());
    }
    if answer.policy == Source::Unreadable {
        open.push(
            "whether the administrators have set more rules: this is what holds if they have set none"
                .to_owned(),
        );
    }
    let permit = "What an administrator would run to permit the rest";
    section("Data of volumes", volumes(&answer.preview.volumes))
        + section(permit, lines_or_nothing(answer.commands.clone()))
        + section("Not known", lines_or_nothing(open))
}

/// What goes first, and which claims stay.
fn removed(removed: &Removed) -> Page {
    let claims = removed.claims.iter().map(|name| format!("claim {name}, with the data in it"));
    let goes = removed.workloads.iter().cloned().chain(claims);
    let kept = removed.kept.iter().map(|(name, why)| format!("claim {name}: {}", printable(why)));
    section("Removed first", lines_or_nothing(goes.collect()))
        + section("Claims that stay", lines_or_nothing(kept.collect()))
}

/// What would become of the request, and the numbers.
pub(super) fn in_short(answer: &RestorePreview) -> (&'static str, String) {
    let known = answer.objects_known.then(|| summary(answer.preview.objects.iter()));
    (words(answer), known.unwrap_or_default())
}

/// The objects in the backup, kind by kind: which can be chosen, each with what would become of its objects.
pub(super) fn kinds(answer: &RestorePreview) -> Vec<KindPreview<'_>> {
    let mut kinds: BTreeMap<&str, Vec<&ObjectPreview>> = BTreeMap::new();
    for object in &answer.preview.objects {
        kinds.entry(object.resource.as_str()).or_default().push(object);
    }
    kinds.into_iter().map(|(resource, objects)| kind(resource, &objects)).collect()
}

fn kind<'a>(resource: &'a str, objects: &[&'a ObjectPreview]) -> KindPreview<'a> {
    let shown = objects.iter().map(|object| {
        let (word, style, why) = in_words(&object.effect);
        (object.name.as_str(), Cell::painted(style, word), why)
    });
    KindPreview {
        resource,
        summary: summary(objects.iter().copied()),
        is_chosen: objects.iter().any(|object| !matches!(object.effect, Effect::LeftOut { .. })),
        can_be_chosen: objects.iter().any(|object| match &object.effect {
            Effect::LeftOut { by } => matches!(by, LeftOutBy::Request(_)),
            _ => true,
        }),
        objects: shown.collect(),
    }
}

/// `resource/name` of everything that would be created or changed.
pub(super) fn names(answer: &RestorePreview) -> Vec<String> {
    let changed =
        |object: &&ObjectPreview| object.effect.creates() || matches!(object.effect, Effect::Updated { .. });
    let objects = answer.preview.objects.iter().filter(changed);
    objects.map(|object| format!("{}/{}", object.resource, object.name)).collect()
}

fn lines_or_nothing(texts: Vec<String>) -> String {
    if texts.is_empty() { String::new() } else { lines(texts) }
}

fn headline(answer: &RestorePreview) -> String {
    match answer.verdict {
        "passes" => style::paint(style::GOOD, words(answer)),
        "refused" => style::bad(words(answer)),
        _ => style::paint(style::WARNING, words(answer)),
    }
}

fn words(answer: &RestorePreview) -> &'static str {
    match answer.verdict {
        "passes" => "would pass",
        "refused" => "would be refused",
        "unknown" => "the policy could not be checked",
        _ => "would have to wait",
    }
}

/// Words for an effect, their style, and the reason.
fn in_words(effect: &Effect) -> (&'static str, Style, String) {
    match effect {
        Effect::Created => ("created", style::GOOD, String::new()),
        Effect::CreatedUnlessCompleted => ("created", style::GOOD, "unless it had completed".to_owned()),
        Effect::Replaced => ("replaced", style::WARNING, "it is removed first".to_owned()),
        Effect::Same => ("stays", style::QUIET, "it exists as it is in the backup".to_owned()),
        Effect::Kept { differences: None } => ("stays as it is", style::WARNING, "it exists".to_owned()),
        Effect::Kept { differences: Some(fields) } => (
            "stays as it is",
            style::WARNING,
            format!("it exists; other than in the backup: {}", named(fields)),
        ),
        Effect::Updated { differences: None } => ("changed", style::WARNING, "if it differs".to_owned()),
        Effect::Updated { differences: Some(fields) } => ("changed", style::WARNING, named(fields)),
        Effect::WithItsClaim => ("with its claim", style::QUIET, "or the claim gets a new volume".to_owned()),
        Effect::LeftOut { by } => ("left out", style::QUIET, by.to_string()),
        Effect::Unknown { why } => ("unknown", style::WARNING, why.clone()),
    }
}

fn named(fields: &[Difference]) -> String {
    let mut names: Vec<&str> =
        fields.iter().take(FIELDS).map(|difference| difference.field.as_str()).collect();
    let more = format!("{} more", fields.len().saturating_sub(FIELDS));
    if fields.len() > FIELDS {
        names.push(&more);
    }
    names.join(", ")
}

/// How many objects there are of each effect.
fn summary<'a>(objects: impl IntoIterator<Item = &'a ObjectPreview>) -> String {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for object in objects {
        *counts.entry(in_words(&object.effect).0).or_default() += 1;
    }
    // A word for each that fits after any number.
    let order = [
        ("created", "created"),
        ("replaced", "replaced"),
        ("changed", "changed"),
        ("stays", "the same already"),
        ("stays as it is", "kept as now"),
        ("with its claim", "with a claim"),
        ("left out", "left out"),
        ("unknown", "unknown"),
    ];
    let parts = order.iter().filter_map(|(word, shown)| Some(format!("{} {shown}", counts.get(word)?)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    if parts.is_empty() { "nothing is in the backup".to_owned() } else { parts }
}

fn objects(objects: &[ObjectPreview]) -> Table {
    let mut table = Table::new(&["RESOURCE", "NAME", "EFFECT", "WHY"]);
    let mut left: &[ObjectPreview] = objects;
    while let Some((first, rest)) = left.split_first() {
        let (word, style, why) = in_words(&first.effect);
        // What a rule leaves out of one resource takes one line.
        let same =
            |object: &&ObjectPreview| object.resource == first.resource && object.effect == first.effect;
        let together = match &first.effect {
            Effect::LeftOut { .. } => rest.iter().take_while(same).count(),
            _ => 0,
        };
        let name = match together {
            0 => first.name.clone(),
            more => count(i64::try_from(more + 1).unwrap_or(i64::MAX), "object"),
        };
        table.row([
            Cell::from(first.resource.as_str()),
            Cell::from(name),
            Cell::painted(style, word),
            Cell::from(why),
        ]);
        left = &rest[together..];
    }
    table
}

fn volumes(volumes: &[VolumePreview]) -> Table {
    let mut table = Table::new(&["CLAIM", "SIZE", "DATA"]);
    for volume in volumes {
        let size = volume.bytes.map(|bytes| HumanBytes(bytes).to_string());
        let size = size.or_else(|| volume.requested.as_ref().map(|size| format!("up to {size}")));
        let (style, words) = match volume.effect {
            VolumeEffect::Restored => (style::GOOD, "restored".to_owned()),
            VolumeEffect::Empty => {
                let why = volume.message.as_deref().unwrap_or("its data is not in the backup");
                (style::BAD, format!("EMPTY: {why}"))
            }
            VolumeEffect::Kept => (style::WARNING, "NOT restored: the claim exists".to_owned()),
            VolumeEffect::WrittenOver => {
                let words = "written over the existing claim; newer files stay";
                (style::WARNING, words.to_owned())
            }
            VolumeEffect::LeftOut => (style::QUIET, "left out".to_owned()),
            VolumeEffect::Unknown => {
                (style::WARNING, "unknown: whether its data is in the backup cannot be read".to_owned())
            }
        };
        table.row([Cell::from(volume.claim.as_str()), Cell::from(size), Cell::painted(style, words)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use planner::restore_preview::Preview;

    use super::*;

    fn object(resource: &str, name: &str, effect: Effect) -> ObjectPreview {
        ObjectPreview { resource: resource.to_owned(), name: name.to_owned(), effect }
    }

    fn shown(answer: &RestorePreview) -> String {
        anstream::adapter::strip_str(&page(answer).to_string()).to_string()
    }

    #[test]
    fn a_page_shows_effects_reasons_and_sizes() {
        let differs = |field: &str| Difference { field: field.to_owned(), now: None, backup: None };
        let fields = ["a", "b", "c", "d", "e"].map(differs).to_vec();
        let velero = || Effect::LeftOut { by: LeftOutBy::Velero("it restores no objects of this kind") };
        let objects = vec![
            object("configmaps", "gone", Effect::Created),
            object("configmaps", "prices", Effect::Kept { differences: Some(fields) }),
            object("events", "one", velero()),
            object("events", "two", velero()),
            object("secrets", "key", Effect::Updated { differences: None }),
        ];
        let volume = |claim: &str, effect, bytes| VolumePreview {
            claim: claim.to_owned(),
            effect,
            bytes,
            requested: Some("1Gi".to_owned()),
            message: None,
        };
        let volumes = vec![
            volume("data", VolumeEffect::Kept, Some(8 << 20)),
            volume("cache", VolumeEffect::Empty, None),
        ];
        let mut answer = RestorePreview {
            backup: "good".to_owned(),
            namespace: "shop".to_owned(),
            verdict: "passes",
            reason: None,
            policy: Source::Cluster,
            preview: Preview { objects, volumes },
            unknown: Vec::new(),
            objects_known: true,
            objects_not_listed: 0,
            commands: Vec::new(),
            removed: None,
        };
        insta::assert_snapshot!(shown(&answer), @r"
        restore from good into namespace shop: would pass
          1 created, 1 changed, 1 kept as now, 2 left out

        Objects:
          RESOURCE     NAME        EFFECT           WHY
          configmaps   gone        created
          configmaps   prices      stays as it is   it exists; other than in the backup: a, b, c, d, 1 more
          events       2 objects   left out         Velero: it restores no objects of this kind
          secrets      key         changed          if it differs

        Data of volumes:
          CLAIM   SIZE        DATA
          data    8.00 MiB    NOT restored: the claim exists
          cache   up to 1Gi   EMPTY: its data is not in the backup
        ");
        assert_eq!(names(&answer), ["configmaps/gone", "secrets/key"]);

        answer.preview = Preview::default();
        answer.objects_known = false;
        answer.unknown = vec!["the list of objects in the backup cannot be fetched: no".to_owned()];
        answer.removed = Some(Removed {
            claims: vec!["data".to_owned()],
            workloads: vec!["Deployment web".to_owned()],
            kept: vec![("cache".to_owned(), "its data is not in backup good".to_owned())],
        });
        insta::assert_snapshot!(shown(&answer), @r"
        restore from good into namespace shop: would pass

        Removed first:
          Deployment web
          claim data, with the data in it

        Claims that stay:
          claim cache: its data is not in backup good

        Not known:
          the list of objects in the backup cannot be fetched: no
          so it cannot be said which objects come back; what exists stays as it is
        ");
    }
}
