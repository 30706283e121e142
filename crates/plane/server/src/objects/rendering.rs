//! From shared objects to the bytes a client wants: object, list, table or metadata; JSON, YAML or protobuf.
//!
//! JSON comes straight from an object's own bytes, nothing is parsed. The other forms are made on demand.

use std::borrow::Cow;

use bytes::Bytes;
use hotmap_kinds::Resource;
use hotmap_object::{Draft, GroupVersionKind, Object, Revision, Status};
use hotmap_schema::{encode_object, kind};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    cache::IncludeObject,
    http::negotiation::{Form, Media, MetaVersion, Negotiated},
};

/// How one client sees the objects of one resource.
#[derive(Clone, Copy)]
pub(super) struct Rendering {
    /// The resource as the client addresses it.
    pub(super) resource: &'static Resource,
    /// The resource whose shape is stored; another one only for `events.k8s.io`.
    pub(super) stored: &'static Resource,
    pub(super) negotiated: Negotiated,
    pub(super) include: IncludeObject,
    pub(super) now: Timestamp,
}

/// The metadata of a list.
#[derive(Debug, Default)]
pub(super) struct ListMeta {
    pub(super) revision: Revision,
    pub(super) continue_token: Option<String>,
    pub(super) remaining: Option<usize>,
}

