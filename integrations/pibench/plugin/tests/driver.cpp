// Drives the plugin as PiBench does: loads it, calls it from many threads, deletes the tree, and unloads it with those
// threads still there.
//
//   driver PLUGIN PREFIX KEY_SIZE VALUE_SIZE
//
// Exit status 0 when all is well, 1 after a line that says what is not, 3 when there is no tree.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#ifdef BULK_LOAD
// The interface of PiBench's newer branches.
struct tree_options_t {
    std::size_t key_size = 8;
    std::size_t value_size = 8;
    std::string pool_path{};
    std::size_t pool_size = 0;
    std::size_t num_threads = 1;
};

class tree_api {
  public:
    virtual ~tree_api() = default;
    virtual bool bulk_load(const char*, std::size_t, std::size_t, std::size_t) { return false; }
    virtual bool find(const char* key, std::size_t key_size, char* value_out) = 0;
    virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
    virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
    virtual bool remove(const char* key, std::size_t key_size) = 0;
    virtual int scan(const char* key, std::size_t key_size, int count, char*& values_out) = 0;
    virtual void tls_setup() {}
};
#else
#include "pibench/tree_api.hpp"
#endif

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            std::printf("line %d: %s\n", __LINE__, #condition);                                                                  \
            std::exit(1);                                                                                                        \
        }                                                                                                                        \
    } while (false)

namespace {

/// What the original PiBench passes: three bytes less than the fork.
struct short_options_t {
    std::size_t key_size;
    std::size_t value_size;
    std::string pool_path;
    std::size_t pool_size;
    std::size_t num_threads;
};

#if defined(__GLIBCXX__) && !defined(BULK_LOAD)
// What the README says.
static_assert(sizeof(short_options_t) == 64 && offsetof(short_options_t, num_threads) == 56);
static_assert(offsetof(tree_options_t, pool_size) == 48 && offsetof(tree_options_t, num_threads) == 56);
static_assert(offsetof(tree_options_t, protocol) == 64 && offsetof(tree_options_t, gc_enabled) == 66);
#endif

/// Options with nothing readable behind them.
const tree_options_t& options_before_a_hole(std::size_t key_size, std::size_t value_size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    char* hole = static_cast<char*>(pages) + page;
    CHECK(mprotect(hole, page, PROT_NONE) == 0);
    auto* options = new (hole - sizeof(short_options_t)) short_options_t{key_size, value_size, "", 0, 1};
    return *reinterpret_cast<const tree_options_t*>(options);
}

std::string prefix;
std::size_t id_size;
std::size_t value_size;

/// Keys ascend with their ids.
std::string key_of(std::uint64_t id) {
    std::string key = prefix + std::string(id_size, '\0');
    for (std::size_t byte = 0; byte < std::min<std::size_t>(id_size, 8); ++byte) {
        key[key.size() - 1 - byte] = static_cast<char>(id >> (8 * byte));
    }
    return key;
}

std::string value_of(std::uint64_t id, char version) {
    std::string value = std::to_string(id) + version;
    value.resize(value_size, '.');
    return value;
}

bool insert(tree_api* tree, const std::string& key, const std::string& value) {
    return tree->insert(key.data(), key.size(), value.data(), value.size());
}

bool update(tree_api* tree, const std::string& key, const std::string& value) {
    return tree->update(key.data(), key.size(), value.data(), value.size());
}

bool remove(tree_api* tree, const std::string& key) { return tree->remove(key.data(), key.size()); }

/// The key's value, checked for bytes written behind it; empty when it is not there.
std::string find(tree_api* tree, const std::string& key) {
    std::string out(value_size + 8, '#');
    if (!tree->find(key.data(), key.size(), out.data())) {
        return {};
    }
    CHECK(out.compare(value_size, 8, "########") == 0);
    out.resize(value_size);
    return out;
}

/// Checks that a scan of `count` from `first` returns the ids from there up to `end`.
void check_scan(tree_api* tree, std::uint64_t first, int count, std::uint64_t end) {
    char* values = nullptr;
    const std::string key = key_of(first);
    const int scanned = tree->scan(key.data(), key.size(), count, values);
    CHECK(scanned == static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(count), end - first)));
    for (std::uint64_t id = first; id < first + static_cast<std::uint64_t>(scanned); ++id) {
        CHECK(std::string(values, key.size()) == key_of(id));
        values += key.size();
        CHECK(std::string(values, value_size) == value_of(id, 'a'));
        values += value_size;
    }
}

