//! The policy as a text: `policy.yaml` of a ConfigMap.
//!
//! An override is laid over the text before it is read: of a section and of a block in it, only what the override
//! names changes, and what it sets to nothing (`null`) is as if it had never been said.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use serde::de::DeserializeOwned;
use serde_saphyr::{MessageFormatter, UserMessageFormatter};

use super::combine::NAME;
use super::node::{Node, Value, position};
use super::problem::{Position, Problem, Severity, Source};
use super::read::read;
use super::{Policy, rules};

/// A policy as it was written: one for all namespaces, and others for namespaces with certain labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) base: Written,
    pub(super) overrides: Vec<(Selector, Written)>,
}

/// A policy and the text it was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    pub(super) policy: Policy,
    node: Node,
}

impl Written {
    /// Whether the text itself says this.
    pub(super) fn says(&self, path: &str) -> bool {
        let node = self.node.nearest(path);
        node.path.ends_with(path) && node.value != Value::Null
    }

    /// Where the text itself says this: the path there, which may be in an override, and the place in the text.
    pub(super) fn said_at(&self, path: &str) -> Option<(&str, Option<Position>)> {
        let node = self.node.nearest(path);
        self.says(path).then_some((node.path.as_str(), node.position))
    }

    /// A problem with what is written at this path, or on the way to it.
    pub(super) fn problem(&self, severity: Severity, path: &str, message: String) -> Problem {
        let node = self.node.nearest(path);
        // A missing field is reported under its own name, at the block it would be in.
        let path = if self.says(path) { node.path.clone() } else { path.to_owned() };
        Problem { source: Source::ConfigMap, position: node.position, path, severity, message }
    }
}

/// Reads a policy. It comes back only if there is no error; warnings may be among the problems all the same.
pub(super) fn parse(text: &str) -> (Option<Document>, Vec<Problem>) {
    let mut root = match tree(text) {
        Ok(root) => root,
        Err(problem) => return (None, vec![problem]),
    };
    let mut problems = Vec::new();
    let overrides = root.take(OVERRIDES).map(|list| overrides(&root, list, &mut problems));
    let document =
        Document { base: written(root, OVERRIDES, &mut problems), overrides: overrides.unwrap_or_default() };
    problems.sort();
    problems.dedup();
    let usable = !problems.iter().any(Problem::is_error);
    (usable.then_some(document), problems)
}

const OVERRIDES: &str = "overrides";
const SELECTOR: &str = "selector";

/// What holds for the whole cluster and cannot differ by namespace.
const CLUSTER_WIDE: [&str; 5] =
    ["namespaces", "garbageCollection", "sync.period", "queue.inFlight", "requester.extra"];

fn tree(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        // `on` and `off` are words of ours.
        strict_booleans: true,
        with_snippet: false,
        // A policy is about a dozen blocks deep; reading takes a good deal of stack for each.
        budget: serde_saphyr::budget! { max_depth: 24, max_nodes: 100_000 },
    };
    let root: Result<Option<Node>, _> = serde_saphyr::from_str_with_options(text, options);
    match root {
        Ok(Some(mut root)) => {
            root.name("");
            Ok(root)
        }
        Ok(None) => Ok(Node::default()),
        Err(error) => Err(Problem {
            source: Source::ConfigMap,
            position: error.location().and_then(position),
            path: String::new(),
            severity: Severity::Error,
            message: UserMessageFormatter
                .format_message(error.without_snippet())
                .replace(char::is_control, " "),
        }),
    }
}

/// Reads a tree, and reports all its problems.
fn written(node: Node, also: &str, problems: &mut Vec<Problem>) -> Written {
    let policy: Policy = parsed(&node, &[also], problems).unwrap_or_default();
    let written = Written { policy, node };
    let findings = rules::check(&written.policy);
    problems.extend(
        findings.into_iter().map(|found| written.problem(found.severity, &found.path, found.message)),
    );
    written
}

