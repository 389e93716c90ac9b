//! Admission policies as values: the API server enforces them even while nacre is down.
//!
//! Every field the API server would fill in is filled in here, so that a policy read back equals the one written, and
//! any difference is a foreign change.

pub mod cel;
#[cfg(test)]
pub(crate) mod harness;

use k8s_openapi::{
    api::admissionregistration::v1::{
        ApplyConfiguration, JSONPatch, MatchCondition, MatchResources, MutatingAdmissionPolicy,
        MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec,
        Mutation, NamedRuleWithOperations, ParamKind, ParamRef, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
        ValidatingAdmissionPolicySpec, Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::core::ObjectMeta;

/// The label by which the API server itself names every namespace; nobody can set it to something else.
const NAME_OF_NAMESPACE: &str = "kubernetes.io/metadata.name";

/// A policy in the making.
#[must_use]
pub struct Draft {
    name: &'static str,
    spec: ValidatingAdmissionPolicySpec,
    mutations: Vec<Mutation>,
}

impl Draft {
    /// A policy over these operations on these kinds.
    pub fn over(name: &'static str, operations: &[&str], kinds: &[(&str, &[&str])]) -> Self {
        Self {
            name,
            spec: ValidatingAdmissionPolicySpec {
                failure_policy: Some("Fail".to_owned()),
                match_constraints: Some(matching(operations, kinds, LabelSelector::default())),
                ..ValidatingAdmissionPolicySpec::default()
            },
            mutations: Vec::new(),
        }
    }

    /// Only for objects, new or old, that these labels select.
    pub fn labelled(mut self, selector: LabelSelector) -> Self {
        if let Some(constraints) = &mut self.spec.match_constraints {
            constraints.object_selector = Some(selector);
        }
        self
    }

    /// Over every kind without a namespace too, for the same operations. A Namespace counts as such.
    pub fn and_cluster_scoped(mut self, operations: &[&str]) -> Self {
        if let Some(constraints) = &mut self.spec.match_constraints {
            let all: [(&str, &[&str]); 1] = [("*", &["*/*"])];
            let rules = matching(operations, &all, LabelSelector::default()).resource_rules;
            let rules = rules.into_iter().flatten();
            let rules =
                rules.map(|rule| NamedRuleWithOperations { scope: Some("Cluster".to_owned()), ..rule });
            constraints.resource_rules.get_or_insert_default().extend(rules);
        }
        self
    }

    /// Only in this namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        if let Some(constraints) = &mut self.spec.match_constraints {
            let named = [(NAME_OF_NAMESPACE.to_owned(), namespace.to_owned())];
            constraints.namespace_selector =
                Some(LabelSelector { match_labels: Some(named.into()), match_expressions: None });
        }
        self
    }

    /// Not in namespaces that have this label.
    pub fn except_namespaces_with(mut self, label: &str) -> Self {
        if let Some(constraints) = &mut self.spec.match_constraints {
            let without = LabelSelectorRequirement {
                key: label.to_owned(),
                operator: "DoesNotExist".to_owned(),
                values: None,
            };
            constraints.namespace_selector =
                Some(LabelSelector { match_labels: None, match_expressions: Some(vec![without]) });
        }
        self
    }

    /// Once for each object of this kind that the binding selects, which expressions know as `params`.
    pub fn for_each(mut self, kind: api::Kind) -> Self {
        self.spec.param_kind =
            Some(ParamKind { api_version: Some(kind.api_version()), kind: Some(kind.name().to_owned()) });
        self
    }

    /// Lets pass what the policy cannot be evaluated for.
    pub fn failing_open(mut self) -> Self {
        self.spec.failure_policy = Some("Ignore".to_owned());
        self
    }

    /// Only if this is true.
    pub fn only_if(mut self, name: &str, expression: impl Into<String>) -> Self {
        let condition = MatchCondition { name: name.to_owned(), expression: expression.into() };
        self.spec.match_conditions.get_or_insert_default().push(condition);
        self
    }

    /// A word for later expressions.
    pub fn with(mut self, name: &str, expression: impl Into<String>) -> Self {
        let variable = Variable { name: name.to_owned(), expression: expression.into() };
        self.spec.variables.get_or_insert_default().push(variable);
        self
    }

    /// This must be true, or the request is refused with these words.
    pub fn demand(mut self, expression: impl Into<String>, message: &str) -> Self {
        self.spec.validations.get_or_insert_default().push(Validation {
            expression: expression.into(),
            message: Some(message.to_owned()),
            message_expression: None,
            // Without a reason, a refusal would read as if the object were malformed.
            reason: Some("Forbidden".to_owned()),
        });
        self
    }

    /// This is merged into the object.
    pub fn applying(mut self, expression: impl Into<String>) -> Self {
        self.mutations.push(Mutation {
            patch_type: "ApplyConfiguration".to_owned(),
            apply_configuration: Some(ApplyConfiguration { expression: Some(expression.into()) }),
            json_patch: None,
        });
        self
    }

    /// The object is changed by these patches.
    pub fn patching(mut self, expression: impl Into<String>) -> Self {
        self.mutations.push(Mutation {
            patch_type: "JSONPatch".to_owned(),
            apply_configuration: None,
            json_patch: Some(JSONPatch { expression: Some(expression.into()) }),
        });
        self
    }

    /// The policy, if it changes objects.
    pub fn mutating(self) -> MutatingAdmissionPolicy {
        MutatingAdmissionPolicy {
            metadata: ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() },
            spec: Some(MutatingAdmissionPolicySpec {
                failure_policy: self.spec.failure_policy,
                match_conditions: self.spec.match_conditions,
                match_constraints: self.spec.match_constraints,
                mutations: Some(self.mutations),
                param_kind: self.spec.param_kind,
                reinvocation_policy: Some("Never".to_owned()),
                variables: self.spec.variables,
            }),
        }
    }

    /// The policy.
    pub fn done(self) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy {
            metadata: ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() },
            spec: Some(self.spec),
            status: None,
        }
    }
}

