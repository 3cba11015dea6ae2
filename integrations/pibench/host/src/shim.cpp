// Calls PiBench's C++ interface on behalf of Rust: builds `tree_options_t` with its std::string, calls the virtual methods, and turns
// exceptions into text. No exception leaves a function of this file.
//
// Texts handed out through `error` are malloc'ed; `leafpress_pibench_free` gives them back.

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
        return "an exception that is no C++ exception";
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
int leafpress_pibench_create(tree_api* (*create)(const tree_options_t&), const leafpress_pibench_options* from, tree_api** tree,
                             char** error) noexcept {
    return guarded(error, [&] {
        tree_options_t options;
        options.key_size = from->key_size;
        options.value_size = from->value_size;
        options.pool_path.assign(from->pool_path, from->pool_path_bytes);
        options.pool_size = from->pool_size;
        options.num_threads = from->num_threads;
        options.protocol = from->protocol;
        options.clock_type = from->clock_type;
        options.gc_enabled = from->gc_enabled;
        *tree = create(options);
        return 0;
    });
}

/// 0, or THREW.
int leafpress_pibench_destroy(tree_api* tree, char** error) noexcept {
    return guarded(error, [&] {
        delete tree;
        return 0;
    });
}

/// 0 or 1, or THREW; so are the next three.
int leafpress_pibench_find(tree_api* tree, const char* key, std::size_t key_size, char* value_out, char** error) noexcept {
    return guarded(error, [&] { return tree->find(key, key_size, value_out) ? 1 : 0; });
}

int leafpress_pibench_insert(tree_api* tree, const char* key, std::size_t key_size, const char* value, std::size_t value_size,
                             char** error) noexcept {
    return guarded(error, [&] { return tree->insert(key, key_size, value, value_size) ? 1 : 0; });
}

int leafpress_pibench_update(tree_api* tree, const char* key, std::size_t key_size, const char* value, std::size_t value_size,
                             char** error) noexcept {
    return guarded(error, [&] { return tree->update(key, key_size, value, value_size) ? 1 : 0; });
}

int leafpress_pibench_remove(tree_api* tree, const char* key, std::size_t key_size, char** error) noexcept {
    return guarded(error, [&] { return tree->remove(key, key_size) ? 1 : 0; });
}

/// Sets `scanned` to what the wrapper returned, unjudged, and `values_out` to what it set, null if nothing; 0, or THREW.
int leafpress_pibench_scan(tree_api* tree, const char* key, std::size_t key_size, int count, char** values_out, int* scanned,
                           char** error) noexcept {
    return guarded(error, [&] {
        char* values = nullptr;
        *scanned = tree->scan(key, key_size, count, values);
        *values_out = values;
        return 0;
    });
}

void leafpress_pibench_free(char* text) noexcept { std::free(text); }

} // extern "C"
