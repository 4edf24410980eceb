//! Ordered work on many items over several threads.
//!
//! Threads live for one call. A pool that outlives it would be faster by some 20 µs a call, and would hang in a
//! process that was forked from one with a pool, as every PyTorch data loader worker is.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::error::{Error, ErrorKind, Result};

/// More threads than any one machine has use for. Each has a cache of 4 MiB, so a slip such as 60,000 would be costly.
const MOST_THREADS: usize = 256;

/// How many threads to use: `wanted`, or as many as the machine offers; never more than `items` or 256, never none.
#[must_use]
pub fn thread_count(wanted: Option<NonZero<usize>>, items: usize) -> usize {
    let available = || thread::available_parallelism().map_or(1, NonZero::get);
    wanted
        .map_or_else(available, NonZero::get)
        .clamp(1, items.clamp(1, MOST_THREADS))
}

/// Applies `work` to every index below `items` and returns the results in order. Each thread makes its own state with
/// `state` and takes the next index when it is done with one, so a long item holds up only its own thread.
pub fn ordered_map<S, T: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let done = take_turns(items, threads, state, work, || true);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The same for work that can fail. After a failure, or when `go_on` says no, no further index is taken; `go_on` is asked
/// before each, on every thread.
///
/// # Errors
/// That of the lowest index that fails, whatever the threads: indices are taken in order, so all below it are done.
/// [`ErrorKind::Interrupted`] if `go_on` said no.
pub fn try_ordered_map<S, T: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T> + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<T>> {
    let has_failed = AtomicBool::new(false);
    let watched = |state: &mut S, index| {
        let result = work(state, index);
        if result.is_err() {
            has_failed.store(true, Ordering::Relaxed);
        }
        result
    };
    let done = take_turns(items, threads, state, watched, || {
        !has_failed.load(Ordering::Relaxed) && go_on()
    });
    let results = done.into_iter().map(|(_, result)| result);
    let results = results.collect::<Result<Vec<T>>>()?;
    if results.len() < items {
        return Err(Error::new(ErrorKind::Interrupted, "stopped by the caller"));
    }
    Ok(results)
}

/// The results of the indices that were taken before `go_on` said no, with these, in order.
fn take_turns<S, T: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
    go_on: impl Fn() -> bool + Sync,
) -> Vec<(usize, T)> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        let mut done = Vec::new();
        while go_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= items {
                break;
            }
            done.push((index, work(&mut state, index)));
        }
        done
    };
    if threads <= 1 {
        return run();
    }
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        // Where the system gives no more threads, those there are do the work.
        let handles: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut done = run();
        for handle in handles {
            match handle.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|&(index, _)| index);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in 1..5 {
            let squares = ordered_map(1000, threads, || (), |(), index| index * index);
            assert_eq!(
                squares,
                (0..1000).map(|index| index * index).collect::<Vec<_>>()
            );
        }
        assert_eq!(thread_count(NonZero::new(8), 3), 3);
        assert_eq!(thread_count(None, 0), 1);
        assert_eq!(thread_count(NonZero::new(60_000), 60_000), MOST_THREADS);
    }

    #[test]
    fn the_first_failure_ends_the_work_and_is_the_one_that_is_told() {
        for threads in 1..5 {
            let done = AtomicUsize::new(0);
            let work = |(): &mut (), index: usize| {
                done.fetch_add(1, Ordering::Relaxed);
                if index % 100 == 99 {
                    let message = index.to_string();
                    return Err(Error::new(ErrorKind::Io, message));
                }
                Ok(index)
            };
            let error = try_ordered_map(1_000_000, threads, || (), work, &|| true).unwrap_err();
            assert_eq!(error.message(), "99");
            assert!(done.into_inner() < 500_000);
        }
    }

    #[test]
    fn the_caller_may_stop_it() {
        let asked = AtomicUsize::new(0);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 10;
        let error = try_ordered_map(1000, 2, || (), |(), index| Ok(index), &go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let all = try_ordered_map(1000, 2, || (), |(), index| Ok(index), &|| true);
        assert_eq!(all.unwrap().len(), 1000);
    }
}