/// The part of a document that metadata-only forms need; the rest is passed over without being parsed.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Rendering {
    /// JSON of an object in the shape of the client's group.
    pub(super) fn json<'o>(&self, object: &'o Object) -> Cow<'o, Bytes> {
        if std::ptr::eq(self.resource, self.stored) {
            return Cow::Borrowed(object.json());
        }
        let shaped = self.resource.strategy.from_stored(object.value());
        let shaped = Draft::new(&shaped, Vec::new()).at(object.revision());
        Cow::Owned(shaped.json().clone())
    }

    /// A whole answer about one object.
    ///
    /// # Errors
    ///
    /// 500 if the object cannot be encoded, which its schema rules out.
    pub(super) fn document(&self, json: &Bytes) -> Result<Bytes, Status> {
        self.document_of(json, true)
    }

    /// The same inside a watch, where tables name their columns once.
    pub(super) fn watched(&self, json: &Bytes, with_columns: bool) -> Result<Bytes, Status> {
        self.document_of(json, with_columns)
    }

    fn document_of(&self, json: &Bytes, with_columns: bool) -> Result<Bytes, Status> {
        let Negotiated { media, form } = self.negotiated;
        match (form, media) {
            (Form::Object, Media::Json) => Ok(json.clone()),
            (Form::Object, Media::Yaml) => yaml(json),
            (Form::Object, Media::Protobuf) => self.protobuf(json),
            (Form::Metadata(version), Media::Protobuf) => partial_protobuf(json, version),
            (Form::Metadata(version), media) => text(partial(json, version)?, media),
            (Form::Table(version), media) => {
                let revision = metadata(json)?
                    .get("resourceVersion")
                    .cloned()
                    .unwrap_or_default();
                let meta = if revision.is_null() {
                    json!({})
                } else {
                    json!({"resourceVersion": revision})
                };
                text(
                    self.table([Ok(Cow::Borrowed(json))], &meta, version, with_columns)?,
                    media,
                )
            }
        }
    }

    /// A whole answer about many objects.
    ///
    /// # Errors
    ///
    /// As [`Rendering::document`].
    pub(super) fn list(&self, items: &[impl AsRef<Object>], meta: &ListMeta) -> Result<Bytes, Status> {
        let jsons = || items.iter().map(|item| Ok(self.json(item.as_ref())));
        let Negotiated { media, form } = self.negotiated;
        match (form, media) {
            (Form::Object, Media::Json) => Ok(self.json_list(items, meta)),
            (Form::Object, Media::Yaml) => yaml(&self.json_list(items, meta)),
            (Form::Object, Media::Protobuf) => self.protobuf_list(items, meta),
            (Form::Metadata(version), Media::Protobuf) => partial_list_protobuf(jsons(), meta, version),
            (Form::Metadata(version), media) => {
                let head = format!(
                    r#"{{"kind":"PartialObjectMetadataList","apiVersion":"{}","metadata":{},"items":["#,
                    version.api_version(),
                    meta.to_value()
                );
                let mut out = head.into_bytes();
                for (at, json) in jsons().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(&partial(&json?, version)?);
                }
                out.extend_from_slice(b"]}");
                text(out, media)
            }
            (Form::Table(version), media) => {
                text(self.table(jsons(), &meta.to_value(), version, true)?, media)
            }
        }
    }

    /// Concatenation: every item without its `kind` and `apiVersion`, which the list says for all.
    fn json_list(&self, items: &[impl AsRef<Object>], meta: &ListMeta) -> Bytes {
        let gvk = self.resource.gvk();
        let api_version = gvk.api_version();
        let own_head = format!(r#"{{"kind":"{}","apiVersion":"{api_version}","#, gvk.kind);
        let size: usize = items.iter().map(|item| item.as_ref().json().len() + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        let head = format!(
            r#"{{"kind":"{}List","apiVersion":"{api_version}","metadata":{},"items":["#,
            gvk.kind,
            meta.to_value()
        );
        out.extend_from_slice(head.as_bytes());
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let json = self.json(item.as_ref());
            match json.strip_prefix(own_head.as_bytes()) {
                Some(rest) => {
                    out.push(b'{');
                    out.extend_from_slice(rest);
                }
                None => out.extend_from_slice(&json),
            }
        }
        out.extend_from_slice(b"]}");
        out.into()
    }

    fn protobuf(&self, json: &Bytes) -> Result<Bytes, Status> {
        let value = parse(json)?;
        encode_object(self.resource.schema, &value)
            .map(Bytes::from)
            .map_err(Status::internal)
    }

    fn protobuf_list(&self, items: &[impl AsRef<Object>], meta: &ListMeta) -> Result<Bytes, Status> {
        let list_kind = format!("{}List", self.resource.kind);
        let list = kind(self.resource.group, self.resource.version, &list_kind)
            .ok_or_else(|| Status::internal(format!("there is no table for {list_kind}")))?;
        let items: Result<Vec<Value>, Status> = items
            .iter()
            .map(|item| parse(&self.json(item.as_ref())))
            .collect();
        let value = json!({"metadata": meta.to_value(), "items": items?});
        encode_object(list, &value)
            .map(Bytes::from)
            .map_err(Status::internal)
    }

    fn table<'j>(
        &self,
        jsons: impl IntoIterator<Item = Result<Cow<'j, Bytes>, Status>>,
        meta: &Value,
        version: MetaVersion,
        with_columns: bool,
    ) -> Result<Vec<u8>, Status> {
        let strategy = self.resource.strategy;
        let api_version = version.api_version();
        let columns = match with_columns {
            true => columns(self.resource),
            false => Value::Null,
        };
        let head = format!(
            r#"{{"kind":"Table","apiVersion":"{api_version}","metadata":{meta},"columnDefinitions":{columns},"rows":["#
        );
        let mut out = head.into_bytes();
        for (at, json) in jsons.into_iter().enumerate() {
            let json = json?;
            let Value::Object(object) = parse(&json)? else {
                return Err(Status::internal("an object is no JSON object"));
            };
            if at > 0 {
                out.push(b',');
            }
            let cells = Value::from(strategy.cells(&object, self.now));
            out.extend_from_slice(format!(r#"{{"cells":{cells}"#).as_bytes());
            let conditions = strategy.row_conditions(&object);
            if !conditions.is_empty() {
                out.extend_from_slice(format!(r#","conditions":{}"#, Value::from(conditions)).as_bytes());
            }
            out.extend_from_slice(br#","object":"#);
            match self.include {
                IncludeObject::Metadata => out.extend_from_slice(&partial(&json, version)?),
                IncludeObject::Object => out.extend_from_slice(&json),
                IncludeObject::None => out.extend_from_slice(b"null"),
            }
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Ok(out)
    }
}

impl ListMeta {
    pub(super) fn to_value(&self) -> Value {
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), self.revision.to_string().into());
        if let Some(token) = &self.continue_token {
            meta.insert("continue".to_owned(), token.clone().into());
        }
        if let Some(remaining) = self.remaining {
            meta.insert("remainingItemCount".to_owned(), remaining.into());
        }
        Value::Object(meta)
    }
}

fn columns(resource: &Resource) -> Value {
    let columns = resource.strategy.columns().iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    });
    columns.collect()
}

fn parse(json: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(json).map_err(Status::internal)
}

fn head(json: &[u8]) -> Result<Head<'_>, Status> {
    serde_json::from_slice(json).map_err(Status::internal)
}

