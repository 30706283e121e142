//! Which media type and which form of an object a client gets.
//!
//! Follows `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`, Kubernetes 1.36: clauses are tried by quality,
//! then by how exact they are, then in the order sent; a clause whose parameters the endpoint cannot serve is passed over.

use hotmap_object::Status;

/// The media types that whole documents come in, as error texts list them.
const DOCUMENT_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// The same for watches.
const STREAM_TYPES: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// An encoding of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    /// Every encoding; a wildcard picks the first.
    const ALL: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];

    /// The `Content-Type` of a document.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Yaml => "application/yaml",
            Media::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The `Content-Type` of a watch.
    pub(crate) fn stream_content_type(self) -> &'static str {
        match self {
            Media::Json | Media::Yaml => "application/json",
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// The encoding of a request body. No `Content-Type` means JSON.
    ///
    /// # Errors
    ///
    /// 415 for any other media type.
    pub(crate) fn of_body(content_type: Option<&str>) -> Result<Self, Status> {
        let Some(content_type) = content_type.filter(|held| !held.is_empty()) else {
            return Ok(Media::Json);
        };
        let mut known = Media::ALL.into_iter();
        known
            .find(|media| media.content_type() == content_type)
            .ok_or_else(|| Status::unsupported_media_type(DOCUMENT_TYPES))
    }
}

/// The version of `meta.k8s.io` that a Table or a metadata-only form is asked for in; the forms differ in this name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    /// What stands in `apiVersion`.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The form of the objects in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    /// The objects themselves.
    Object,
    /// Columns and cells. Never protobuf.
    Table(MetaVersion),
    /// Metadata alone. Clients ask for `PartialObjectMetadata` or `…List`; the endpoint decides which it is.
    Metadata(MetaVersion),
}

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Negotiated {
    pub(crate) media: Media,
    pub(crate) form: Form,
}

/// What an endpoint can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Documents: the object, a table, or metadata alone.
    Objects,
    /// Documents in the object's own form only: reviews, bindings, errors.
    Plain,
    /// A watch: like [`Offer::Objects`], but not in YAML.
    Watch,
}

/// A parsed `Accept` header.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Accept {
    /// Best first. Empty if the header is absent.
    clauses: Vec<Clause>,
}

/// One alternative of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause {
    pub(crate) main: String,
    pub(crate) sub: String,
    quality: f32,
    /// In the order sent, `q` apart, names in lower case.
    pub(crate) parameters: Vec<(String, String)>,
}

impl Accept {
    /// Reads the header. What is not of the form `a/b;c=d` is passed over.
    pub(crate) fn parse(header: &str) -> Self {
        let mut clauses: Vec<Clause> = header.split(',').filter_map(Clause::parse).collect();
        clauses.sort_by(|a, b| {
            b.quality
                .total_cmp(&a.quality)
                .then(b.exactness().cmp(&a.exactness()))
        });
        Self { clauses }
    }

    /// The alternatives, best first.
    pub(crate) fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The first alternative that the endpoint can serve.
    ///
    /// # Errors
    ///
    /// 406 if there is none.
    pub(crate) fn negotiate(&self, offer: Offer) -> Result<Negotiated, Status> {
        if self.clauses.is_empty() {
            return Ok(Negotiated {
                media: Media::Json,
                form: Form::Object,
            });
        }
        let chosen = self.clauses.iter().find_map(|clause| clause.fit(offer));
        // Upstream agrees on the media type first and finds out afterwards that YAML cannot be watched.
        let chosen = chosen.filter(|chosen| offer != Offer::Watch || chosen.media != Media::Yaml);
        let served = if offer == Offer::Watch {
            STREAM_TYPES
        } else {
            DOCUMENT_TYPES
        };
        chosen.ok_or_else(|| Status::not_acceptable(served))
    }
}

