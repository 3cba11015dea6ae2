//! Statistics of a tree, as `leafpress.TreeStats`.

use leafpress::TreeStats;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::call;

/// Makes an object of the Python class that documents the library's figures.
pub fn named<'py>(py: Python<'py>, stats: &TreeStats) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let fields = PyDict::new(py);
    macro_rules! set {
        ($($name:ident)*) => { $( fields.set_item(stringify!($name), &stats.$name)?; )* };
    }
    set! {
        records user_bytes bytes_held
        leaf_bytes inner_bytes interpolation_bytes landing_bytes large_value_bytes hot_bytes dictionary_bytes
        retired_bytes free_bytes
        thread_bytes fixed_bytes
        leaves frames landing_buffers inner_nodes depth dictionary_id frame_limit_bytes leaf_limit_bytes limits_reason
        hot_records warm_leaves cold_leaves records_heated leaves_warmed leaves_cooled temperature_reason
        gets get_frames_decoded get_bytes_decoded get_landing_hits get_hot_hits
        puts bulk_loaded put_bytes copied_bytes compressed_bytes removes splits merges
        bg_passes bg_compactions bg_errors bg_panics bg_threads_ended
        engine_name
    }
    let class = CLASS.import(py, "leafpress._stats", "TreeStats")?;
    call::with_words(class.as_any(), (), Some(&fields))
}
