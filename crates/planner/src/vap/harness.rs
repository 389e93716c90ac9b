//! Evaluates a policy as the API server would, with given answers of the authorizer.
//!
//! kube's own evaluator escapes the keys of maps such as annotations, which the API server does not, so the engine below it is used.

#![allow(dead_code, reason = "the tests of two crates use it, and neither uses all of it")]

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, ValidatingAdmissionPolicy, Variable};
use kube::core::cel::KubeCelExt as _;
use kube::core::cel::cel::objects::Map;
use kube::core::cel::cel::{Context, Program, Value as Answer, to_value};
use serde_json::{Value, json};

/// A request to be judged.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    operation: &'static str,
    user: Value,
    name: String,
    object: Value,
    old: Value,
    param: Value,
    in_deleting_namespace: bool,
    /// The group and the plural of the kind.
    resource: (&'static str, &'static str),
    /// The name and the uid of the namespace; an empty name for an object without one.
    namespace: (&'static str, &'static str),
    holds: Vec<&'static str>,
}

impl Ask {
    pub(crate) fn create(object: Value) -> Self {
        Self {
            operation: "CREATE",
            user: json!({"username": "ann"}),
            name: String::new(),
            object,
            old: Value::Null,
            param: Value::Null,
            in_deleting_namespace: false,
            resource: ("", ""),
            namespace: ("shop", "shop-uid"),
            holds: Vec::new(),
        }
    }

    pub(crate) fn update(old: Value, object: Value) -> Self {
        Self { operation: "UPDATE", old, ..Self::create(object) }
    }