impl Clause {
    fn parse(raw: &str) -> Option<Self> {
        let mut parts = raw.split(';').map(str::trim);
        let (main, sub) = parts
            .next()?
            .split_once('/')
            .or((raw.trim() == "*").then_some(("*", "*")))?;
        let mut quality = 1.0;
        let mut parameters = Vec::new();
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'));
            match name.as_str() {
                "" => {}
                "q" => quality = value.parse().ok().filter(|q: &f32| q.is_finite()).unwrap_or(1.0),
                _ => parameters.push((name, value.to_owned())),
            }
        }
        Some(Self {
            main: main.to_ascii_lowercase(),
            sub: sub.to_ascii_lowercase(),
            quality,
            parameters,
        })
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(held, _)| held == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the clause covers a media type such as `application/json`.
    pub(crate) fn covers(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        (self.main == "*" || self.main == main) && (self.sub == "*" || self.sub == sub)
    }

    fn exactness(&self) -> u8 {
        u8::from(self.main != "*") + u8::from(self.sub != "*")
    }

    fn fit(&self, offer: Offer) -> Option<Negotiated> {
        Media::ALL.into_iter().find_map(|media| {
            let form = self.form()?;
            let streams = self
                .parameter("stream")
                .is_none_or(|kind| kind.is_empty() || kind == "watch" && media != Media::Yaml);
            let is_served = match form {
                Form::Object => true,
                Form::Table(_) => offer != Offer::Plain && media != Media::Protobuf,
                Form::Metadata(_) => offer != Offer::Plain,
            };
            (self.covers(media.content_type()) && streams && is_served).then_some(Negotiated { media, form })
        })
    }

    /// The form asked for; `None` for one that does not exist.
    fn form(&self) -> Option<Form> {
        let [kind, group, version] = ["as", "g", "v"].map(|name| self.parameter(name));
        if let (None, None, None) = (kind, group, version) {
            return Some(Form::Object);
        }
        let version = match (group?, version?) {
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
            _ => return None,
        };
        match kind? {
            "Table" => Some(Form::Table(version)),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(Form::Metadata(version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, offer: Offer) -> Result<(Media, Form), String> {
        let chosen = Accept::parse(header).negotiate(offer);
        chosen
            .map(|chosen| (chosen.media, chosen.form))
            .map_err(|status| status.message)
    }

    #[test]
    fn the_first_clause_that_fits_wins() {
        use Form::*;
        use Media::*;
        use MetaVersion::*;
        let kubectl_get = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let protobuf_first = "application/vnd.kubernetes.protobuf,application/json";
        for (header, offer, chosen) in [
            ("", Offer::Objects, Some((Json, Object))),
            ("*/*", Offer::Objects, Some((Json, Object))),
            ("application/*", Offer::Watch, Some((Json, Object))),
            (kubectl_get, Offer::Objects, Some((Json, Table(V1)))),
            (kubectl_get, Offer::Watch, Some((Json, Table(V1)))),
            (kubectl_get, Offer::Plain, Some((Json, Object))),
            (protobuf_first, Offer::Plain, Some((Protobuf, Object))),
            (
                "application/json;q=0.5, application/yaml",
                Offer::Objects,
                Some((Yaml, Object)),
            ),
            ("*/*, application/yaml", Offer::Objects, Some((Yaml, Object))),
            ("application/yaml", Offer::Watch, None),
            (
                "application/json;stream=watch",
                Offer::Watch,
                Some((Json, Object)),
            ),
            ("application/json;stream=other", Offer::Watch, None),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Offer::Objects,
                Some((Protobuf, Metadata(V1))),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
                Offer::Objects,
                None,
            ),
            (
                "application/json;as=Table;g=meta.k8s.io;v=v2,application/json",
                Offer::Objects,
                Some((Json, Object)),
            ),
            ("text/html", Offer::Objects, None),
        ] {
            assert_eq!(check(header, offer).ok(), chosen, "{header:?} {offer:?}");
        }
    }

    #[test]
    fn a_refusal_lists_what_is_served() {
        assert_eq!(
            check("image/png", Offer::Objects),
            Err("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf".into())
        );
        assert_eq!(
            check("application/yaml", Offer::Watch),
            Err("only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch".into())
        );
    }

    #[test]
    fn a_body_without_a_type_is_json() {
        for (content_type, media) in [
            (None, Some(Media::Json)),
            (Some("application/vnd.kubernetes.protobuf"), Some(Media::Protobuf)),
            (Some("text/plain"), None),
        ] {
            assert_eq!(Media::of_body(content_type).ok(), media, "{content_type:?}");
        }
    }
}
