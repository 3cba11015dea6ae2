// A block cache with any secondary cache behind it, from one options string or from Rust.
//
// RocksDB's own options strings make LRU caches only, and none with a secondary cache.
#include <map>
#include <mutex>
#include <set>

#include "block_cache_abi.h"
#include "guard.h"
#include "rocksdb/advanced_cache.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/utilities/options_type.h"
#include "secondary_cache.h"

namespace leafpress {

namespace {

using rocks::Cache;
using rocks::Status;
using Options = std::unordered_map<std::string, std::string>;

constexpr const char* kName = "leafpress_block_cache";

// Caches made from Rust, by number.
struct Shared {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Cache>> caches;
  uint64_t last = 0;
};

Shared& TheShared() {
  static auto* shared = new Shared;
  return *shared;
}

// Options by name; each is read once, and an option that was not read is an error.
class Reader {
 public:
  explicit Reader(const Options& options) : options_(options) {}

  const std::string* Find(const std::string& name) {
    known_.insert(name);
    auto found = options_.find(name);
    return found == options_.end() ? nullptr : &found->second;
  }

  template <typename T>
  void Read(const std::string& name, rocks::OptionType type, T* value) {
    const std::string* text = Find(name);
    if (text == nullptr || !status_.ok()) {
      return;
    }
    rocks::OptionTypeInfo info(0, type);
    rocks::ConfigOptions config;
    status_ = info.Parse(config, name, *text, value);
    if (!status_.ok()) {
      status_ = Status::InvalidArgument(std::string(kName) + ": " + name + " cannot be", *text);
    }
  }

  void ReadSize(const std::string& name, size_t* value) {
    const std::string* text = Find(name);
    if (text != nullptr && status_.ok() && !leafpress_size_parse({text->data(), text->size()}, value)) {
      status_ = Status::InvalidArgument(std::string(kName) + ": " + name + " cannot be " + *text,
                                        "give a number of bytes, such as 67108864, 64M, 64MiB or 64MB");
    }
  }

  Status Finish() {
    for (const auto& [name, value] : options_) {
      if (status_.ok() && known_.count(name) == 0) {
        std::string names;
        for (const auto& known : known_) {
          names += (names.empty() ? "" : ", ") + known;
        }
        status_ = Status::InvalidArgument(std::string(kName) + ": unknown option " + name, "it has " + names);
      }
    }
    return status_;
  }

 private:
  const Options& options_;
  std::set<std::string> known_;
  Status status_;
};

// A nested value without the braces that kept its semicolons together.
std::string Unbraced(const std::string& text) {
  const bool braced = text.size() >= 2 && text.front() == '{' && text.back() == '}';
  return braced ? text.substr(1, text.size() - 2) : text;
}

template <typename T>
std::shared_ptr<Cache> MakeWith(T& own, const rocks::ShardedCacheOptions& common) {
  static_cast<rocks::ShardedCacheOptions&>(own) = common;
  return own.MakeSharedCache();
}

Status MakeCache(const Options& options, std::shared_ptr<Cache>* out,
                 std::shared_ptr<rocks::SecondaryCache>* behind = nullptr) {
  Reader reader(options);
  rocks::LRUCacheOptions lru;
  rocks::HyperClockCacheOptions clock(0);
  rocks::ShardedCacheOptions common;
  std::string type = "hyper_clock";
  reader.ReadSize("capacity", &common.capacity);
  reader.Read("num_shard_bits", rocks::OptionType::kInt, &common.num_shard_bits);
  reader.Read("strict_capacity_limit", rocks::OptionType::kBoolean, &common.strict_capacity_limit);
  reader.Read("high_pri_pool_ratio", rocks::OptionType::kDouble, &lru.high_pri_pool_ratio);
  reader.Read("low_pri_pool_ratio", rocks::OptionType::kDouble, &lru.low_pri_pool_ratio);
  reader.ReadSize("estimated_entry_charge", &clock.estimated_entry_charge);
  const std::string* kind = reader.Find("type");
  const std::string* secondary = reader.Find("secondary_cache");
  Status status = reader.Finish();
  if (status.ok() && kind != nullptr && *kind != "hyper_clock" && *kind != "lru") {
    status = Status::InvalidArgument(std::string(kName) + ": type is hyper_clock or lru, and not", *kind);
  }
  if (status.ok() && options.count("capacity") == 0) {
    status = Status::InvalidArgument(std::string(kName) + ": capacity is missing", "give capacity=64M");
  }
  if (status.ok() && secondary != nullptr) {
    // Otherwise RocksDB ignores an unknown name silently, and there is no secondary cache.
    rocks::ConfigOptions config;
    config.ignore_unsupported_options = false;
    status = rocks::SecondaryCache::CreateFromString(config, Unbraced(*secondary), &common.secondary_cache);
  }
  if (status.ok()) {
    if (behind != nullptr) {
      *behind = common.secondary_cache;
    }
    *out = kind != nullptr && *kind == "lru" ? MakeWith(lru, common) : MakeWith(clock, common);
    if (*out == nullptr) {
      status = Status::InvalidArgument(std::string(kName) + ": RocksDB refuses these options");
    }
  }
  return status;
}

Status FindShared(const std::string& number, std::shared_ptr<Cache>* out) {
  Shared& shared = TheShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  auto found = shared.caches.find(std::strtoull(number.c_str(), nullptr, 10));
  *out = found == shared.caches.end() ? nullptr : found->second.lock();
  return *out == nullptr ? Status::NotFound(std::string(kName) + ": no such shared cache", number) : Status::OK();
}

// What an options string names. RocksDB's factories hand out objects of their own and configure them later, so that the
// cache is wrapped.
class BlockCache final : public rocks::CacheWrapper {
 public:
  BlockCache() : CacheWrapper(nullptr) {}
  const char* Name() const override { return target_ == nullptr ? kName : target_->Name(); }

