//! Waiting for changes, in a task of any runtime or in a plain thread.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use event_listener::Listener;

use crate::live::Shared;

/// The last [`Live`](crate::Live) was dropped: there will be no more changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is not followed any more")]
pub struct Closed;

/// Changes, one after the other. What came several times while nobody looked comes once, as it is then.
pub struct Changes<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// Changes of one field. Others do not wake who waits for it.
pub struct Subscription<T, U: ?Sized> {
    changes: Changes<T>,
    field: fn(&T) -> &U,
    value: Arc<T>,
}

impl<T> Changes<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        let seen = shared.version.load(Ordering::Acquire);
        Self { shared, seen }
    }

    /// Waits for a change. Dropping it loses none.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn changed(&mut self) -> Result<Arc<T>, Closed> {
        loop {
            let listener = self.shared.event.listen();
            if let Some(value) = self.look()? {
                return Ok(value);
            }
            listener.await;
        }
    }

    /// The same in a thread.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn wait(&mut self) -> Result<Arc<T>, Closed> {
        loop {
            let listener = self.shared.event.listen();
            if let Some(value) = self.look()? {
                return Ok(value);
            }
            listener.wait();
        }
    }

    /// The same, but not longer than `deadline`: `None` if there was no change until then.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<Arc<T>>, Closed> {
        loop {
            let listener = self.shared.event.listen();
            if let Some(value) = self.look()? {
                return Ok(Some(value));
            }
            if listener.wait_deadline(deadline).is_none() {
                return self.look();
            }
        }
    }

    fn look(&mut self) -> Result<Option<Arc<T>>, Closed> {
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.seen {
            self.seen = version;
            return Ok(Some(self.shared.value.load_full()));
        }
        if self.shared.is_closed.load(Ordering::Acquire) != 0 {
            return Err(Closed);
        }
        Ok(None)
    }
}

impl<T, U: PartialEq + ?Sized> Subscription<T, U> {
    pub(crate) fn new(changes: Changes<T>, field: fn(&T) -> &U) -> Self {
        let value = changes.shared.value.load_full();
        Self {
            changes,
            field,
            value,
        }
    }

    /// The field as it was told last.
    pub fn get(&self) -> &U {
        (self.field)(&self.value)
    }

    /// Waits until the field is another, and gives it. Dropping it loses no change.
    ///
    /// # Errors
    /// [`Closed`].
    pub async fn changed(&mut self) -> Result<&U, Closed> {
        loop {
            let value = self.changes.changed().await?;
            if self.take(value) {
                return Ok(self.get());
            }
        }
    }

    /// The same in a thread.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn wait(&mut self) -> Result<&U, Closed> {
        loop {
            let value = self.changes.wait()?;
            if self.take(value) {
                return Ok(self.get());
            }
        }
    }

    /// The same, but not longer than `deadline`: `None` if the field did not change until then.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Option<&U>, Closed> {
        loop {
            let Some(value) = self.changes.wait_until(deadline)? else {
                return Ok(None);
            };
            if self.take(value) {
                return Ok(Some(self.get()));
            }
        }
    }

    fn take(&mut self, value: Arc<T>) -> bool {
        let is_other = (self.field)(&value) != self.get();
        self.value = value;
        is_other
    }
}

impl<T> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl<T, U: ?Sized> fmt::Debug for Subscription<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}