fn parsed<T: DeserializeOwned>(node: &Node, also: &[&str], problems: &mut Vec<Problem>) -> Option<T> {
    let (value, complaints) = read(node, also);
    problems.extend(complaints.into_iter().map(|complaint| Problem {
        source: Source::ConfigMap,
        position: complaint.position,
        path: complaint.path,
        severity: Severity::Error,
        message: complaint.message,
    }));
    value
}

fn overrides(root: &Node, list: Node, problems: &mut Vec<Problem>) -> Vec<(Selector, Written)> {
    let items = match list.value {
        Value::List(items) => items,
        Value::Null => Vec::new(),
        _ => {
            problems.push(error(&list, "a list belongs here, each entry with a selector and what differs"));
            Vec::new()
        }
    };
    let mut overrides = Vec::new();
    let count = items.len();
    for (at, mut item) in items.into_iter().enumerate() {
        let selector = selector(&mut item, problems);
        if at + 1 < count && selector.as_ref().is_some_and(Selector::selects_all) {
            let warning = Problem {
                severity: Severity::Warning,
                ..error(&item, "fits every namespace, so that what follows is never used")
            };
            problems.push(warning);
        }
        for path in CLUSTER_WIDE {
            let node = item.nearest(path);
            if node.path.ends_with(path) {
                problems.push(error(
                    node,
                    "holds for the whole cluster and cannot differ by namespace; say it at the top",
                ));
            }
        }
        let mut merged = root.clone();
        lay_over(&mut merged, item, Some(SECTION_AND_BLOCK));
        overrides.push((selector.unwrap_or_default(), written(merged, SELECTOR, problems)));
    }
    overrides
}

fn selector(item: &mut Node, problems: &mut Vec<Problem>) -> Option<Selector> {
    let Some(node) = item.take(SELECTOR) else {
        problems.push(error(item, "selector is missing; say which namespaces, for example by matchLabels"));
        return None;
    };
    let selector: LabelSelector = parsed(&node, &[], problems)?;
    problems.extend(unprotected(&node, &selector));
    let selector = Selector::try_from(selector);
    if selector.is_err() {
        let message =
            "cannot be understood; an operator is In or NotIn, with values, or Exists or DoesNotExist";
        problems.push(error(&node, message));
    }
    selector.ok()
}

/// Warns of labels that are not the administrators' alone: whoever may label a namespace would choose its override.
fn unprotected(node: &Node, selector: &LabelSelector) -> Option<Problem> {
    let labels = selector.match_labels.iter().flat_map(|labels| labels.keys());
    let expressions = selector.match_expressions.iter().flatten().map(|expression| &expression.key);
    let open = |key: &&String| *key != NAME && !key.starts_with("nacre.dev/");
    let key = labels.chain(expressions).find(open)?;
    let message = format!(
        "selects by {key:?}, so that whoever may label a namespace chooses its override; labels that begin with nacre.dev/ are \
         for administrators alone, and {NAME} is the namespace's name"
    );
    Some(Problem { severity: Severity::Warning, ..error(node, &message) })
}

fn error(node: &Node, message: &str) -> Problem {
    Problem {
        source: Source::ConfigMap,
        position: node.position,
        path: node.path.clone(),
        severity: Severity::Error,
        message: message.to_owned(),
    }
}

/// How deep an override reaches: into a section and into a block of it. Below that, values are replaced as a whole.
const SECTION_AND_BLOCK: usize = 2;

fn lay_over(base: &mut Node, over: Node, below: Option<usize>) {
    let Node { position, path, value } = over;
    match (&mut base.value, value, below) {
        (Value::Block(fields), Value::Block(changes), Some(depth)) => {
            for change in changes {
                match fields.iter_mut().find(|field| field.name == change.name) {
                    Some(field) => lay_over(&mut field.node, change.node, depth.checked_sub(1)),
                    None => fields.push(change),
                }
            }
        }
        (_, value, _) => *base = Node { position, path, value },
    }
}
