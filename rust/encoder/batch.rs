//! Ordered work on many items over several threads.
//!
//! Threads live for one call. A pool that outlives it would be faster by some 20 µs a call, and would hang in a
//! process that was forked from one with a pool, as every PyTorch data loader worker is.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::encoder::crew::{Crew, Item, Job, Work};
use crate::error::Result;

/// More threads than any one machine has use for. Each has caches of 4 MB and more, so a slip such as 60,000 would be
/// costly.
const MOST_THREADS: usize = 256;

/// Items that wait for each other thread while the one that reads conversations works too: enough for them to last until
/// it is done with an item, though that may be several times as long as theirs.
const QUEUED: usize = 6;

/// The threads of one call.
#[derive(Clone, Copy)]
pub(crate) struct Threads {
    /// How many, the calling one included.
    count: usize,
    /// How many items wait for each of the others while the one that reads them works too.
    queued: usize,
}

impl Threads {
    /// So many, for items that have to be read, one by one.
    pub(super) fn that_read(count: usize) -> Self {
        let queued = QUEUED;
        Self { count, queued }
    }
}

/// Bytes of text that are worth a thread of their own, where one item has work for several.
const TEXT_LEN: usize = 1 << 20;

/// How many threads to use: `wanted`, or as many as the machine offers; never more than there is work for, by the
/// number of `items` or the length of their text, and never more than 256, or none.
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

/// Applies `work` to every index below `items` and returns the results in order.
pub(crate) fn ordered_map<S: Send, R: Send, J: Job>(
    items: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &Crew<(), J>, usize) -> R + Sync,
    scratch: impl Fn(&mut S) -> &mut J::Scratch + Sync,
) -> Vec<R> {
    let mut rest = 0..items;
    let states = try_fold(
        Threads {
            count: threads,
            // All are there already.
            queued: usize::MAX,
        },
        || rest.next().map(|_| Ok(())),
        at_once,
        || (state(), Vec::new()),
        |(state, done), crew, index, ()| {
            done.push((index, work(state, crew, index)));
            Ok(())
        },
        |(state, _)| scratch(state),
        &|| true,
    );
    // Nothing here fails or stops.
    let states = states.unwrap_or_default();
    let mut done: Vec<(usize, R)> = states.into_iter().flat_map(|(_, done)| done).collect();
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Applies `work` to the items that `next` yields, with their indices, and returns the states of the threads. `work`
/// keeps its results in the state, whose items come in ascending order; a thread without an item helps with what others
/// share, with the `scratch` of its state.
///
/// `next` is called on this thread alone, which also works whenever `threads.queued` items wait for each other one; so
/// an item need not exist before a thread is free for it, and reading the next ones goes on beside the work. What this
/// thread does between two calls of `next`, waiting included, it does inside `apart`, which must call what it is given.
/// After a failure, or when `go_on` says no, no further item is taken; `go_on` is asked before each, on every thread.
///
/// # Errors
/// That of the lowest index that fails, of `next` or of `work`, whatever the threads: items are taken in order, so all
/// below it are done. [`ErrorKind::Interrupted`](crate::error::ErrorKind::Interrupted) if `go_on` said no.
pub(crate) fn try_fold<T: Send, S: Send, J: Job>(
    threads: Threads,
    mut next: impl FnMut() -> Option<Result<T>>,
    apart: impl Fn(&mut (dyn FnMut() + Send)),
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &Crew<T, J>, usize, T) -> Result<()> + Sync,
    scratch: impl Fn(&mut S) -> &mut J::Scratch + Sync,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<S>> {
    let crew = Crew::default();
    let work_on = |state: &mut S, item: Item<'_, T, J>| {
        let Item {
            index,
            content,
            under_way: _under_way,
        } = item;
        if !go_on() {
            crew.fail(None);
        } else if let Err(error) = work(state, &crew, index, content) {
            crew.fail(Some((index, error)));
        }
    };
    let drain = |state: &mut S| {
        while let Some(work) = crew.next() {
            match work {
                Work::Item(item) => work_on(state, item),
                Work::Help(help) => help.give(scratch(state)),
            }
        }
    };
    let mut own = state();
    let states = thread::scope(|scope| {
        let run = || {
            let mut state = state();
            drain(&mut state);
            state
        };
        // Where the system gives no more threads, those there are do the work.
        let handles: Vec<_> = (1..threads.count)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let read_and_work = || {
            let mut index = 0;
            // The last item that was read. This thread keeps it until there is another, so that a lone one stays where
            // it was read: on a new thread all its memory would be new too.
            let mut kept = None;
            while !crew.has_failed() {
                match next() {
                    Some(Ok(item)) => {
                        if let Some(earlier) = kept.replace(item) {
                            crew.push(index - 1, earlier);
                        }
                    }
                    Some(Err(error)) => {
                        crew.refuse(index, error);
                        break;
                    }
                    None => break,
                }
                index += 1;
                if let Some(item) =
                    crew.item_if_more_than(threads.queued.saturating_mul(handles.len()))
                {
                    let mut item = Some(item);
                    apart(&mut || {
                        if let Some(item) = item.take() {
                            work_on(&mut own, item);
                        }
                    });
                }
            }
            let mut last = kept.and_then(|item| crew.push_or_take(index - 1, item));
            crew.close();
            apart(&mut || {
                if let Some(item) = last.take() {
                    work_on(&mut own, item);
                }
                drain(&mut own);
            });
        };
        // Python code that `next` runs may panic. The others are waited for apart even then: one of them may need what
        // this thread holds outside.
        let done = catch_unwind(AssertUnwindSafe(read_and_work));
        if done.is_err() {
            crew.fail(None);
        }
        let mut handles = handles.into_iter();
        let mut states = Vec::new();
        apart(&mut || {
            states.extend(handles.by_ref().map(thread::ScopedJoinHandle::join));
        });
        done.and_then(|()| states.into_iter().collect::<thread::Result<Vec<S>>>())
    });
    let mut states = states.unwrap_or_else(|panic| resume_unwind(panic));
    crew.into_result()?;
    states.push(own);
    Ok(states)
}

