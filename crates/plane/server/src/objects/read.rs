//! Get and list, now or as it was.
//!
//! Rules follow `apiserver/pkg/storage/cacher/delegator.go` and `apiserver/pkg/storage/interfaces.go`, Kubernetes 1.36.

use std::sync::Arc;

use bytes::Bytes;
use hotmap_object::{Object, Revision, Status};

use super::{
    Objects,
    continue_token::ContinueToken,
    options::{ListOptions, Match, include_object},
    rendering::{ListMeta, Rendering},
    selector::Selector,
};
use crate::{
    answer::Answer,
    cache::{Lagged, Page, ResourceCache, Selection},
    http::negotiation::{Form, Media, Offer},
    request::ApiRequest,
};

/// Bytes of JSON that are put together at once; larger answers, and the costlier forms from a much smaller size on,
/// leave the runtime's threads alone.
const INLINE_BYTES_MAX: usize = 256 * 1024;
const INLINE_PARSED_BYTES_MAX: usize = 32 * 1024;

/// Which state a list is about.
enum At {
    /// Whatever the cache shows.
    Any,
    /// What is durable now.
    Newest,
    NotOlderThan(Revision),
    Exactly(Revision),
}

impl Objects {
    pub(super) async fn get(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let cache = self.cache_of(request.resource)?;
        let object = self.read_one(request).await?;
        let rendering = Rendering {
            resource: request.resource,
            stored: cache.resource(),
            negotiated,
            include,
            now: self.now(),
        };
        let body = rendering.document(&rendering.json(&object))?;
        Ok(Answer::ok(negotiated.media.content_type(), body))
    }

    /// The object that a GET is about, in a state as new as it asks for.
    ///
    /// # Errors
    ///
    /// 404 if it is not there, 504 if the state does not come in time.
    pub(super) async fn read_one(&self, request: &ApiRequest) -> Result<Arc<Object>, Status> {
        match request.query.text("resourceVersion") {
            None => self.cache.fresh().await?,
            Some("0") => self.cache.revision(),
            Some(raw) => self.cache.wait_for(revision(raw)?).await?,
        };
        let target = super::Target::of(request)?;
        let object = self.cache_of(request.resource)?.get(&target.key);
        object.ok_or_else(|| target.not_found())
    }

    pub(super) async fn list(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let options = ListOptions::of(&request.query, false)?;
        let cache = self.cache_of(request.resource)?;
        let selector = Selector::new(request.resource, request.namespace.as_deref(), &options)?;
        let (page, meta) = self.page(cache, &selector, &options).await?;
        let rendering = Rendering {
            resource: request.resource,
            stored: cache.resource(),
            negotiated,
            include,
            now: self.now(),
        };
        let body = render_list(rendering, page.items, meta).await?;
        Ok(Answer::ok(negotiated.media.content_type(), body))
    }

    /// The objects a list or deletecollection selects, with what goes into the list's metadata.
    pub(super) async fn page(
        &self,
        cache: &Arc<ResourceCache>,
        selector: &Selector,
        options: &ListOptions,
    ) -> Result<(Page, ListMeta), Status> {
        let token = continue_token(options)?;
        let at = state(options, token.as_ref())?;
        let prefix = selector.prefix();
        let start = token
            .as_ref()
            .map(|token| format!("{prefix}{}", token.start))
            .unwrap_or_default();
        // A list of any state is answered whole: pages need a revision to be pages of.
        let limit = options
            .limit
            .filter(|_| !matches!(at, At::Any) || token.is_some());
        let matches = |index: &hotmap_object::ObjectIndex| selector.matches(index);
        let selection = Selection {
            start: &start,
            prefix: &prefix,
            key: selector.key().filter(|_| token.is_none()),
            limit,
            matches: &matches,
        };
        let page = match (selector.node(), at) {
            (Some(_), at) => {
                let revision = self.revision_of(at).await?;
                let too_old = |lagged| expired(revision, lagged, token.as_ref());
                let members = self
                    .members(cache.resource(), selector, revision)
                    .map_err(too_old)?
                    .expect("the selector names a node");
                self.page_of_members(cache, &members, &selection, revision)
                    .map_err(too_old)?
            }
            (None, At::Any) => cache.list(&selection, self.cache.revision()),
            (None, At::Newest) => cache.list(&selection, self.cache.fresh().await?),
            (None, At::NotOlderThan(revision)) => {
                cache.list(&selection, self.cache.wait_for(revision).await?)
            }
            (None, At::Exactly(revision)) => {
                self.cache.wait_for(revision).await?;
                let listed = cache.list_at(&selection, revision);
                listed.map_err(|lagged| expired(revision, lagged, token.as_ref()))?
            }
        };
        let next = page.last_key.as_deref().filter(|_| page.remaining > 0);
        let next = next.map(|key| key.strip_prefix(&*prefix).unwrap_or(key));
        let meta = ListMeta {
            revision: page.revision,
            continue_token: next.map(|key| ContinueToken::after(key, Some(page.revision)).encode()),
            remaining: (page.remaining > 0 && options.selects_everything()).then_some(page.remaining),
        };
        Ok((page, meta))
    }
}