fn metadata(json: &[u8]) -> Result<Value, Status> {
    parse(head(json)?.metadata.get().as_bytes())
}

/// `PartialObjectMetadata`: the object's metadata, byte for byte.
fn partial(json: &[u8], version: MetaVersion) -> Result<Vec<u8>, Status> {
    let metadata = head(json)?.metadata.get();
    let api_version = version.api_version();
    Ok(
        format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"{api_version}","metadata":{metadata}}}"#)
            .into_bytes(),
    )
}

fn partial_protobuf(json: &[u8], version: MetaVersion) -> Result<Bytes, Status> {
    meta_protobuf(
        "PartialObjectMetadata",
        &json!({"metadata": metadata(json)?}),
        version,
    )
}

fn partial_list_protobuf<'j>(
    jsons: impl Iterator<Item = Result<Cow<'j, Bytes>, Status>>,
    meta: &ListMeta,
    version: MetaVersion,
) -> Result<Bytes, Status> {
    let items = jsons.map(|json| Ok(json!({"metadata": metadata(&json?)?})));
    let items: Result<Vec<Value>, Status> = items.collect();
    let value = json!({"metadata": meta.to_value(), "items": items?});
    meta_protobuf("PartialObjectMetadataList", &value, version)
}

/// The messages of both versions of `meta.k8s.io` are the same.
fn meta_protobuf(name: &str, value: &Value, version: MetaVersion) -> Result<Bytes, Status> {
    let table = kind("meta.k8s.io", "v1", name)
        .ok_or_else(|| Status::internal(format!("there is no table for {name}")))?;
    let raw = hotmap_schema::encode_protobuf(table.message, value).map_err(Status::internal)?;
    Ok(hotmap_schema::envelope::wrap(version.api_version(), name, &raw).into())
}

fn text(json: Vec<u8>, media: Media) -> Result<Bytes, Status> {
    match media {
        Media::Yaml => yaml(&json),
        Media::Json | Media::Protobuf => Ok(json.into()),
    }
}

/// The same document as YAML.
pub(super) fn yaml(json: &[u8]) -> Result<Bytes, Status> {
    let value = parse(json)?;
    let text = serde_saphyr::to_string(&value).map_err(Status::internal)?;
    Ok(text.into())
}

/// A `Status` that says it went well, or any other document of the core group, in the media type asked for.
pub(super) fn plain(value: &Value, gvk: &GroupVersionKind, media: Media) -> Result<Bytes, Status> {
    match media {
        Media::Json => Ok(value.to_string().into()),
        Media::Yaml => yaml(value.to_string().as_bytes()),
        Media::Protobuf => {
            let table = kind(&gvk.group, &gvk.version, &gvk.kind)
                .ok_or_else(|| Status::internal(format!("there is no table for {}", gvk.kind)))?;
            encode_object(table, value)
                .map(Bytes::from)
                .map_err(Status::internal)
        }
    }
}
