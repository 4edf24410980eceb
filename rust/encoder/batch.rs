//! Ordered work on many items over several threads.
//!
//! Threads live for one call. A pool that outlives it would be faster by some 20 µs a call, and would hang in a
//! process that was forked from one with a pool, as every PyTorch data loader worker is.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, ErrorKind, Result};

/// More threads than any one machine has use for. Each has a cache of 3 MiB, so a slip such as 60,000 would be costly.
const MOST_THREADS: usize = 256;

/// Bytes of text that are worth a thread of their own, where one item has work for several.
const TEXT_LEN: usize = 1 << 20;

/// How many threads to use: `wanted`, or as many as the machine offers; never more than there is work for, by the number
/// of `items` or the length of their text, and never more than 256, or none.
#[must_use]
pub fn thread_count(
    wanted: Option<NonZero<usize>>,
    items: usize,
    text_len: impl FnOnce() -> usize,
) -> usize {
    let available = || thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = wanted
        .map_or_else(available, NonZero::get)
        .min(MOST_THREADS);
    if wanted <= items {
        return wanted;
    }
    wanted.min(items.max(text_len() / TEXT_LEN)).max(1)
}

/// Applies `work` to every index below `items` and returns the results in order. Each thread makes its own state with
/// `state` and takes the next index when it is done with one; when there is none left it does what `at_end` says.
pub fn ordered_map<S: Send, T: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
    at_end: impl Fn(&mut S) + Sync,
) -> Vec<T> {
    let with_results = || (state(), Vec::new());
    let keep = |(state, done): &mut (S, Vec<_>), index| done.push((index, work(state, index)));
    let at_end = |(state, _): &mut (S, Vec<_>)| at_end(state);
    let states = take_turns(items, threads, with_results, keep, at_end, || true);
    let mut done: Vec<(usize, T)> = states.into_iter().flat_map(|(_, done)| done).collect();
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The same for work that keeps its results in the state and can fail: returns the states, each of which took its indices
/// in ascending order. After a failure, or when `go_on` says no, no further index is taken; `go_on` is asked before each, on
/// every thread.
///
/// # Errors
/// That of the lowest index that fails, whatever the threads: indices are taken in order, so all below it are done.
/// [`ErrorKind::Interrupted`] if `go_on` said no.
pub fn try_fold<S: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
    at_end: impl Fn(&mut S) + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<S>> {
    let done = AtomicUsize::new(0);
    let first_failure = Mutex::new(None);
    let has_failed = AtomicBool::new(false);
    let watched = |state: &mut S, index| match work(state, index) {
        Ok(()) => {
            done.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => {
            has_failed.store(true, Ordering::Relaxed);
            let mut first = first_failure.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|&(earlier, _)| index < earlier) {
                *first = Some((index, error));
            }
        }
    };
    let states = take_turns(items, threads, state, watched, at_end, || {
        !has_failed.load(Ordering::Relaxed) && go_on()
    });
    let first_failure = first_failure.into_inner();
    if let Some((_, error)) = first_failure.unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    if done.into_inner() < items {
        return Err(Error::new(ErrorKind::Interrupted, "stopped by the caller"));
    }
    Ok(states)
}

/// The states of the threads after all indices, or those that were taken before `go_on` said no.
fn take_turns<S: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
    at_end: impl Fn(&mut S) + Sync,
    go_on: impl Fn() -> bool + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        while go_on() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= items {
                break;
            }
            work(&mut state, index);
        }
        at_end(&mut state);
        state
    };
    if threads <= 1 {
        return vec![run()];
    }
    thread::scope(|scope| {
        // Where the system gives no more threads, those there are do the work.
        let handles: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut states = vec![run()];
        for handle in handles {
            match handle.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in 1..5 {
            let squares = ordered_map(1000, threads, || (), |(), index| index * index, |()| ());
            assert_eq!(
                squares,
                (0..1000).map(|index| index * index).collect::<Vec<_>>()
            );
        }
        assert_eq!(thread_count(NonZero::new(8), 3, || 100), 3);
        assert_eq!(thread_count(NonZero::new(8), 1, || 5 * TEXT_LEN), 5);
        assert_eq!(thread_count(None, 0, || 0), 1);
        assert_eq!(
            thread_count(NonZero::new(60_000), 60_000, || 0),
            MOST_THREADS
        );
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
                Ok(())
            };
            let error = try_fold(1_000_000, threads, || (), work, |()| (), &|| true).unwrap_err();
            assert_eq!(error.message(), "99");
            assert!(done.into_inner() < 500_000);
        }
    }

    #[test]
    fn the_caller_may_stop_it() {
        let asked = AtomicUsize::new(0);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 10;
        let keep = |taken: &mut Vec<usize>, index| {
            taken.push(index);
            Ok(())
        };
        let error = try_fold(1000, 2, Vec::new, keep, |_| (), &go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let mut all = try_fold(1000, 2, Vec::new, keep, |_| (), &|| true).unwrap();
        assert!(all.iter().all(|taken| taken.is_sorted()));
        assert_eq!(all.iter_mut().map(|taken| taken.len()).sum::<usize>(), 1000);
    }
}
