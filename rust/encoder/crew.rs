//! Threads that are done with their own work help with what others still have.
//!
//! A thread takes one conversation at a time, so a very long one would hold up its thread alone while the others go idle.
//! It is therefore posted here as tasks, and whoever has nothing else to do takes them. The tasks own what they read: they
//! are handed to threads that know nothing of the one that posted them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Work in tasks that any thread may do, in any order.
pub(crate) trait Job: Send + Sync {
    /// What a thread needs to do a task.
    type Tools: ?Sized;

    /// Does one task that nobody has taken. Returns whether there was one.
    fn do_one(&self, tools: &mut Self::Tools) -> bool;

    /// Whether all tasks are done, not only taken.
    fn is_done(&self) -> bool;
}

/// The threads of one call.
pub(crate) struct Crew<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    posted: Vec<Arc<J>>,
    /// Threads that may still post something.
    busy: usize,
}

/// A thread of a crew: busy until it begins to help, or is dropped.
pub(crate) struct Member<'c, J: Job> {
    crew: &'c Crew<J>,
    is_busy: bool,
}

impl<J> Default for Crew<J> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                posted: Vec::new(),
                busy: 0,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<J: Job> Crew<J> {
    /// Counts the calling thread as busy. It must join before it takes work.
    pub(crate) fn join(&self) -> Member<'_, J> {
        self.state().busy += 1;
        Member {
            crew: self,
            is_busy: true,
        }
    }

    /// Does a job, with the help of whoever is idle, and gives it back when all of it is done.
    pub(crate) fn share(&self, job: J, tools: &mut J::Tools) -> J {
        let mut job = Arc::new(job);
        self.state().posted.push(Arc::clone(&job));
        self.changed.notify_all();
        while job.do_one(tools) {}
        let mut state = self.state();
        state.posted.retain(|posted| !Arc::ptr_eq(posted, &job));
        loop {
            if job.is_done() {
                match Arc::try_unwrap(job) {
                    Ok(job) => return job,
                    Err(shared) => job = shared,
                }
            }
            state = self.wait(state);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<J>>) -> MutexGuard<'s, State<J>> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Job> Member<'_, J> {
    /// Helps until no thread is busy any more.
    pub(crate) fn help(&mut self, tools: &mut J::Tools) {
        self.leave();
        let crew = self.crew;
        let mut state = crew.state();
        loop {
            if let Some(job) = state.posted.first().map(Arc::clone) {
                drop(state);
                while job.do_one(tools) {}
                state = crew.state();
                // All of it is taken: nobody else need look.
                state.posted.retain(|posted| !Arc::ptr_eq(posted, &job));
                drop(job);
                crew.changed.notify_all();
            } else if state.busy == 0 {
                return;
            } else {
                state = crew.wait(state);
            }
        }
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            self.crew.state().busy -= 1;
            self.crew.changed.notify_all();
        }
    }
}

impl<J: Job> Drop for Member<'_, J> {
    /// A thread that panics must not keep the others waiting.
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    struct Count {
        tasks: usize,
        taken: AtomicUsize,
        done: AtomicUsize,
    }

    impl Job for Count {
        type Tools = usize;

        fn do_one(&self, mine: &mut usize) -> bool {
            if self.taken.fetch_add(1, Ordering::Relaxed) >= self.tasks {
                return false;
            }
            *mine += 1;
            self.done.fetch_add(1, Ordering::Relaxed);
            true
        }

        fn is_done(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= self.tasks
        }
    }

    #[test]
    fn every_task_is_done_once_whoever_is_there() {
        for threads in 1..5 {
            let crew = Crew::default();
            let done = AtomicUsize::new(0);
            thread::scope(|scope| {
                for thread in 0..threads {
                    let (crew, done) = (&crew, &done);
                    scope.spawn(move || {
                        let mut member = crew.join();
                        let mut mine = 0;
                        // Some post much, some little, and one nothing.
                        for tasks in 0..thread * 100 {
                            let (taken, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
                            let job = Count {
                                tasks,
                                taken,
                                done: finished,
                            };
                            assert!(crew.share(job, &mut mine).is_done());
                        }
                        member.help(&mut mine);
                        done.fetch_add(mine, Ordering::Relaxed);
                    });
                }
            });
            let posted = (0..threads).map(|thread| (0..thread * 100).sum::<usize>());
            assert_eq!(done.into_inner(), posted.sum::<usize>());
        }
    }
}
