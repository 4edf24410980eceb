//! The threads of one call: items that wait to be done, and work on one of them that others help with.
//!
//! A thread takes one item at a time, so a very long one would hold up its thread alone while the others go idle. Such
//! an item is posted as a job, and whoever has nothing else to do takes tasks of it. A job owns what it reads: it is
//! handed to threads that know nothing of the one that posted it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, ErrorKind, Result};

/// Work in tasks that any thread may do, in any order.
pub(crate) trait Job: Send + Sync {
    /// What a thread needs to do a task.
    type Scratch: ?Sized;

    /// Does one task that nobody has taken. Returns whether there was one.
    fn do_one(&self, scratch: &mut Self::Scratch) -> bool;

    /// Whether all tasks are done, not only taken.
    fn is_done(&self) -> bool;
}

/// What the threads of one call share.
pub(crate) struct Crew<T, J> {
    state: Mutex<State<T, J>>,
    /// There is something to do, or nothing will come any more.
    work_came: Condvar,
    /// A helper has left a job.
    job_left: Condvar,
}

struct State<T, J> {
    items: VecDeque<(usize, T)>,
    posted: Vec<Arc<J>>,
    /// Items that threads are at, which may still post something.
    under_way: usize,
    is_closed: bool,
    /// Whether work has failed, so that nothing more is to be taken.
    has_failed: bool,
    /// The lowest index that failed; None if the caller stopped it.
    failure: Option<(usize, Error)>,
}

/// What a thread does next.
pub(super) enum Work<'c, T, J: Job> {
    Item(Item<'c, T, J>),
    Help(Help<'c, T, J>),
}

/// An item that a thread has taken.
pub(super) struct Item<'c, T, J> {
    pub(super) index: usize,
    pub(super) content: T,
    pub(super) under_way: UnderWay<'c, T, J>,
}

/// Until this is dropped the item is not done.
pub(super) struct UnderWay<'c, T, J>(&'c Crew<T, J>);

/// A job that this thread helps with until this is dropped.
pub(super) struct Help<'c, T, J> {
    job: Option<Arc<J>>,
    crew: &'c Crew<T, J>,
}

impl<T, J> Default for Crew<T, J> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                posted: Vec::new(),
                under_way: 0,
                is_closed: false,
                has_failed: false,
                failure: None,
            }),
            work_came: Condvar::new(),
            job_left: Condvar::new(),
        }
    }
}

impl<T, J: Job> Crew<T, J> {
    /// Does a job, with the help of whoever is idle, and gives it back when all of it is done.
    pub(crate) fn share(&self, job: J, scratch: &mut J::Scratch) -> J {
        let mut job = Arc::new(job);
        self.state().posted.push(Arc::clone(&job));
        self.work_came.notify_all();
        while job.do_one(scratch) {}
        let mut state = self.state();
        state.withdraw(&job);
        loop {
            if job.is_done() {
                match Arc::try_unwrap(job) {
                    Ok(job) => return job,
                    Err(shared) => job = shared,
                }
            }
            state = wait(&self.job_left, state);
        }
    }

    pub(super) fn push(&self, index: usize, item: T) {
        self.state().items.push_back((index, item));
        self.work_came.notify_one();
    }

    /// The last item. It goes to the caller if it is its turn at once, and to nobody after a failure.
    pub(super) fn push_or_take(&self, index: usize, item: T) -> Option<Item<'_, T, J>> {
        let state = self.state();
        if !state.has_failed && state.items.is_empty() {
            return Some(self.under_way(state, (index, item)));
        }
        drop(state);
        self.push(index, item);
        None
    }

    /// The next item, if more than so many wait.
    pub(super) fn item_if_more_than(&self, enough: usize) -> Option<Item<'_, T, J>> {
        let mut state = self.state();
        if state.has_failed || state.items.len() <= enough {
            return None;
        }
        let item = state.items.pop_front()?;
        Some(self.under_way(state, item))
    }

    /// What to do next, as soon as there is something; None when there will be nothing.
    pub(super) fn next(&self) -> Option<Work<'_, T, J>> {
        let mut state = self.state();
        loop {
            if state.has_failed {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                return Some(Work::Item(self.under_way(state, item)));
            }
            if let Some(job) = state.posted.first() {
                return Some(Work::Help(Help {
                    job: Some(Arc::clone(job)),
                    crew: self,
                }));
            }
            if state.is_closed && state.under_way == 0 {
                return None;
            }
            state = wait(&self.work_came, state);
        }
    }

    fn under_way<'c>(
        &'c self,
        mut state: MutexGuard<'_, State<T, J>>,
        (index, content): (usize, T),
    ) -> Item<'c, T, J> {
        state.under_way += 1;
        Item {
            index,
            content,
            under_way: UnderWay(self),
        }
    }

    /// No further items will come.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.work_came.notify_all();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Work has failed, or the caller has stopped it: nothing more is taken.
    pub(super) fn fail(&self, failure: Option<(usize, Error)>) {
        let mut state = self.state();
        state.has_failed = true;
        if let Some((index, error)) = failure {
            state.keep_lowest(index, error);
        }
        self.work_came.notify_all();
    }

    /// There is no item of this index. Those before it may still fail, and theirs is then the error.
    pub(super) fn refuse(&self, index: usize, error: Error) {
        self.state().keep_lowest(index, error);
    }

    pub(super) fn into_result(self) -> Result<()> {
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

impl<T, J> Crew<T, J> {
    fn state(&self) -> MutexGuard<'_, State<T, J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, J> State<T, J> {
    /// Nobody need look at this job any more: all of it is taken.
    fn withdraw(&mut self, job: &Arc<J>) {
        self.posted.retain(|posted| !Arc::ptr_eq(posted, job));
    }

    /// What a panic ends is not to be gone on with. It is thrown again when all threads are done.
    fn stop_if_panicking(&mut self, work_came: &Condvar) {
        if thread::panicking() {
            self.has_failed = true;
            self.posted.clear();
            work_came.notify_all();
        }
    }

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

impl<T, J> Drop for UnderWay<'_, T, J> {
    /// Also where work panics, so that nobody waits for it.
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way -= 1;
        state.stop_if_panicking(&self.0.work_came);
        if state.under_way == 0 && state.is_closed {
            self.0.work_came.notify_all();
        }
    }
}

