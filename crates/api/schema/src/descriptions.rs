//! Our own short texts for the messages and fields people ask about most; `kubectl explain` shows them.
//!
//! A message or field that is not here is shown with its type alone.

/// What `apiVersion` is, for every kind.
pub(crate) const API_VERSION: &str = "Group and version of the kind: v1, or group/version.";
/// What `kind` is, for every kind.
pub(crate) const KIND: &str = "What the object is.";

/// Text of a message by its OpenAPI name.
pub(crate) fn message(name: &str) -> Option<&'static str> {
    let (_, text, _) = MESSAGES.iter().find(|(known, ..)| *known == name)?;
    Some(*text).filter(|text| !text.is_empty())
}

/// Text of a field by its message's OpenAPI name and its JSON name.
pub(crate) fn field(message: &str, name: &str) -> Option<&'static str> {
    let (_, _, fields) = MESSAGES.iter().find(|(known, ..)| *known == message)?;
    fields
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Text of a type that is no message, by the end of its OpenAPI name.
pub(crate) fn special(name: &str) -> &'static str {
    match name {
        "apis.meta.v1.Time" => "A time with whole seconds, as in 2006-01-02T15:04:05Z.",
        "apis.meta.v1.MicroTime" => "A time with microseconds, as in 2006-01-02T15:04:05.000000Z.",
        "apis.meta.v1.FieldsV1" => "A set of fields, written as a tree of names.",
        "api.resource.Quantity" => "A number with a suffix: 100m, 1.5, 64Mi, 2G.",
        "util.intstr.IntOrString" => "A number, or a name or percentage as text.",
        "runtime.RawExtension" => "An object of any kind.",
        _ => "",
    }
}

/// Every described message, and every described field with its message.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    MESSAGES.iter().flat_map(|(message, _, fields)| {
        std::iter::once((*message, "")).chain(fields.iter().map(|(field, _)| (*message, *field)))
    })
}

