//! All roles and bindings, found by who has them.
//!
//! ```text
//!   feed ──changed──▶ bindings of "" and of each namespace ──▶ by user, by group
//!                     roles of each namespace, cluster roles ──▶ rules
//! ```
//!
//! The feed tells of a change before it publishes the change's revision, and a write is answered after that: the next
//! request is decided by it.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use hotmap_kinds::Resource;
use hotmap_object::Object;
use parking_lot::RwLock;

use super::{
    role::{self, Binding, Holder, Role, RoleRef},
    rule::PolicyRule,
};
use crate::{cache::Observer, request::User};

/// Roles and bindings as they are.
#[derive(Default)]
pub(crate) struct RoleIndex {
    state: RwLock<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// By namespace, then by name; cluster roles under the empty namespace.
    roles: HashMap<Box<str>, HashMap<Box<str>, Arc<Role>>>,
    /// By namespace; ClusterRoleBindings under the empty one.
    bindings: HashMap<Box<str>, Bindings>,
}

/// The bindings of one namespace.
#[derive(Default)]
struct Bindings {
    by_name: HashMap<Box<str>, Arc<Binding>>,
    by_user: HashMap<String, Sorted>,
    by_group: HashMap<String, Sorted>,
}

/// Sorted by name, so that answers do not depend on history.
type Sorted = Vec<Arc<Binding>>;

/// What is found on the way through a user's roles.
pub(super) enum Found<'s> {
    Rule {
        binding: &'s Binding,
        rule: &'s PolicyRule,
    },
    /// A binding grants a role that does not exist.
    Missing(&'s RoleRef),
}

impl RoleIndex {
    /// Looks at the state; nothing changes meanwhile, so this has to be short.
    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// Every ClusterRole, in no order.
    pub(crate) fn cluster_roles(&self) -> Vec<Arc<Role>> {
        self.read(|state| {
            let roles = state.roles.get("").into_iter().flat_map(HashMap::values);
            roles.cloned().collect()
        })
    }

    pub(crate) fn cluster_role(&self, name: &str) -> Option<Arc<Role>> {
        self.read(|state| state.role("", name).cloned())
    }

    pub(crate) fn cluster_role_binding(&self, name: &str) -> Option<Arc<Binding>> {
        self.read(|state| state.bindings.get("")?.by_name.get(name).cloned())
    }

    /// The default roles and bindings, as a cluster has them from its first start.
    #[cfg(test)]
    pub(crate) fn with_defaults() -> Self {
        let index = Self::default();
        for role in super::policy::cluster_roles() {
            let name = role.metadata.name.clone();
            index.put_role("", &name, Some(role));
        }
        for (name, rules) in super::outdated(&index.cluster_roles()) {
            let role = index.cluster_role(&name).expect("it gathers");
            index.put_role(
                "",
                &name,
                Some(Role {
                    rules,
                    ..(*role).clone()
                }),
            );
        }
        for binding in super::policy::cluster_role_bindings() {
            let name = binding.metadata.name.clone();
            index.put_binding("", &name, Some(binding));
        }
        index
    }

    #[cfg(test)]
    /// Shows a role as it is now, or no longer.
    pub(super) fn put_role(&self, namespace: &str, name: &str, role: Option<Role>) {
        self.state.write().put_role(namespace, name, role);
    }

    #[cfg(test)]
    /// Shows a binding as it is now, or no longer.
    pub(super) fn put_binding(&self, namespace: &str, name: &str, binding: Option<Binding>) {
        self.state.write().put_binding(namespace, name, binding);
    }
}

impl Observer for RoleIndex {
    fn reset(&self, resource: &Resource, objects: &mut dyn Iterator<Item = (&str, &Object)>) {
        let Some(kind) = Kind::of(resource) else { return };
        let mut state = self.state.write();
        match kind {
            Kind::Role => state
                .roles
                .retain(|namespace, _| namespace.is_empty() == resource.namespaced),
            Kind::Binding => state
                .bindings
                .retain(|namespace, _| namespace.is_empty() == resource.namespaced),
        }
        for (key, object) in objects {
            state.put(kind, key, Some(object));
        }
    }

