//! Corpora, workloads, measurement and reports for Leafpress.
