// A std::map behind the interface of PiBench's newer branches, which have `bulk_load` before `find`, and `tls_setup` at
// the end. The other files of this name are variants of it.
//
// A thread that did not call `tls_setup` gets an exception.

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

struct tree_options_t {
    std::size_t key_size = 8;
    std::size_t value_size = 8;
    std::string pool_path{};
    std::size_t pool_size = 0;
    std::size_t num_threads = 1;
    void* data = nullptr;
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
#ifndef WITHOUT_TLS_SETUP
    virtual void tls_setup() {}
#endif
};

#ifdef ANONYMOUS
namespace {
#endif

thread_local bool is_set_up = false;

class BulkMap : public tree_api {
  public:
#ifdef OVERRIDES_BULK_LOAD
    bool bulk_load(const char*, std::size_t, std::size_t, std::size_t) override { throw std::runtime_error("bulk_load was called"); }
#endif
#ifndef WITHOUT_TLS_SETUP
    void tls_setup() override { is_set_up = true; }
#endif

    bool find(const char* key, std::size_t key_size, char* value_out) override {
        std::lock_guard lock(checked());
        auto record = records_.find({key, key_size});
        if (record == records_.end()) {
            return false;
        }
        std::memcpy(value_out, record->second.data(), record->second.size());
        return true;
    }

    bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
        std::lock_guard lock(checked());
        return records_.emplace(std::string(key, key_size), std::string(value, value_size)).second;
    }

    bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
        std::lock_guard lock(checked());
        auto record = records_.find({key, key_size});
        if (record == records_.end()) {
            return false;
        }
        record->second.assign(value, value_size);
        return true;
    }

    bool remove(const char* key, std::size_t key_size) override {
        std::lock_guard lock(checked());
        return records_.erase({key, key_size}) == 1;
    }

    int scan(const char* key, std::size_t key_size, int count, char*& values_out) override {
        static thread_local std::string scanned;
        scanned.clear();
        std::lock_guard lock(checked());
        int found = 0;
        for (auto record = records_.lower_bound({key, key_size}); found < count && record != records_.end(); ++record, ++found) {
            scanned += record->first;
            scanned += record->second;
        }
        values_out = scanned.data();
        return found;
    }

  private:
    std::mutex& checked() {
#ifndef WITHOUT_TLS_SETUP
        if (!is_set_up) {
            throw std::runtime_error("tls_setup was not called");
        }
#endif
        return mutex_;
    }

    std::mutex mutex_;
    std::map<std::string, std::string> records_;
};

#ifdef ANONYMOUS
} // namespace
#endif

extern "C" tree_api* create_tree(const tree_options_t& options) {
    if (options.data != nullptr) {
        throw std::runtime_error("data is not null");
    }
    return new BulkMap;
}