type Described = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[rustfmt::skip]
static MESSAGES: &[Described] = &[
    ("io.k8s.api.core.v1.ConfigMap", "Configuration for programs: named texts and binaries.", &[
        ("binaryData", "Values that are not UTF-8, in base64. A key may stand here or in data, not in both."),
        ("data", "Values by key. A key becomes a file name in a volume or the name of a variable."),
        ("immutable", "Once true, values can no longer change and the object can only be deleted."),
        ("metadata", "Name, labels, annotations and what the server keeps about the object."),
    ]),
    ("io.k8s.api.core.v1.Secret", "Small values that must not be seen by everyone: passwords, keys, certificates.", &[
        ("data", "Values by key, in base64."),
        ("immutable", "Once true, values can no longer change and the object can only be deleted."),
        ("metadata", "Name, labels, annotations and what the server keeps about the object."),
        ("stringData", "Values as plain text, merged into data on write and never shown."),
        ("type", "What the values are for; some types require certain keys. Opaque if not set."),
    ]),
    ("io.k8s.api.core.v1.Namespace", "A room for names: objects of one kind may share a name if they live in different namespaces.", &[
        ("spec", "What the namespace waits for before it can go."),
        ("status", "Whether the namespace is in use or being emptied."),
    ]),
    ("io.k8s.api.core.v1.NamespaceSpec", "", &[
        ("finalizers", "Who must be done before the namespace disappears."),
    ]),
    ("io.k8s.api.core.v1.NamespaceStatus", "", &[
        ("conditions", "What keeps a namespace from being emptied."),
        ("phase", "Active, or Terminating while its objects are deleted."),
    ]),
    ("io.k8s.api.core.v1.Pod", "Containers that run together on one node and share its volumes and network.", &[
        ("spec", "What should run."),
        ("status", "What does run, as the node saw it last."),
        ("metadata", "Name, labels, annotations and what the server keeps about the object."),
    ]),
    ("io.k8s.api.core.v1.PodSpec", "What a pod consists of and how the node should treat it.", &[
        ("activeDeadlineSeconds", "Seconds after the start when a pod that still runs is ended as failed."),
        ("automountServiceAccountToken", "Whether a token of the service account is mounted."),
        ("containers", "The programs of the pod; at least one."),
        ("dnsPolicy", "Where names are resolved: ClusterFirst, ClusterFirstWithHostNet, Default or None."),
        ("hostname", "Name of the machine as the pod sees it; the pod's name if not set."),
        ("initContainers", "Programs that run to their end, one after the other, before the containers start."),
        ("nodeName", "The node that runs the pod. Set once, by whoever places the pod."),
        ("nodeSelector", "Labels that a node must have to run the pod."),
        ("restartPolicy", "What happens when a container ends: Always (the default), OnFailure or Never."),
        ("securityContext", "Users, groups and rights that hold for every container."),
        ("serviceAccountName", "The identity under which the pod speaks to the API."),
        ("terminationGracePeriodSeconds", "Seconds between the polite signal and the kill. 30 if not set."),
        ("tolerations", "Taints of nodes that do not keep this pod away."),
        ("volumes", "Directories that containers can mount."),
    ]),
    ("io.k8s.api.core.v1.PodStatus", "How a pod fares, as its node reports it.", &[
        ("conditions", "Steps of a pod's life that are reached or not: PodScheduled, Initialized, ContainersReady, Ready."),
        ("containerStatuses", "One entry per container."),
        ("hostIP", "Address of the node."),
        ("initContainerStatuses", "One entry per init container."),
        ("message", "Why the pod is in this state, for people."),
        ("phase", "Pending, Running, Succeeded, Failed or Unknown."),
        ("podIP", "Address of the pod."),
        ("qosClass", "Class that follows from requests and limits."),
        ("reason", "Why the pod is in this state, in one word."),
        ("startTime", "When the node took the pod on."),
    ]),
    ("io.k8s.api.core.v1.Container", "One program of a pod.", &[
        ("args", "Arguments after the command; $(NAME) stands for a variable."),
        ("command", "The program and its first arguments, in place of what the image says; $(NAME) stands for a variable."),
        ("env", "Variables, in order; they are fixed when the container starts."),
        ("envFrom", "ConfigMaps and Secrets whose keys all become variables."),
        ("image", "What to run."),
        ("imagePullPolicy", "When the image is fetched: Always, IfNotPresent or Never."),
        ("lifecycle", "What to do after the start and before the stop."),
        ("livenessProbe", "A check that restarts the container when it fails."),
        ("name", "Name of the container, unique in its pod."),
        ("ports", "Ports that the program listens on, for information."),
        ("readinessProbe", "A check that decides whether the container gets traffic."),
        ("resources", "Shares of the machine the container asks for, and their limits."),
        ("securityContext", "User, group and rights of this container."),
        ("startupProbe", "A check that holds the other probes back until it succeeds once."),
        ("stdin", "Keep standard input open."),
        ("terminationMessagePath", "File whose content becomes the message of an ended container."),
        ("tty", "Give the container a terminal."),
        ("volumeMounts", "Where volumes appear in the container's files."),
        ("workingDir", "Directory the program starts in."),
    ]),
    ("io.k8s.api.core.v1.EnvVar", "One environment variable.", &[
        ("name", "Name of the variable."),
        ("value", "Its value; $(NAME) stands for a variable named before."),
        ("valueFrom", "Where the value comes from; not together with value."),
    ]),
    ("io.k8s.api.core.v1.EnvFromSource", "A ConfigMap or Secret whose keys become variables.", &[
        ("configMapRef", "The ConfigMap."),
        ("prefix", "Text before every name."),
        ("secretRef", "The Secret."),
    ]),
    ("io.k8s.api.core.v1.VolumeMount", "A volume at a path of a container.", &[
        ("mountPath", "Path in the container."),
        ("name", "Name of the volume."),
        ("readOnly", "Refuse writes."),
        ("subPath", "A file or directory inside the volume; it does not follow changes of the volume."),
        ("subPathExpr", "As subPath, with $(NAME) for variables."),
    ]),
    ("io.k8s.api.core.v1.Volume", "A directory with its source.", &[
        ("configMap", "Files from the keys of a ConfigMap; they follow its changes."),
        ("downwardAPI", "Files from the pod's own fields."),
        ("emptyDir", "An empty directory that lives as long as the pod."),
        ("hostPath", "A directory of the node."),
        ("name", "Name by which containers mount it."),
        ("projected", "Several sources in one directory."),
        ("secret", "Files from the keys of a Secret, kept in memory; they follow its changes."),
    ]),
    ("io.k8s.api.core.v1.ConfigMapVolumeSource", "Which keys of a ConfigMap become which files.", &[
        ("defaultMode", "Mode of the files, 0644 if not set. JSON has no octal numbers: 420."),
        ("items", "Which keys become which paths; every key under its own name if not set."),
        ("name", "Name of the ConfigMap."),
        ("optional", "Whether the object or a key may be missing."),
    ]),
    ("io.k8s.api.core.v1.SecretVolumeSource", "Which keys of a Secret become which files.", &[
        ("defaultMode", "Mode of the files, 0644 if not set. JSON has no octal numbers: 420."),
        ("items", "Which keys become which paths; every key under its own name if not set."),
        ("optional", "Whether the object or a key may be missing."),
        ("secretName", "Name of the Secret."),
    ]),
    ("io.k8s.api.core.v1.KeyToPath", "One key and the file it becomes.", &[
        ("key", "The key."),
        ("mode", "Mode of this file."),
        ("path", "Path below the volume, without `..`."),
    ]),
    ("io.k8s.api.core.v1.Node", "A machine that runs pods.", &[
        ("spec", "How the machine may be used."),
        ("status", "How the machine is."),
    ]),
    ("io.k8s.api.core.v1.NodeSpec", "", &[
        ("podCIDR", "Addresses for the node's pods."),
        ("taints", "Marks that keep pods away which do not tolerate them."),
        ("unschedulable", "Place no new pods here."),
    ]),
    ("io.k8s.api.core.v1.NodeStatus", "", &[
        ("addresses", "How the node is reached."),
        ("allocatable", "What pods can use of the machine."),
        ("capacity", "What the machine has."),
        ("conditions", "Ready, and what presses on the node."),
        ("nodeInfo", "Versions and identifiers of the machine."),
    ]),
    ("io.k8s.api.core.v1.Event", "Something that happened to an object.", &[
        ("count", "How often it happened."),
        ("firstTimestamp", "When it happened first."),
        ("involvedObject", "The object it happened to."),
        ("lastTimestamp", "When it happened last."),
        ("message", "What happened, for people."),
        ("reason", "What happened, in one word."),
        ("source", "Who saw it."),
        ("type", "Normal or Warning."),
    ]),
    ("io.k8s.api.events.v1.Event", "Something that happened to an object.", &[
        ("note", "What happened, for people."),
        ("reason", "Why it was done, in one word."),
        ("regarding", "The object it happened to."),
        ("type", "Normal or Warning."),
    ]),
    ("io.k8s.api.coordination.v1.Lease", "A claim that must be renewed: sign of life of a node, or the place of a leader.", &[
        ("spec", "Who holds the claim, and until when."),
    ]),
    ("io.k8s.api.coordination.v1.LeaseSpec", "", &[
        ("acquireTime", "When the holder took it."),
        ("holderIdentity", "Who holds it."),
        ("leaseDurationSeconds", "Seconds it is valid after the last renewal."),
        ("leaseTransitions", "How often the holder changed."),
        ("renewTime", "When it was renewed last."),
    ]),
    ("io.k8s.api.core.v1.Service", "A stable name and address for a set of pods.", &[
        ("spec", "Ports, and the pods behind them."),
        ("status", "What a load balancer gave."),
    ]),
    ("io.k8s.api.core.v1.ServiceSpec", "", &[
        ("clusterIP", "Address inside the cluster; None for a service without one."),
        ("ports", "Ports of the service."),
        ("selector", "Labels of the pods behind the service."),
        ("type", "ClusterIP (the default), NodePort, LoadBalancer or ExternalName."),
    ]),
    ("io.k8s.api.core.v1.ServicePort", "One port of a service.", &[
        ("name", "Name, unique in the service."),
        ("port", "Number clients use."),
        ("protocol", "TCP (the default), UDP or SCTP."),
        ("targetPort", "Number or name of the port on the pods."),
    ]),
    ("io.k8s.api.core.v1.ServiceAccount", "An identity for programs.", &[
        ("automountServiceAccountToken", "Whether pods get a token."),
        ("secrets", "Secrets that pods of this account may use."),
    ]),
    ("io.k8s.api.core.v1.Endpoints", "The addresses behind a service.", &[
        ("subsets", "Addresses and the ports they share."),
    ]),
    ("dev.hotmap.v1alpha1.DeliveryReport", "What one node has delivered: which revision of each ConfigMap and Secret its pods have. Named like the node.", &[
        ("metadata", "Name, labels, annotations and what the server keeps about the object."),
        ("objects", "One entry for each ConfigMap and Secret that pods of the node refer to."),
        ("objectsOmitted", "How many entries are left out because a report has room for 2000."),
    ]),
    ("dev.hotmap.v1alpha1.ObjectDelivery", "How one ConfigMap or Secret has arrived at the pods of the node.", &[
        ("behind", "Who has not got, or not loaded, the current content, and why. Whoever is not here has it."),
        ("behindCount", "How many are behind; more than rows are listed if there are over 200."),
        ("consumers", "How many volumes, and containers with variables or sub-paths, use the object."),
        ("current", "The newest revision the node has heard of; nothing if the object is not there."),
        ("loaded", "What programs have said they loaded, through the socket in their pod."),
        ("ref", "The object."),
        ("uid", "Tells the object from others that had its name before."),
        ("visibleAt", "When those that have the current content got it, the first and the last of them; pods that came after it are not counted."),
    ]),
    ("dev.hotmap.v1alpha1.ObjectReference", "A ConfigMap or Secret by name.", &[
        ("kind", "ConfigMap or Secret."),
        ("name", "Name of the object."),
        ("namespace", "The namespace it lives in."),
    ]),
    ("dev.hotmap.v1alpha1.ObjectRevision", "One revision of an object.", &[
        ("committedAt", "When this content was committed, by the clock of the API; nothing if it does not tell, or if the node has heard of no other."),
        ("digest", "Digest of the content: SHA-256 of a ConfigMap, a keyed one of a Secret, nothing without the key."),
        ("heardAt", "When the node heard of this content."),
        ("resourceVersion", "Version of the object."),
    ]),
    ("dev.hotmap.v1alpha1.VisibleSpan", "", &[
        ("first", "When the first one had it."),
        ("last", "When the last one had it."),
    ]),
    ("dev.hotmap.v1alpha1.LoadedCounts", "", &[
        ("current", "How many of them have loaded the current content."),
        ("reporting", "How many volumes are reported on by a program of their pod."),
    ]),
    ("dev.hotmap.v1alpha1.ConsumerBehind", "Somebody who does not have the current content, or has something else.", &[
        ("container", "The container whose variables it is, or whose sub-path of the volume."),
        ("pod", "Name of the pod; its namespace is the object's."),
        ("podUID", "Tells the pod from others that had its name before."),
        ("reason", "Why, for people."),
        ("resourceVersion", "The version it has; nothing if none, or if nobody knows."),
        ("since", "Since when it is behind."),
        ("stage", "What has not happened: projected (it was not delivered) or loaded (the program has not taken it up)."),
        ("volume", "The volume; nothing for variables."),
    ]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "What every object has besides its content.", &[
        ("annotations", "Texts for tools, not for selection."),
        ("creationTimestamp", "When the server stored the object first. Set by the server."),
        ("deletionGracePeriodSeconds", "Seconds an object has to end gracefully. Set by the server."),
        ("deletionTimestamp", "When deletion was asked for; the object goes when nothing holds it any more. Set by the server."),
        ("finalizers", "Who must be done before a deleted object disappears."),
        ("generateName", "Beginning of a name that the server completes."),
        ("generation", "Counts changes of what is wanted. Set by the server."),
        ("labels", "Short texts to select objects by."),
        ("managedFields", "Who set which fields. Set by the server."),
        ("name", "Name, unique for the kind in its namespace. Never changes."),
        ("namespace", "The namespace the object lives in. Never changes."),
        ("ownerReferences", "Objects this one belongs to; it goes when they all are gone."),
        ("resourceVersion", "Version of the object; a write that names an older one is refused. Compare for equality only."),
        ("uid", "Tells this object from others that had its name before. Set by the server."),
    ]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "What every list has besides its items.", &[
        ("continue", "Token for the next page."),
        ("remainingItemCount", "How many items follow on later pages, if known."),
        ("resourceVersion", "Version at which the list is true; a watch may begin here."),
    ]),
];
