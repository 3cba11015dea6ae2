// Calls PiBench's C++ interface on behalf of Rust: builds `tree_options_t` with its std::string, calls the virtual
// methods, and turns exceptions into text. No exception leaves a function of this file.
//
// Texts handed out through `error` are malloc'ed; `leafpress_pibench_free` gives them back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <string>
#include <typeinfo>

#include "pibench/tree_api.hpp"

namespace {

/// What a call that threw returns.
constexpr int THREW = -1;

/// The name of the exception that is being handled, as it stands in source.
std::string exception_type() {
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type == nullptr) {
        return "an exception that is not a C++ exception";
    }
    int status = 0;
    char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
    std::string text = status == 0 && name != nullptr ? name : type->name();
    std::free(name);
    return text;
}

/// The text of the exception that is being handled; null when there is no memory for it.
char* describe() noexcept {
    try {
        try {
            throw;
        } catch (const std::exception& e) {
            return strdup((exception_type() + ": " + e.what()).c_str());
        } catch (const std::string& text) {
            return strdup(text.c_str());
        } catch (const char* text) {
            return strdup(text == nullptr ? "(a null pointer to text)" : text);
        } catch (...) {
            return strdup(("an exception of type " + exception_type()).c_str());
        }
    } catch (...) {
        return nullptr;
    }
}

/// Runs `call`, or puts what it threw into `error`.
template <typename Call> int guarded(char** error, Call call) noexcept {
    try {
        return call();
    } catch (...) {
        *error = describe();
        return THREW;
    }
}

/// `tree_api` of PiBench's newer branches: `bulk_load` comes before `find`, and some of the branches end the class with
/// `tls_setup`.
class bulk_tree_api {
  public:
    virtual ~bulk_tree_api() = default;
    virtual bool bulk_load(const char* data, std::size_t records, std::size_t key_size, std::size_t value_size) = 0;
    virtual bool find(const char* key, std::size_t key_size, char* value_out) = 0;
    virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
    virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
    virtual bool remove(const char* key, std::size_t key_size) = 0;
    virtual int scan(const char* key, std::size_t key_size, int count, char*& values_out) = 0;
    virtual void tls_setup() = 0;
};

/// Calls `method` with the tree as the class that its wrapper was compiled for.
template <typename Method> auto with_interface(void* tree, bool has_bulk_load, Method method) {
    return has_bulk_load ? method(static_cast<bulk_tree_api*>(tree)) : method(static_cast<tree_api*>(tree));
}

/// `tree_options_t` of every branch: behind `num_threads` one fork has three bytes, others have a pointer, the original
/// has nothing.
struct all_options_t {
    std::size_t key_size;
    std::size_t value_size;
    std::string pool_path;
    std::size_t pool_size;
    std::size_t num_threads;
    alignas(void*) std::uint8_t fork[sizeof(void*)];
};
static_assert(sizeof(all_options_t) >= sizeof(tree_options_t));
static_assert(offsetof(all_options_t, fork) == offsetof(tree_options_t, protocol));

} // namespace

extern "C" {

/// The options without anything that C cannot say.
struct leafpress_pibench_options {
    std::size_t key_size;
    std::size_t value_size;
    const char* pool_path;
    std::size_t pool_path_bytes;
    std::size_t pool_size;
    std::size_t num_threads;
    std::uint8_t protocol;
    std::uint8_t clock_type;
    std::uint8_t gc_enabled;
};

/// Sets `tree` to what `create` returns, which may be null; 0, or THREW.
int leafpress_pibench_create(void* (*create)(const all_options_t&), const leafpress_pibench_options* from, void** tree,
                             char** error) noexcept {
    return guarded(error, [&] {
        const all_options_t options = {
            from->key_size,
            from->value_size,
            std::string(from->pool_path, from->pool_path_bytes),
            from->pool_size,
            from->num_threads,
            {from->protocol, from->clock_type, from->gc_enabled},
        };
        *tree = create(options);
        return 0;
    });
}

/// 0, or THREW. The destructor has the same slots in both interfaces.
int leafpress_pibench_destroy(void* tree, char** error) noexcept {
    return guarded(error, [&] {
        delete static_cast<tree_api*>(tree);
        return 0;
    });
}

/// 0, or THREW. Only for a tree that has `tls_setup`.
int leafpress_pibench_tls_setup(void* tree, char** error) noexcept {
    return guarded(error, [&] {
        static_cast<bulk_tree_api*>(tree)->tls_setup();
        return 0;
    });
}

/// 0 or 1, or THREW; so are the next three.
int leafpress_pibench_find(void* tree, bool has_bulk_load, const char* key, std::size_t key_size, char* value_out,
                           char** error) noexcept {
    return guarded(error, [&] {
        return with_interface(tree, has_bulk_load, [&](auto* api) { return api->find(key, key_size, value_out) ? 1 : 0; });
    });
}

int leafpress_pibench_insert(void* tree, bool has_bulk_load, const char* key, std::size_t key_size, const char* value,
                             std::size_t value_size, char** error) noexcept {
    return guarded(error, [&] {
        return with_interface(tree, has_bulk_load,
                              [&](auto* api) { return api->insert(key, key_size, value, value_size) ? 1 : 0; });
    });
}

int leafpress_pibench_update(void* tree, bool has_bulk_load, const char* key, std::size_t key_size, const char* value,
                             std::size_t value_size, char** error) noexcept {
    return guarded(error, [&] {
        return with_interface(tree, has_bulk_load,
                              [&](auto* api) { return api->update(key, key_size, value, value_size) ? 1 : 0; });
    });
}

int leafpress_pibench_remove(void* tree, bool has_bulk_load, const char* key, std::size_t key_size, char** error) noexcept {
    return guarded(error, [&] {
        return with_interface(tree, has_bulk_load, [&](auto* api) { return api->remove(key, key_size) ? 1 : 0; });
    });
}

/// Sets `scanned` to what the wrapper returned, unjudged, and `values_out` to what it set, null if nothing; 0, or
/// THREW.
int leafpress_pibench_scan(void* tree, bool has_bulk_load, const char* key, std::size_t key_size, int count, char** values_out,
                           int* scanned, char** error) noexcept {
    return guarded(error, [&] {
        char* values = nullptr;
        *scanned = with_interface(tree, has_bulk_load, [&](auto* api) { return api->scan(key, key_size, count, values); });
        *values_out = values;
        return 0;
    });
}

void leafpress_pibench_free(char* text) noexcept { std::free(text); }

} // extern "C"