impl Objects {
    /// One revision that answers the question, and that the cache has reached.
    async fn revision_of(&self, at: At) -> Result<Revision, Status> {
        match at {
            At::Any => Ok(self.cache.revision()),
            At::Newest => self.cache.fresh().await,
            At::NotOlderThan(revision) => self.cache.wait_for(revision).await,
            At::Exactly(revision) => self.cache.wait_for(revision).await.map(|_| revision),
        }
    }
}

/// Puts a list together, away from the runtime's threads if it is large.
pub(super) async fn render_list(
    rendering: Rendering,
    items: Vec<Arc<Object>>,
    meta: ListMeta,
) -> Result<Bytes, Status> {
    let is_plain = rendering.negotiated.form == Form::Object
        && rendering.negotiated.media == Media::Json
        && std::ptr::eq(rendering.resource, rendering.stored);
    let most = if is_plain {
        INLINE_BYTES_MAX
    } else {
        INLINE_PARSED_BYTES_MAX
    };
    let size: usize = items.iter().map(|item| item.json().len()).sum();
    if size <= most {
        return rendering.list(&items, &meta);
    }
    let rendered = tokio::task::spawn_blocking(move || rendering.list(&items, &meta)).await;
    rendered.unwrap_or_else(|error| Err(Status::internal(error)))
}

/// # Errors
///
/// 400 for what is no number.
pub(super) fn revision(raw: &str) -> Result<Revision, Status> {
    raw.parse()
        .map_err(|_| Status::bad_request(format!("invalid resource version: {}", unreadable(raw))))
}

pub(super) fn unreadable(raw: &str) -> String {
    format!("resourceVersion: Invalid value: {raw:?}: strconv.ParseUint: parsing {raw:?}: invalid syntax")
}

fn continue_token(options: &ListOptions) -> Result<Option<ContinueToken>, Status> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    ContinueToken::decode(&options.continue_token).map(Some)
}

fn state(options: &ListOptions, token: Option<&ContinueToken>) -> Result<At, Status> {
    if let Some(token) = token {
        return Ok(token.revision.map_or(At::Newest, At::Exactly));
    }
    Ok(match options.resource_version.as_str() {
        "" => At::Newest,
        "0" => At::Any,
        raw => {
            let revision = revision(raw)?;
            let is_exact = match options.resource_version_match {
                Some(matching) => matching == Match::Exact,
                // Before there was a match parameter, a limit made the revision an exact one.
                None => options.limit.is_some(),
            };
            match (is_exact, revision.is_zero()) {
                (_, true) => At::Any,
                (true, false) => At::Exactly(revision),
                (false, false) => At::NotOlderThan(revision),
            }
        }
    })
}

fn expired(revision: Revision, lagged: Lagged, token: Option<&ContinueToken>) -> Status {
    match token {
        None => Status::expired(format!(
            "too old resource version: {revision} ({})",
            lagged.oldest
        )),
        Some(token) => {
            let newest = ContinueToken {
                revision: None,
                start: token.start.clone(),
            };
            let message = "The provided continue parameter is too old to display a consistent list result. A new list can \
                           be started without it, or the continue token of this answer returns the rest as it is now, \
                           which may not fit the pages before.";
            Status::expired_continue(message, newest.encode())
        }
    }
}
