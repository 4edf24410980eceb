//! Ordered work on many items over several threads.
//!
//! Threads live for one call. A pool that outlives it would be faster by some 20 µs a call, and would hang in a
//! process that was forked from one with a pool, as every PyTorch data loader worker is.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads than any one machine has use for. Each has a cache of 2 MiB, so a slip such as 60,000 would be costly.
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
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= items {
                return done;
            }
            done.push((index, work(&mut state, index)));
        }
    };
    if threads <= 1 {
        return run().into_iter().map(|(_, result)| result).collect();
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
    done.into_iter().map(|(_, result)| result).collect()
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
}
