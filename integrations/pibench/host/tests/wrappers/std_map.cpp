// A wrapper that does what the interface says: a std::map under a mutex.

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "pibench/tree_api.hpp"

namespace {

class StdMap : public tree_api {
  public:
    bool find(const char* key, std::size_t key_size, char* value_out) override {
        std::lock_guard lock(mutex_);
        auto record = records_.find({key, key_size});
        if (record == records_.end()) {
            return false;
        }
        std::memcpy(value_out, record->second.data(), record->second.size());
        return true;
    }

    bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
        std::lock_guard lock(mutex_);
        return records_.emplace(std::string(key, key_size), std::string(value, value_size)).second;
    }

    bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
        std::lock_guard lock(mutex_);
        auto record = records_.find({key, key_size});
        if (record == records_.end()) {
            return false;
        }
        record->second.assign(value, value_size);
        return true;
    }

    bool remove(const char* key, std::size_t key_size) override {
        std::lock_guard lock(mutex_);
        return records_.erase({key, key_size}) == 1;
    }

    int scan(const char* key, std::size_t key_size, int count, char*& values_out) override {
        static thread_local std::string scanned;
        scanned.clear();
        std::lock_guard lock(mutex_);
        int found = 0;
        for (auto record = records_.lower_bound({key, key_size}); found < count && record != records_.end(); ++record, ++found) {
            scanned += record->first;
            scanned += record->second;
        }
        values_out = scanned.data();
        return found;
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::string> records_;
};

} // namespace

extern "C" tree_api* create_tree(const tree_options_t&) { return new StdMap; }
