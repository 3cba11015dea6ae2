//! Compiles the C++ shim. Without a C++ compiler that works, the crate is built without it and `Library::open` says so:
//! a plain build needs no more than a C compiler.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/shim.cpp");
    println!("cargo::rerun-if-changed=../include/pibench/tree_api.hpp");

    let compiled = cc::Build::new()
        .cpp(true)
        .std("c++20")
        .include("../include")
        .file("src/shim.cpp")
        .extra_warnings(true)
        // Compiler warnings about the shim are irrelevant to a build that continues without it.
        .cargo_warnings(false)
        .try_compile("leafpress_pibench_shim");
    match compiled {
        Ok(()) => println!("cargo::rustc-cfg=pibench_shim"),
        Err(error) => {
            let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
            println!("cargo::rustc-env=LEAFPRESS_PIBENCH_NO_SHIM={reason}");
            println!("cargo::warning=no working C++20 compiler: built without the PiBench host ({reason})");
        }
    }
}