/// The answers of a map, one thread.
void check_answers(tree_api* tree) {
    const std::string key = key_of(1), other = key_of(2), value = value_of(1, 'a'), changed = value_of(1, 'b');
    CHECK(find(tree, key).empty());
    CHECK(!update(tree, key, value) && find(tree, key).empty());
    CHECK(!remove(tree, key));
    CHECK(insert(tree, key, value) && find(tree, key) == value);
    CHECK(!insert(tree, key, changed) && find(tree, key) == value);
    CHECK(update(tree, key, changed) && find(tree, key) == changed);
    CHECK(find(tree, other).empty());
    CHECK(remove(tree, key) && find(tree, key).empty());

    char* values = nullptr;
    CHECK(tree->scan(key.data(), key.size(), 5, values) == 0);
    CHECK(insert(tree, key, value));
    CHECK(tree->scan(key.data(), key.size(), 0, values) == 0);
    CHECK(tree->scan(key.data(), key.size(), -1, values) == 0);
    CHECK(tree->scan(nullptr, 0, 5, values) == 1 && std::string(values, key.size()) == key);
    CHECK(tree->scan(other.data(), other.size(), 5, values) == 0);
    CHECK(remove(tree, key));
}

/// Sizes other than those the tree was made for are refused.
void check_sizes(tree_api* tree) {
    const std::string key = key_of(1), value = value_of(1, 'a');
    CHECK(!insert(tree, key + "x", value) && find(tree, key + "x").empty());
    CHECK(!insert(tree, key.substr(1), value));
    CHECK(!insert(tree, key, value + "x") && find(tree, key).empty());
    CHECK(!insert(tree, key, value.substr(1)));
    CHECK(!insert(tree, std::string(5000, 'k'), value));
    CHECK(!tree->insert(nullptr, 0, nullptr, 0));
    CHECK(find(tree, {}).empty());
    CHECK(!remove(tree, std::string(5000, 'k')));
    CHECK(insert(tree, key, value) && !update(tree, key, value + "x") && find(tree, key) == value);
    CHECK(remove(tree, key));
}

#ifdef BULK_LOAD
/// A load of all records at once.
void check_bulk_load(tree_api* tree) {
    constexpr std::uint64_t LOADED = 300;
    std::string records;
    for (std::uint64_t id = 0; id < LOADED; ++id) {
        records += key_of(id) + value_of(id, 'a');
    }
    tree->tls_setup();
    CHECK(tree->bulk_load(records.data(), LOADED, key_of(0).size(), value_size));
    check_scan(tree, 0, 1000, LOADED);
    CHECK(!tree->bulk_load(records.data(), 1, key_of(0).size(), value_size));
    for (std::uint64_t id = 0; id < LOADED; ++id) {
        CHECK(remove(tree, key_of(id)));
    }
}
#endif

constexpr std::uint64_t THREADS = 4, EACH = 200, RECORDS = THREADS * EACH;

/// Loads from all threads; then all read and scan everything.
void check_threads(tree_api* tree) {
    std::atomic<std::uint64_t> loaded{0};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < THREADS; ++thread) {
        threads.emplace_back([=, &loaded] {
            for (std::uint64_t step = 0; step < EACH; ++step) {
                const std::uint64_t id = step * THREADS + thread;
                CHECK(insert(tree, key_of(id), value_of(id, 'b')));
                CHECK(update(tree, key_of(id), value_of(id, 'a')));
                CHECK(find(tree, key_of(id)) == value_of(id, 'a'));
            }
            loaded += 1;
            while (loaded < THREADS) {
                std::this_thread::yield();
            }
            for (std::uint64_t id = thread; id < RECORDS; id += 23) {
                CHECK(find(tree, key_of(id)) == value_of(id, 'a'));
                check_scan(tree, id, 25, RECORDS);
            }
            check_scan(tree, 0, 1 << 30, RECORDS);
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

} // namespace

int main(int argc, char** argv) {
#ifdef BULK_LOAD
    if (argc == 1) {
        // The text by which the plugin knows the program.
        std::printf("--bulk_load  Use bulk loading\n");
        return 1;
    }
#endif
    CHECK(argc == 5);
    prefix = argv[2];
    id_size = std::strtoul(argv[3], nullptr, 10);
    value_size = std::strtoul(argv[4], nullptr, 10);

    void* library = dlopen(argv[1], RTLD_NOW);
    if (library == nullptr) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    auto create = reinterpret_cast<tree_api* (*)(const tree_options_t&)>(dlsym(library, "create_tree"));
    CHECK(create != nullptr);
    const tree_options_t& options = options_before_a_hole(prefix.size() + id_size, value_size);
    tree_api* tree = create(options);
    if (tree == nullptr) {
        return 3;
    }
    check_answers(tree);
#ifdef BULK_LOAD
    check_bulk_load(tree);
#endif
    check_threads(tree);

    tree_api* second = create(options);
    CHECK(second != nullptr && second != tree);
    check_sizes(second);
    // Destroyed where it stands, as an owner of the memory would. The memory is the plugin's and is left to it.
    second->~tree_api();

    std::atomic<int> stage{0};
    std::thread survivor([&] {
        check_scan(tree, 0, 10, RECORDS);
        stage = 1;
        while (stage < 2) {
            std::this_thread::yield();
        }
    });
    while (stage < 1) {
        std::this_thread::yield();
    }
    delete tree;
    CHECK(dlclose(library) == 0);
    stage = 2;
    survivor.join();
    return 0;
}
