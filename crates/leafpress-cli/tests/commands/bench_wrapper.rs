//! `leafpress bench` on a wrapper: a shared library written for PiBench.

use std::process::Output;

use tempfile::TempDir;

use crate::bench::{bench, figure};
use crate::common::{leafpress, stderr, stdout};

/// A hundred operations on a hundred records; the wrapper's pool tells it what to do.
fn run(arguments: &[&str], pool_path: &str) -> Output {
    leafpress()
        .args(["bench", "-n", "100", "-p", "100", "--pool_size", "77"])
        .args(["--pool_path", pool_path])
        .args(arguments)
        .output()
        .expect("leafpress starts")
}

/// A wrapper compiled here: find, insert and scan reach it, options too, and its exceptions are reported.
#[test]
fn a_wrapper_is_driven() {
    let directory = TempDir::new().expect("a temporary directory");
    let Some(wrapper) = compile(&directory, WRAPPER) else {
        eprintln!("skipped: no C++ compiler");
        return;
    };
    let mix = "-t 2 -r 0.4 -i 0.2 -u 0.2 -d 0.1 -s 0.1 --pool_path here --pool_size 77";
    let arguments: Vec<&str> = [wrapper.as_str()].into_iter().chain(mix.split(' ')).collect();
    let text = bench(&arguments);
    assert_eq!(
        figure(&text, "- Insert completed:"),
        figure(&text, "- Insert succeeded:")
    );
    assert!(
        figure(&text, "- Scan succeeded:") > 0.0 && text.contains("Wrong scans: 0 of"),
        "{text}"
    );
    for (pool_path, words) in [
        ("throw", ["threw", "a wrapper that throws"]),
        ("null", ["create_tree", "null"]),
        ("lose", ["missing after the load", "id "]),
    ] {
        let output = run(&[&wrapper], pool_path);
        assert_eq!(output.status.code(), Some(1), "{pool_path}");
        let message = stderr(&output);
        assert!(
            words.iter().all(|word| message.contains(word)),
            "{pool_path}: {message}"
        );
    }
    let output = run(&[&wrapper, "-r", "0", "-s", "1"], "backwards");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("Wrong scans: "),
        "the report is printed all the same"
    );
    assert!(
        stderr(&output).contains("returned wrong records"),
        "{}",
        stderr(&output)
    );
    // Results are printed before the tree is deleted, which some wrappers do not survive.
    let output = run(&[&wrapper], "die");
    assert!(!output.status.success());
    let report = stdout(&output);
    assert!(
        figure(&report, "Operations:") == 100.0 && report.contains("Processor:"),
        "{report}"
    );
    // In a comparison a wrapper that crashes takes only its own row with it.
    let output = run(&["--compare", &wrapper, "btreemap"], "crash");
    assert_eq!(output.status.code(), Some(1));
    let table = stdout(&output);
    assert!(
        table.contains("btreemap") && table.contains("failed: ") && table.contains("signal"),
        "{table}"
    );
}

fn compile(directory: &TempDir, source: &str) -> Option<String> {
    let (cpp, so) = (
        directory.path().join("wrapper.cpp"),
        directory.path().join("wrapper.so"),
    );
    std::fs::write(&cpp, source).expect("written");
    let built = std::process::Command::new("c++")
        .args(["-std=c++17", "-shared", "-fPIC", "-o"])
        .args([&so, &cpp])
        .output()
        .ok()?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(so.to_str().expect("UTF-8").to_owned())
}

/// A `std::map` of integers with a mutex; its pool's path tells it to misbehave.
const WRAPPER: &str = r#"
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

struct tree_options_t {
    size_t key_size = 8;
    size_t value_size = 8;
    std::string pool_path;
    size_t pool_size = 0;
    size_t num_threads = 1;
};

struct tree_api {
    virtual ~tree_api() {}
    virtual bool find(const char*, size_t, char*) = 0;
    virtual bool insert(const char*, size_t, const char*, size_t) = 0;
    virtual bool update(const char*, size_t, const char*, size_t) = 0;
    virtual bool remove(const char*, size_t) = 0;
    virtual int scan(const char*, size_t, int, char*&) = 0;
};

struct map_tree : tree_api {
    std::map<uint64_t, uint64_t> map;
    std::mutex mutex;
    std::string fault;
    uint64_t inserts = 0;

    ~map_tree() {
        if (fault == "die") abort();
    }
    static uint64_t load(const char* bytes) {
        uint64_t number;
        memcpy(&number, bytes, 8);
        return number;
    }
    bool find(const char* key, size_t, char* value) override {
        if (fault == "throw") throw std::runtime_error("a wrapper that throws");
        if (fault == "crash") *(volatile int*)nullptr = 1;
        std::lock_guard<std::mutex> lock(mutex);
        auto found = map.find(load(key));
        if (found == map.end()) return false;
        memcpy(value, &found->second, 8);
        return true;
    }
    bool insert(const char* key, size_t, const char* value, size_t) override {
        std::lock_guard<std::mutex> lock(mutex);
        if (fault == "lose" && ++inserts == 50) return true;
        return map.emplace(load(key), load(value)).second;
    }
    bool update(const char* key, size_t, const char* value, size_t) override {
        std::lock_guard<std::mutex> lock(mutex);
        auto found = map.find(load(key));
        if (found == map.end()) return false;
        found->second = load(value);
        return true;
    }
    bool remove(const char* key, size_t) override {
        std::lock_guard<std::mutex> lock(mutex);
        return map.erase(load(key)) == 1;
    }
    int scan(const char* key, size_t, int n, char*& out) override {
        static thread_local std::vector<uint64_t> records;
        records.clear();
        std::lock_guard<std::mutex> lock(mutex);
        int count = 0;
        for (auto at = map.lower_bound(load(key)); at != map.end() && count < n; ++at, ++count) {
            if (fault == "backwards") records.insert(records.begin(), {at->first, at->second});
            else records.insert(records.end(), {at->first, at->second});
        }
        out = reinterpret_cast<char*>(records.data());
        return count;
    }
};

extern "C" tree_api* create_tree(const tree_options_t& options) {
    if (options.pool_path == "null" || options.key_size != 8 || options.value_size != 8) return nullptr;
    if (options.pool_size != 77) return nullptr;
    auto tree = new map_tree;
    tree->fault = options.pool_path;
    return tree;
}
"#;