  // What stands behind `leafpress_block_cache://`: nothing, a shared cache's number, or options.
  Status Make(const std::string& uri) {
    const size_t scheme = uri.find("://");
    const std::string text = scheme == std::string::npos ? "" : uri.substr(scheme + 3);
    if (text.empty()) {
      return Status::OK();
    }
    if (text.find('=') == std::string::npos) {
      return FindShared(text, &target_);
    }
    Options options;
    Status status = rocks::StringToMap(text, &options);
    return status.ok() ? MakeCache(options, &target_) : status;
  }

 protected:
  Status ConfigureOptions(const rocks::ConfigOptions& config_options, const Options& options,
                          Options* unused) override {
    return Guarded([&] {
      if (target_ != nullptr) {
        return options.empty() ? Status::OK()
                               : Status::InvalidArgument(kName, "a cache cannot be configured again, or has its options twice");
      }
      return MakeCache(options, &target_);
    });
  }
};

}  // namespace

void RegisterBlockCache(rocks::ObjectLibrary& library) {
  library.AddFactory<Cache>(
      rocks::ObjectLibrary::PatternEntry(kName).AddSeparator("://", false),
      [](const std::string& uri, std::unique_ptr<Cache>* guard, std::string* error) {
        const Status status = Guarded([&] {
          auto cache = std::make_unique<BlockCache>();
          Status made = cache->Make(uri);
          if (made.ok()) {
            *guard = std::move(cache);
          }
          return made;
        });
        if (!status.ok()) {
          Attempt([&] { *error = status.ToString(); });
        }
        return guard->get();
      });
}

}  // namespace leafpress

struct LeafpressBlockCache {
  std::shared_ptr<leafpress::rocks::Cache> cache;
  std::shared_ptr<leafpress::rocks::SecondaryCache> secondary;
  uint64_t number = 0;
};

extern "C" {

LeafpressBlockCache* leafpress_shim_block_cache_new(LeafpressView options, LeafpressSink sink, void* context) {
  std::string error = "out of memory";
  try {
    leafpress::Options parsed;
    auto status = leafpress::rocks::StringToMap(std::string(options.data, options.len), &parsed);
    auto made = std::make_unique<LeafpressBlockCache>();
    if (status.ok()) {
      status = leafpress::MakeCache(parsed, &made->cache, &made->secondary);
    }
    if (status.ok()) {
      auto& shared = leafpress::TheShared();
      std::lock_guard<std::mutex> lock(shared.mutex);
      made->number = ++shared.last;
      shared.caches[made->number] = made->cache;
      return made.release();
    }
    error = status.ToString();
  } catch (...) {
  }
  sink(context, error.data(), error.size());
  return nullptr;
}

void leafpress_shim_block_cache_free(LeafpressBlockCache* cache) {
  if (cache != nullptr) {
    auto& shared = leafpress::TheShared();
    {
      std::lock_guard<std::mutex> lock(shared.mutex);
      shared.caches.erase(cache->number);
    }
    delete cache;
  }
}

uint64_t leafpress_shim_block_cache_number(const LeafpressBlockCache* cache) { return cache->number; }

size_t leafpress_shim_block_cache_usage(const LeafpressBlockCache* cache) { return cache->cache->GetUsage(); }

size_t leafpress_shim_block_cache_capacity(const LeafpressBlockCache* cache) { return cache->cache->GetCapacity(); }

void leafpress_shim_block_cache_set_capacity(const LeafpressBlockCache* cache, size_t bytes) {
  // What could not leave leaves later.
  leafpress::Attempt([&] { cache->cache->SetCapacity(bytes); });
}

bool leafpress_shim_block_cache_set_secondary_capacity(const LeafpressBlockCache* cache, size_t bytes) {
  return leafpress::Guarded(false, [&] { return cache->secondary != nullptr && cache->secondary->SetCapacity(bytes).ok(); });
}
}
