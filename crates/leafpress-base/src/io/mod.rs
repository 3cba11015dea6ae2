//! Direct reads and writes of files, singly and in batches, and waits that simulate a device's latency.

pub mod aligned;
pub mod at_path;
pub mod direct;
pub mod open;
#[allow(unsafe_code)]
pub mod system;
pub mod transfer;
#[cfg_attr(
    not(all(
        feature = "io-uring",
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "powerpc64"
        )
    )),
    path = "no_uring.rs"
)]
#[allow(unsafe_code)]
pub mod uring;
#[cfg(feature = "testing")]
pub mod wait;