impl<T, J: Job> Help<'_, T, J> {
    /// Does tasks until all are taken.
    pub(super) fn give(self, scratch: &mut J::Scratch) {
        while self.job.as_ref().is_some_and(|job| job.do_one(scratch)) {}
    }
}

impl<T, J> Drop for Help<'_, T, J> {
    /// Also where a task panics, so that the one who posted the job does not wait for ever.
    fn drop(&mut self) {
        let mut state = self.crew.state();
        if let Some(job) = self.job.take() {
            state.withdraw(&job);
        }
        state.stop_if_panicking(&self.crew.work_came);
        self.crew.job_left.notify_all();
    }
}

fn wait<'s, S>(changed: &Condvar, state: MutexGuard<'s, S>) -> MutexGuard<'s, S> {
    let woken = changed.wait(state);
    woken.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A job whose tasks are counted.
    struct Count {
        tasks: usize,
        taken: AtomicUsize,
        done: AtomicUsize,
    }

    impl Count {
        fn of(tasks: usize) -> Self {
            Self {
                tasks,
                taken: AtomicUsize::new(0),
                done: AtomicUsize::new(0),
            }
        }
    }

    struct Done<'c>(&'c AtomicUsize);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Job for Count {
        type Scratch = usize;

        fn do_one(&self, mine: &mut usize) -> bool {
            let task = self.taken.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                return false;
            }
            let _done = Done(&self.done);
            *mine += 1;
            true
        }

        fn is_done(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= self.tasks
        }
    }

    /// Does all there is. Returns how many tasks that were.
    fn work(crew: &Crew<usize, Count>) -> usize {
        let mut mine = 0;
        while let Some(work) = crew.next() {
            match work {
                Work::Item(item) => {
                    assert!(crew.share(Count::of(item.content), &mut mine).is_done());
                }
                Work::Help(help) => help.give(&mut mine),
            }
        }
        mine
    }

    #[test]
    fn every_task_is_done_once_whoever_is_there() {
        for threads in 1..5 {
            let crew = Crew::default();
            thread::scope(|scope| {
                let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&crew))).collect();
                // Some post much, some little, and one nothing.
                for tasks in 0..200 {
                    crew.push(tasks, tasks);
                }
                crew.close();
                let done = handles.into_iter().map(|handle| handle.join().unwrap());
                assert_eq!(done.sum::<usize>(), (0..200).sum::<usize>());
            });
        }
    }

    #[test]
    fn who_waits_for_items_helps_before_there_are_any() {
        let crew = Crew::<usize, Count>::default();
        thread::scope(|scope| {
            let helper = scope.spawn(|| work(&crew));
            let job = Arc::new(Count::of(1));
            crew.state().posted.push(Arc::clone(&job));
            crew.work_came.notify_all();
            while !job.is_done() {
                thread::yield_now();
            }
            crew.close();
            assert_eq!(helper.join().unwrap(), 1);
        });
    }

    /// Two tasks, one for each thread: the poster's waits until the helper has the other, which panics.
    #[derive(Default)]
    struct Bad {
        taken: AtomicUsize,
        done: AtomicUsize,
    }

    #[derive(PartialEq, Eq)]
    enum Role {
        Poster,
        Helper,
    }

    impl Job for Bad {
        type Scratch = Role;

        fn do_one(&self, role: &mut Role) -> bool {
            if self.taken.fetch_add(1, Ordering::Relaxed) >= 2 {
                return false;
            }
            let _done = Done(&self.done);
            assert!(*role == Role::Poster, "a task that panics, as it should");
            while self.taken.load(Ordering::Relaxed) < 2 {
                thread::yield_now();
            }
            true
        }

        fn is_done(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= 2
        }
    }

    #[test]
    fn a_helper_that_panics_keeps_nobody_waiting() {
        for _ in 0..20 {
            let crew = Crew::<(), Bad>::default();
            thread::scope(|scope| {
                let helper = scope.spawn(|| {
                    while let Some(Work::Help(help)) = crew.next() {
                        help.give(&mut Role::Helper);
                    }
                });
                assert!(crew.share(Bad::default(), &mut Role::Poster).is_done());
                assert!(helper.join().is_err());
                assert!(crew.has_failed());
            });
        }
    }
}
