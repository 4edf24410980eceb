//! numpy, which is loaded late: who only prepares files has no use for it, and it takes longer to load than all else.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

static LOADED: PyOnceLock<()> = PyOnceLock::new();

/// Loads numpy and its C interface, if they are not. To be called before the work whose results are arrays: the first
/// array would load them, and what is raised meanwhile, as by Ctrl-C, would be a panic there.
pub(super) fn load_numpy(py: Python<'_>) -> PyResult<()> {
    if LOADED.get(py).is_none() {
        // Not in the cell, which a signal handler that encodes would wait for, and a child forked meanwhile too.
        py.import("numpy")?;
        numpy::get_array_module(py)?;
        // From here on no Python code runs.
        PyArray1::<u8>::zeros(py, 0, false);
        let _ = LOADED.set(py, ());
    }
    Ok(())
}
