//! Compiles the functions for types that Rust lacks.

fn main() {
    println!("cargo:rerun-if-changed=src/long_double.c");
    cc::Build::new()
        .file("src/long_double.c")
        .compile("leafpress_long_double");
}