/// Selects objects that have a label, whatever its value.
pub fn exists(label: &str) -> LabelSelector {
    let requirement =
        LabelSelectorRequirement { key: label.to_owned(), operator: "Exists".to_owned(), values: None };
    LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }
}

/// Selects objects that have the one label and not the other, whatever its value.
pub fn exists_without(label: &str, without: &str) -> LabelSelector {
    let requirement = |key: &str, operator: &str| LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: None,
    };
    let both = vec![requirement(label, "Exists"), requirement(without, "DoesNotExist")];
    LabelSelector { match_expressions: Some(both), match_labels: None }
}

/// Where a policy applies.
pub fn matching(operations: &[&str], kinds: &[(&str, &[&str])], selector: LabelSelector) -> MatchResources {
    let owned = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let rules = kinds.iter().map(|(group, resources)| NamedRuleWithOperations {
        api_groups: owned(&[group]),
        api_versions: owned(&["*"]),
        operations: owned(operations),
        resources: owned(resources),
        scope: Some("*".to_owned()),
        resource_names: None,
    });
    MatchResources {
        resource_rules: Some(rules.collect()),
        exclude_resource_rules: None,
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(selector),
    }
}

/// The binding of a policy that changes objects.
pub fn mutating_binding(name: &str, params: Option<ParamRef>) -> MutatingAdmissionPolicyBinding {
    MutatingAdmissionPolicyBinding {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(MutatingAdmissionPolicyBindingSpec {
            policy_name: Some(name.to_owned()),
            param_ref: params,
            ..MutatingAdmissionPolicyBindingSpec::default()
        }),
    }
}

/// The binding of a policy.
pub fn binding(name: &str, actions: &[&str], params: Option<ParamRef>) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: name.to_owned(),
            validation_actions: actions.iter().map(|action| (*action).to_owned()).collect(),
            match_resources: None,
            param_ref: params,
        },
    }
}
