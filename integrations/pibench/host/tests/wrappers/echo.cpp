// A wrapper that hands back what it was given: the options in a scan, and a value wider than requested.

#include <cstring>
#include <string>

#include "pibench/tree_api.hpp"

namespace {

class Echo : public tree_api {
  public:
    explicit Echo(const tree_options_t& options) {
        text_ = std::to_string(options.key_size) + " " + std::to_string(options.value_size) + " [" + options.pool_path + "] " +
                std::to_string(options.pool_size) + " " + std::to_string(options.num_threads) + " " +
                std::to_string(options.protocol) + " " + std::to_string(options.clock_type) + " " +
                std::to_string(options.gc_enabled);
    }

    /// Writes eight bytes whatever the size of values, as wrappers for integers do.
    bool find(const char*, std::size_t, char* value_out) override {
        std::memcpy(value_out, "ABCDEFGH", 8);
        return true;
    }

    bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
        return key_size == value_size && std::memcmp(key, value, key_size) == 0;
    }
    /// Whether the value is a C string of its length.
    bool update(const char*, std::size_t, const char* value, std::size_t value_size) override {
        return std::strlen(value) == value_size;
    }
    bool remove(const char*, std::size_t) override { return true; }

    int scan(const char*, std::size_t, int, char*& values_out) override {
        values_out = text_.data();
        return static_cast<int>(text_.size());
    }

  private:
    std::string text_;
};

} // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new Echo(options); }
