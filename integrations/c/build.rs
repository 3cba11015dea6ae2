//! Gives the shared library its name.

fn main() {
    // The interface's version: raised when a program that was linked against an older one would break.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libleafpress.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
