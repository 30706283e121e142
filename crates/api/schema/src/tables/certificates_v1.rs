//! `io.k8s.api.certificates.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, Type as T};

#[rustfmt::skip]
pub(crate) static CERTIFICATE_SIGNING_REQUEST: Message = Message { name: "io.k8s.api.certificates.v1.CertificateSigningRequest", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&CERTIFICATE_SIGNING_REQUEST_SPEC)).required(),
    Field::new("status", 3, T::Message(&CERTIFICATE_SIGNING_REQUEST_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CERTIFICATE_SIGNING_REQUEST_CONDITION: Message = Message { name: "io.k8s.api.certificates.v1.CertificateSigningRequestCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.RequestConditionType"),
    Field::new("reason", 2, T::String).omitempty(),
    Field::new("message", 3, T::String).omitempty(),
    Field::new("lastUpdateTime", 4, T::Time).omitempty(),
    Field::new("lastTransitionTime", 5, T::Time).omitempty(),
    Field::new("status", 6, T::String).required().go("v1.ConditionStatus"),
] };

#[rustfmt::skip]
pub(crate) static CERTIFICATE_SIGNING_REQUEST_LIST: Message = Message { name: "io.k8s.api.certificates.v1.CertificateSigningRequestList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CERTIFICATE_SIGNING_REQUEST)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static CERTIFICATE_SIGNING_REQUEST_SPEC: Message = Message { name: "io.k8s.api.certificates.v1.CertificateSigningRequestSpec", type_meta: false, atomic: false, fields: &[
    Field::new("request", 1, T::Bytes).required(),
    Field::new("username", 2, T::String).omitempty(),
    Field::new("uid", 3, T::String).omitempty(),
    Field::new("groups", 4, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("usages", 5, T::String).list().omitempty().go("[]v1.KeyUsage").list_type(L::Atomic).one_of(&["any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"]),
    Field::new("extra", 6, T::Strings).map().omitempty(),
    Field::new("signerName", 7, T::String).required(),
    Field::new("expirationSeconds", 8, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CERTIFICATE_SIGNING_REQUEST_STATUS: Message = Message { name: "io.k8s.api.certificates.v1.CertificateSigningRequestStatus", type_meta: false, atomic: false, fields: &[
    Field::new("conditions", 1, T::Message(&CERTIFICATE_SIGNING_REQUEST_CONDITION)).list().omitempty().list_type(L::Map(&["type"])),
    Field::new("certificate", 2, T::Bytes).omitempty(),
] };