    pub(crate) fn delete(old: Value) -> Self {
        Self { operation: "DELETE", old, ..Self::create(Value::Null) }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    pub(crate) fn by(self, user: &str) -> Self {
        self.by_user(json!({ "username": user }))
    }

    /// By somebody of whom the authenticator says all this.
    pub(crate) fn by_user(self, user: Value) -> Self {
        Self { user, ..self }
    }

    /// What a variable of a policy is.
    pub(crate) fn variable(&self, variables: &[Variable], name: &str) -> String {
        let mut words = HashMap::new();
        for variable in variables {
            let value = self.answer(&variable.expression, &words, true);
            words.insert(variable.name.clone(), value);
        }
        match &words[name] {
            Answer::String(text) => text.to_string(),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// As somebody whom the authorizer grants this.
    pub(crate) fn holding(mut self, right: &'static str) -> Self {
        self.holds.push(right);
        self
    }

    /// With this among the objects the binding selects.
    pub(crate) fn given(self, param: &Value) -> Self {
        Self { param: param.clone(), ..self }
    }

    /// About an object of this kind.
    pub(crate) fn of(self, group: &'static str, plural: &'static str) -> Self {
        Self { resource: (group, plural), ..self }
    }

    /// In this namespace, by name and uid; an empty name is none.
    pub(crate) fn inside(self, name: &'static str, uid: &'static str) -> Self {
        Self { namespace: (name, uid), ..self }
    }

    /// In a namespace that is being deleted.
    pub(crate) fn in_deleting_namespace(self) -> Self {
        Self { in_deleting_namespace: true, ..self }
    }

    /// Whether the policy lets the request pass.
    pub(crate) fn passes(&self, policy: &ValidatingAdmissionPolicy) -> bool {
        let Some(words) = self.words(policy) else { return true };
        let mut demands = policy.spec.iter().flat_map(|spec| spec.validations.iter().flatten());
        demands.all(|one| self.is_true(&one.expression, &words, true))
    }

    /// Whether the policy refuses the request for these demands alone, by words of their messages. All demands have to be
    /// met, so with these switched off the request would pass, and with any one of them left it would not: the attack is a
    /// good one, and nothing but these stands in its way.
    pub(crate) fn is_refused_only_by(&self, policy: &ValidatingAdmissionPolicy, demands: &[&str]) -> bool {
        let unmet = self.unmet(policy);
        let says = |message: &String, words: &&str| message.contains(*words);
        unmet.iter().all(|message| demands.iter().any(|words| says(message, words)))
            && demands.iter().all(|words| unmet.iter().any(|message| says(message, words)))
    }

    /// The messages of the demands that the request does not meet; none if the policy is not about it.
    pub(crate) fn unmet(&self, policy: &ValidatingAdmissionPolicy) -> Vec<String> {
        let spec = policy.spec.clone().unwrap();
        let Some(words) = self.words(policy) else { return Vec::new() };
        let demands = spec.validations.into_iter().flatten();
        let unmet = demands.filter(|one| !self.is_true(&one.expression, &words, true));
        unmet.map(|one| one.message.unwrap_or_default()).collect()
    }

    /// The variables of a policy; none if the policy is not about the request.
    fn words(&self, policy: &ValidatingAdmissionPolicy) -> Option<HashMap<String, Answer>> {
        let spec = policy.spec.as_ref().unwrap();
        if !self.meets(spec.match_conditions.as_deref().unwrap_or_default()) {
            return None;
        }
        let mut words = HashMap::new();
        for variable in spec.variables.iter().flatten() {
            let value = self.answer(&variable.expression, &words, true);
            words.insert(variable.name.clone(), value);
        }
        Some(words)
    }

    /// Whether a policy with these conditions is about the request.
    pub(crate) fn meets(&self, conditions: &[MatchCondition]) -> bool {
        // In match conditions the API server knows no namespace.
        conditions.iter().all(|one| self.is_true(&one.expression, &HashMap::new(), false))
    }

    fn is_true(&self, expression: &str, words: &HashMap<String, Answer>, with_namespace: bool) -> bool {
        match self.answer(expression, words, with_namespace) {
            Answer::Bool(answer) => answer,
            other => panic!("{expression}: {other:?}"),
        }
    }

    fn answer(&self, expression: &str, words: &HashMap<String, Answer>, with_namespace: bool) -> Answer {
        let text = self.authorized(expression);
        // Only the API server's type checker cares for dyn.
        let program =
            Program::compile(&text.replace("dyn(", "(")).unwrap_or_else(|error| panic!("{text}: {error}"));
        program
            .execute(&self.context(words, with_namespace))
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// What is asked of the authorizer, answered.
    fn authorized(&self, expression: &str) -> String {
        const END: &str = ".allowed()";
        let mut text = expression.to_owned();
        while let Some(from) = text.find("authorizer.") {
            let to = from + text[from..].find(END).expect("an answer is asked for") + END.len();
            let answer = self.holds.iter().any(|right| *right == &text[from..to]);
            text.replace_range(from..to, &answer.to_string());
        }
        text
    }

    fn context(&self, words: &HashMap<String, Answer>, with_namespace: bool) -> Context<'static> {
        let (name, uid) = self.namespace;
        let mut namespace = json!({ "metadata": { "name": name, "uid": uid } });
        if self.in_deleting_namespace {
            namespace["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let mut request = json!({
            "operation": self.operation,
            "name": self.name,
            "resource": { "group": self.resource.0, "resource": self.resource.1 },
            "userInfo": self.user,
        });
        // The API server leaves out what is empty.
        if !name.is_empty() {
            request["namespace"] = json!(name);
        }
        let mut context = Context::default().with_all();
        for (name, value) in [
            ("object", &self.object),
            ("oldObject", &self.old),
            ("request", &request),
            ("params", &self.param),
            ("namespaceObject", if with_namespace && !name.is_empty() { &namespace } else { &Value::Null }),
        ] {
            context.add_variable_from_value(name, signed(to_value(value).unwrap()));
        }
        context.add_variable_from_value("variables", Answer::Map(words.clone().into()));
        context
    }
}

/// Every whole number of an object is signed for the API server.
fn signed(value: Answer) -> Answer {
    match value {
        Answer::UInt(number) => i64::try_from(number).map_or(Answer::UInt(number), Answer::Int),
        Answer::List(list) => Answer::List(Arc::new(list.iter().cloned().map(signed).collect())),
        Answer::Map(Map { map }) => {
            let signed = map.iter().map(|(key, value)| (key.clone(), signed(value.clone())));
            Answer::Map(Map { map: Arc::new(signed.collect()) })
        }
        other => other,
    }
}
