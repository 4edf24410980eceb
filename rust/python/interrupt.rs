//! Ctrl-C while native code runs: Python hears of it only when it is asked, on its main thread.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long a signal may go unheard. Asking takes the GIL, which other threads want.
const PATIENCE: Duration = Duration::from_millis(100);

/// Asks Python for signals now and then, on the thread that made it: no other one of a call can be Python's main
/// thread.
pub(super) struct Listener {
    thread: ThreadId,
    asked: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Listener {
    pub(super) fn new() -> Self {
        Self {
            thread: thread::current().id(),
            asked: Mutex::new(Instant::now()),
            raised: Mutex::default(),
        }
    }

    /// Whether no signal handler has raised. To be called from all threads that work, with the GIL released.
    pub(super) fn heard_nothing(&self) -> bool {
        if thread::current().id() == self.thread
            && let Ok(mut asked) = self.asked.try_lock()
            && asked.elapsed() >= PATIENCE
        {
            *asked = Instant::now();
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method alone is for one lifetime of the GIL"
            )]
            let heard = Python::attach(|py| py.check_signals());
            if let Err(error) = heard {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        self.raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
    }

    /// What a handler raised.
    pub(super) fn into_raised(self) -> Option<PyErr> {
        self.raised
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
