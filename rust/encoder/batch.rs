//! Ordered work on many items over several threads.
//!
//! Threads live for one call. A pool that outlives it would be faster by some 20 µs a call, and would hang in a
//! process that was forked from one with a pool, as every PyTorch data loader worker is.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, ErrorKind, Result};

/// More threads than any one machine has use for. Each has a cache of 3 MiB, so a slip such as 60,000 would be costly.
const MOST_THREADS: usize = 256;

/// Items that wait for each other thread while the one that reads works too: enough for them to last until it is done with
/// an item, though that may be several times as long as theirs.
const QUEUED: usize = 6;

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
    let states = take_turns(items, threads, with_results, keep, at_end);
    let mut done: Vec<(usize, T)> = states.into_iter().flat_map(|(_, done)| done).collect();
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Applies `work` to the items that `next` yields, with their indices, and returns the states of the threads. `work` keeps
/// its results in the state, whose items come in ascending order.
///
/// `next` is called on this thread alone, which also works whenever the others have enough to do; so an item need not exist
/// before a thread is free for it, and reading the next ones goes on beside the work. What this thread does between two
/// calls of `next`, waiting included, it does inside `apart`, which must call what it is given. After a failure, or when
/// `go_on` says no, no further item is taken; `go_on` is asked before each, on every thread.
///
/// # Errors
/// That of the lowest index that fails, of `next` or of `work`, whatever the threads: items are taken in order, so all
/// below it are done. [`ErrorKind::Interrupted`] if `go_on` said no.
pub fn try_fold<T: Send, S: Send>(
    threads: usize,
    mut next: impl FnMut() -> Option<Result<T>>,
    apart: impl Fn(&mut (dyn FnMut() + Send)),
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, T) -> Result<()> + Sync,
    at_end: impl Fn(&mut S) + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<S>> {
    let queue = Queue::new();
    let work_on = |state: &mut S, (index, item)| {
        if !go_on() {
            queue.fail(None);
        } else if let Err(error) = work(state, index, item) {
            queue.fail(Some((index, error)));
        }
    };
    let drain = |state: &mut S| {
        while let Some(item) = queue.wait_for_item() {
            work_on(state, item);
        }
        at_end(state);
    };
    let states = thread::scope(|scope| {
        let run = || {
            let mut state = state();
            drain(&mut state);
            state
        };
        let mut own = state();
        // Where the system gives no more threads, those there are do the work.
        let handles: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        // Whatever happens here, the others must not wait for ever.
        let closing = Closing(&queue);
        let mut index = 0;
        // The last item that was read. This thread keeps it until there is another, so that a lone one stays where it was
        // read: on a new thread all its memory would be new too.
        let mut kept = None;
        while !queue.has_failed() {
            match next() {
                Some(Ok(item)) => {
                    if let Some(earlier) = kept.replace((index, item)) {
                        queue.push(earlier);
                    }
                }
                Some(Err(error)) => {
                    queue.refuse(index, error);
                    break;
                }
                None => break,
            }
            index += 1;
            if let Some(item) = queue.item_if_more_than(QUEUED * handles.len()) {
                let mut item = Some(item);
                apart(&mut || {
                    if let Some(item) = item.take() {
                        work_on(&mut own, item);
                    }
                });
            }
        }
        let mut last = kept.and_then(|item| queue.push_unless_empty(item));
        drop(closing);
        let mut handles = handles.into_iter();
        let mut others = Vec::new();
        apart(&mut || {
            if let Some(item) = last.take() {
                work_on(&mut own, item);
            }
            drain(&mut own);
            others.extend(handles.by_ref().map(thread::ScopedJoinHandle::join));
        });
        let mut states = vec![own];
        for other in others {
            match other {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    });
    queue.into_result()?;
    Ok(states)
}

/// What needs no surroundings of its own.
pub fn at_once(work: &mut (dyn FnMut() + Send)) {
    work();
}

/// Items on their way to the threads.
struct Queue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    items: VecDeque<(usize, T)>,
    is_closed: bool,
    /// Whether work has failed, so that nothing more is to be taken.
    has_failed: bool,
    /// The lowest index that failed; None if the caller stopped it.
    failure: Option<(usize, Error)>,
}

/// Closes the queue when dropped.
struct Closing<'q, T>(&'q Queue<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl<T> Queue<T> {
    fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                items: VecDeque::new(),
                is_closed: false,
                has_failed: false,
                failure: None,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, item: (usize, T)) {
        self.state().items.push_back(item);
        self.changed.notify_one();
    }

    /// Gives the item back if none is waiting: otherwise it is not its turn.
    fn push_unless_empty(&self, item: (usize, T)) -> Option<(usize, T)> {
        if self.state().items.is_empty() {
            return Some(item);
        }
        self.push(item);
        None
    }

    /// The next item, if there are more than so many.
    fn item_if_more_than(&self, enough: usize) -> Option<(usize, T)> {
        let mut state = self.state();
        let is_more = state.items.len() > enough && !state.has_failed;
        is_more.then(|| state.items.pop_front()).flatten()
    }

    /// The next item, as soon as there is one; None when there will be none.
    fn wait_for_item(&self) -> Option<(usize, T)> {
        let mut state = self.state();
        loop {
            if state.has_failed {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Work has failed, or the caller has stopped it: nothing more is taken.
    fn fail(&self, failure: Option<(usize, Error)>) {
        let mut state = self.state();
        state.has_failed = true;
        if let Some((index, error)) = failure {
            state.keep_lowest(index, error);
        }
        self.changed.notify_all();
    }

    /// There is no item of this index. Those before it may still fail, and theirs is then the error.
    fn refuse(&self, index: usize, error: Error) {
        self.state().keep_lowest(index, error);
    }

    fn into_result(self) -> Result<()> {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some((_, error)) => Err(error),
            None if state.has_failed => {
                Err(Error::new(ErrorKind::Interrupted, "stopped by the caller"))
            }
            None => Ok(()),
        }
    }
}

impl<T> QueueState<T> {
    fn keep_lowest(&mut self, index: usize, error: Error) {
        let is_lowest = self
            .failure
            .as_ref()
            .is_none_or(|(lowest, _)| index < *lowest);
        if is_lowest {
            self.failure = Some((index, error));
        }
    }
}

/// The states of the threads after all indices.
fn take_turns<S: Send>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
    at_end: impl Fn(&mut S) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        loop {
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

    fn indices(end: usize) -> impl FnMut() -> Option<Result<usize>> {
        let mut indices = 0..end;
        move || indices.next().map(Ok)
    }

    #[test]
    fn the_first_failure_ends_the_work_and_is_the_one_that_is_told() {
        for threads in 1..5 {
            let done = AtomicUsize::new(0);
            let work = |(): &mut (), index: usize, _| {
                done.fetch_add(1, Ordering::Relaxed);
                if index % 100 == 99 {
                    let message = index.to_string();
                    return Err(Error::new(ErrorKind::Io, message));
                }
                Ok(())
            };
            let error = try_fold(
                threads,
                indices(1_000_000),
                at_once,
                || (),
                work,
                |()| (),
                &|| true,
            );
            assert_eq!(error.unwrap_err().message(), "99");
            assert!(done.into_inner() < 500_000);
        }
    }

    #[test]
    fn an_item_that_cannot_be_had_ends_the_work_unless_an_earlier_one_fails() {
        for threads in 1..5 {
            for (failing, told) in [(50, "no item"), (30, "30")] {
                let mut indices = 0..;
                let next = || match indices.next() {
                    Some(40) => Some(Err(Error::new(ErrorKind::Json, "no item"))),
                    index => index.map(Ok),
                };
                let work = |(): &mut (), index: usize, _| {
                    assert!(index < 40);
                    let error = || Error::new(ErrorKind::Io, index.to_string());
                    if index == failing {
                        Err(error())
                    } else {
                        Ok(())
                    }
                };
                let error = try_fold(threads, next, at_once, || (), work, |()| (), &|| true);
                assert_eq!(error.unwrap_err().message(), told);
            }
        }
    }

    #[test]
    fn a_lone_item_stays_on_the_thread_that_read_it() {
        let here = thread::current().id();
        let same = |same: &mut bool, _, _| {
            *same = thread::current().id() == here;
            Ok(())
        };
        let states = try_fold(4, indices(1), at_once, || false, same, |_| (), &|| true).unwrap();
        assert_eq!(states, [true, false, false, false]);
    }

    #[test]
    fn the_caller_may_stop_it() {
        let asked = AtomicUsize::new(0);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 10;
        let keep = |taken: &mut Vec<usize>, index, item| {
            assert_eq!(index, item);
            taken.push(index);
            Ok(())
        };
        let error =
            try_fold(2, indices(1000), at_once, Vec::new, keep, |_| (), &go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        for threads in 1..5 {
            let all = try_fold(
                threads,
                indices(1000),
                at_once,
                Vec::new,
                keep,
                |_| (),
                &|| true,
            );
            let mut all = all.unwrap();
            assert!(all.iter().all(|taken| taken.is_sorted()));
            assert_eq!(all.iter_mut().map(|taken| taken.len()).sum::<usize>(), 1000);
        }
    }
}
