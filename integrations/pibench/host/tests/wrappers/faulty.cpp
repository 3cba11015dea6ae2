// A wrapper that misbehaves as `pool_path` says.

#include <fstream>
#include <stdexcept>
#include <string>

#include "pibench/tree_api.hpp"

namespace {

/// No exception that anyone knows.
struct Oddity {};

[[noreturn]] void fail(const std::string& how) {
    if (how == "text") {
        throw "a bare text";
    }
    if (how == "string") {
        throw std::string("a string");
    }
    if (how == "number") {
        throw 42;
    }
    if (how == "oddity") {
        throw Oddity{};
    }
    throw std::runtime_error("the pool is " + how);
}

class Faulty : public tree_api {
  public:
    explicit Faulty(std::string how) : how_(std::move(how)) {}

    ~Faulty() override {
        if (how_.starts_with("mark ")) {
            std::ofstream(how_.substr(5)) << "destroyed";
        }
    }

    bool find(const char*, std::size_t, char*) override { fail(how_); }
    bool insert(const char*, std::size_t, const char*, std::size_t) override { fail(how_); }
    bool update(const char*, std::size_t, const char*, std::size_t) override { fail(how_); }
    bool remove(const char*, std::size_t) override { fail(how_); }

    int scan(const char*, std::size_t, int count, char*& values_out) override {
        static char records[64] = {};
        if (how_ == "negative") {
            return -7;
        }
        if (how_ == "too many") {
            values_out = records;
            return count + 1;
        }
        if (how_ == "nowhere") {
            return count;
        }
        if (how_ == "wild") {
            values_out = reinterpret_cast<char*>(0x10);
            return count;
        }
        if (how_ == "empty") {
            return 0;
        }
        fail(how_);
    }

  private:
    std::string how_;
};

} // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) {
    if (options.pool_path == "null") {
        return nullptr;
    }
    if (options.pool_path.starts_with("create ")) {
        fail(options.pool_path.substr(7));
    }
    return new Faulty(options.pool_path);
}
