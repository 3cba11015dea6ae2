//! Link options of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // PiBench unloads the library before it ends. Threads that run its code may be there still: callers with
    // thread-local destructors, which glibc waits for, and the background threads of a tree that was not deleted, which
    // nobody does.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
