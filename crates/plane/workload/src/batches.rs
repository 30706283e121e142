//! Many requests at once, carefully: one, then two, then four; the first failure ends it.
//!
//! Source: `slowStartBatch` in `pkg/controller/replicaset/replica_set.go`, Kubernetes 1.36.

use std::future::Future;

use futures_util::future::join_all;

/// Runs `action` for each of `items`, in batches that double as long as all succeed. Answers with how many succeeded, and
/// the first failure.
pub(crate) async fn in_batches<T, E, F: Future<Output = Result<(), E>>>(
    items: impl IntoIterator<Item = T>,
    action: impl Fn(T) -> F,
) -> (usize, Option<E>) {
    let mut items = items.into_iter().peekable();
    let (mut done, mut size) = (0, 1);
    while items.peek().is_some() {
        let batch: Vec<_> = items.by_ref().take(size).map(&action).collect();
        let results = join_all(batch).await;
        let mut failure = None;
        for result in results {
            match result {
                Ok(()) => done += 1,
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        if failure.is_some() {
            return (done, failure);
        }
        size *= 2;
    }
    (done, None)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn batches_double_and_end_with_the_first_failure() {
        let tried = RefCell::new(Vec::new());
        let (done, failure) = in_batches(1..100, async |item| {
            tried.borrow_mut().push(item);
            if item == 5 { Err("five") } else { Ok(()) }
        })
        .await;
        // 1, 2 3, 4 5 6 7: the batch of the failure runs to its end.
        assert_eq!((done, failure), (6, Some("five")));
        assert_eq!(tried.into_inner(), (1..8).collect::<Vec<_>>());
        let (done, failure) = in_batches(0..0, async |_: i32| Err("never")).await;
        assert_eq!((done, failure), (0, None));
    }
}