    fn changed(&self, resource: &Resource, key: &str, object: Option<&Object>) {
        if let Some(kind) = Kind::of(resource) {
            self.state.write().put(kind, key, object);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Role,
    Binding,
}

impl Kind {
    fn of(resource: &Resource) -> Option<Self> {
        match (resource.group, resource.plural) {
            (role::GROUP, "roles" | "clusterroles") => Some(Kind::Role),
            (role::GROUP, "rolebindings" | "clusterrolebindings") => Some(Kind::Binding),
            _ => None,
        }
    }
}

impl State {
    pub(super) fn role(&self, namespace: &str, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(namespace)?.get(name)
    }

    /// The role a binding in `namespace` grants.
    pub(super) fn granted(&self, role: &RoleRef, namespace: &str) -> Option<&Arc<Role>> {
        match role.kind.as_str() {
            "ClusterRole" => self.role("", &role.name),
            "Role" if !namespace.is_empty() => self.role(namespace, &role.name),
            _ => None,
        }
    }

    /// Every rule that a user has in a namespace, those of the whole cluster first; only those with an empty namespace.
    pub(super) fn visit<'s>(
        &'s self,
        user: &'s User,
        namespace: &str,
        mut visitor: impl FnMut(Found<'s>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let scopes = [Some(""), Some(namespace).filter(|one| !one.is_empty())];
        for scope in scopes.into_iter().flatten() {
            let Some(bindings) = self.bindings.get(scope) else {
                continue;
            };
            for binding in bindings.of(user) {
                let Some(role) = self.granted(&binding.role_ref, scope) else {
                    visitor(Found::Missing(&binding.role_ref))?;
                    continue;
                };
                for rule in &role.rules {
                    visitor(Found::Rule { binding, rule })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// `key` is `NAME` or `NAMESPACE/NAME`.
    fn put(&mut self, kind: Kind, key: &str, object: Option<&Object>) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        match kind {
            Kind::Role => self.put_role(namespace, name, object.and_then(role::read)),
            Kind::Binding => self.put_binding(namespace, name, object.and_then(role::read)),
        }
    }

    fn put_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        match role {
            Some(role) => {
                let roles = self.roles.entry(namespace.into()).or_default();
                roles.insert(name.into(), Arc::new(role));
            }
            None => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
        }
    }

    fn put_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        let bindings = self.bindings.entry(namespace.into()).or_default();
        bindings.remove(namespace, name);
        if let Some(binding) = binding {
            bindings.insert(namespace, name, Arc::new(binding));
        }
        if bindings.by_name.is_empty() {
            self.bindings.remove(namespace);
        }
    }
}

impl Bindings {
    /// The bindings a user has, each once.
    fn of<'s>(&'s self, user: &'s User) -> impl Iterator<Item = &'s Binding> {
        let lists = move || {
            let own = self.by_user.get(&user.name).into_iter();
            own.chain(user.groups.iter().filter_map(|group| self.by_group.get(group)))
        };
        let new = move |(at, list): (usize, &'s Sorted)| {
            let is_new = move |binding: &&Arc<Binding>| {
                let name = &binding.metadata.name;
                lists().take(at).all(|earlier| place(earlier, name).is_err())
            };
            list.iter().filter(is_new)
        };
        lists().enumerate().flat_map(new).map(|binding| &**binding)
    }

    fn insert(&mut self, namespace: &str, name: &str, binding: Arc<Binding>) {
        for holder in binding.subjects.iter().filter_map(|one| one.holder(namespace)) {
            let held = match holder {
                Holder::User(user) => self.by_user.entry(user).or_default(),
                Holder::Group(group) => self.by_group.entry(group).or_default(),
            };
            // A binding may name one subject twice.
            if let Err(place) = place(held, name) {
                held.insert(place, binding.clone());
            }
        }
        self.by_name.insert(name.into(), binding);
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let Some(binding) = self.by_name.remove(name) else {
            return;
        };
        for holder in binding.subjects.iter().filter_map(|one| one.holder(namespace)) {
            let (by_holder, holder) = match holder {
                Holder::User(user) => (&mut self.by_user, user),
                Holder::Group(group) => (&mut self.by_group, group),
            };
            if let Some(held) = by_holder.get_mut(&holder) {
                held.retain(|one| one.metadata.name != name);
                if held.is_empty() {
                    by_holder.remove(&holder);
                }
            }
        }
    }
}

fn place(bindings: &Sorted, name: &str) -> Result<usize, usize> {
    bindings.binary_search_by(|one| one.metadata.name.as_str().cmp(name))
}