/// What needs no surroundings of its own.
pub(crate) fn at_once(work: &mut (dyn FnMut() + Send)) {
    work();
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::{Error, ErrorKind};

    /// For work that nobody shares.
    enum NoJob {}

    impl Job for NoJob {
        type Scratch = ();

        fn do_one(&self, (): &mut ()) -> bool {
            match *self {}
        }

        fn is_done(&self) -> bool {
            match *self {}
        }
    }

    /// [`try_fold`] of work that keeps what it does in `S` and shares nothing.
    fn fold<T: Send, S: Send + Default>(
        threads: usize,
        next: impl FnMut() -> Option<Result<T>>,
        work: impl Fn(&mut S, usize, T) -> Result<()> + Sync,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<S>> {
        let states = try_fold(
            Threads::that_read(threads),
            next,
            at_once,
            || (S::default(), ()),
            |(state, ()), _: &Crew<T, NoJob>, index, item| work(state, index, item),
            |(_, scratch): &mut (S, ())| scratch,
            go_on,
        )?;
        Ok(states.into_iter().map(|(state, ())| state).collect())
    }

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in 1..5 {
            let square = |(): &mut (), _: &Crew<(), NoJob>, index| index * index;
            let squares = ordered_map(1000, threads, || (), square, |scratch| scratch);
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
            let error = fold(threads, indices(1_000_000), work, &|| true);
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
                let error = fold(threads, next, work, &|| true);
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
        let states = fold(4, indices(1), same, &|| true).unwrap();
        assert_eq!(states, [false, false, false, true]);
    }

    /// What this thread holds outside stands for the GIL: work needs it, so without `apart` all would wait for ever.
    #[test]
    fn what_next_throws_is_thrown_when_all_threads_are_done() {
        for threads in 1..5 {
            let outside = Mutex::new(());
            let held = RefCell::new(outside.lock().ok());
            let mut rest = 0..20;
            let next = || {
                assert!(!rest.is_empty(), "an item that panics, as it should here");
                rest.next().map(Ok)
            };
            let apart = |work: &mut (dyn FnMut() + Send)| {
                held.take();
                work();
                held.replace(outside.lock().ok());
            };
            let work = |(): &mut (), _: &Crew<i32, NoJob>, _, _| {
                drop(outside.lock());
                Ok(())
            };
            let thrown = catch_unwind(AssertUnwindSafe(|| {
                try_fold(
                    Threads {
                        count: threads,
                        queued: 1,
                    },
                    next,
                    apart,
                    || (),
                    work,
                    |scratch| scratch,
                    &|| true,
                )
            }));
            assert!(thrown.is_err());
        }
    }

    #[test]
    fn after_a_stop_the_last_item_is_not_taken() {
        let work = |(): &mut (), index, _| {
            assert_eq!(index, 0);
            Err(Error::new(ErrorKind::Io, "stopped"))
        };
        let error = fold(1, indices(2), work, &|| true).unwrap_err();
        assert_eq!(error.message(), "stopped");
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
        let error = fold(2, indices(1000), keep, &go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        for threads in 1..5 {
            let all = fold(threads, indices(1000), keep, &|| true);
            let mut all = all.unwrap();
            assert!(all.iter().all(|taken| taken.is_sorted()));
            assert_eq!(all.iter_mut().map(|taken| taken.len()).sum::<usize>(), 1000);
        }
    }
}
