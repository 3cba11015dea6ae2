#include "secondary_cache.h"

#include <cstring>
#include <new>

#include "guard.h"
#include "rocksdb/convenience.h"
#include "rocksdb/statistics.h"

namespace leafpress {

namespace {

using rocks::Cache;
using rocks::Slice;
using rocks::Status;

LeafpressView View(const Slice& slice) { return {slice.data(), slice.size()}; }

// If there is no memory for the text, it stays unchanged.
void AppendTo(void* text, const char* data, size_t len) {
  Attempt([&] { static_cast<std::string*>(text)->append(data, len); });
}

class Ready final : public rocks::SecondaryCacheResultHandle {
 public:
  Ready(Cache::ObjectPtr value, size_t charge) : value_(value), charge_(charge) {}
  bool IsReady() override { return true; }
  void Wait() override {}
  Cache::ObjectPtr Value() override { return value_; }
  size_t Size() override { return charge_; }

 private:
  Cache::ObjectPtr value_;
  size_t charge_;
};

// Blocks of a family share a dictionary.
uint8_t Family(rocks::CacheEntryRole role) {
  switch (role) {
    case rocks::CacheEntryRole::kDataBlock:
      return 0;
    case rocks::CacheEntryRole::kIndexBlock:
      return 1;
    case rocks::CacheEntryRole::kFilterBlock:
      return 2;
    case rocks::CacheEntryRole::kFilterMetaBlock:
      return 3;
    case rocks::CacheEntryRole::kBlobValue:
      return 4;
    default:
      return 5;
  }
}

// How RocksDB is to read a block: by its compression type and the tier that it is from.
uint16_t Tag(rocks::CompressionType type, rocks::CacheTier source) {
  return static_cast<uint16_t>(static_cast<uint8_t>(type) | static_cast<uint8_t>(source) << 8);
}

struct Saving {
  Cache::ObjectPtr obj;
  const Cache::CacheItemHelper* helper;
  Status status;
};

bool Save(void* context, char* out, size_t len) {
  auto* saving = static_cast<Saving*>(context);
  saving->status = Guarded([&] { return saving->helper->saveto_cb(saving->obj, 0, len, out); });
  return saving->status.ok();
}

struct Creation {
  const Cache::CacheItemHelper* helper;
  Cache::CreateContext* context;
  Cache::ObjectPtr obj = nullptr;
  size_t charge = 0;
};

bool Create(void* context, const char* data, size_t len, uint16_t tag) {
  auto* creation = static_cast<Creation*>(context);
  Status status = Guarded([&] {
    return creation->helper->create_cb(Slice(data, len), static_cast<rocks::CompressionType>(tag & 0xff),
                                       static_cast<rocks::CacheTier>(tag >> 8), creation->context,
                                       /*allocator=*/nullptr, &creation->obj, &creation->charge);
  });
  if (!status.ok()) {
    creation->obj = nullptr;
  }
  return creation->obj != nullptr;
}

bool CopySlice(void* context, char* out, size_t len) {
  std::memcpy(out, static_cast<const Slice*>(context)->data(), len);
  return true;
}

}  // namespace

SecondaryCache::~SecondaryCache() { leafpress_secondary_cache_free(cache_); }

Status SecondaryCache::Insert(const Slice& key, Cache::ObjectPtr obj, const Cache::CacheItemHelper* helper,
                              bool force_insert) {
  if (obj == nullptr || helper == nullptr || !helper->IsSecondaryCacheCompatible()) {
    return Spoken(Status::InvalidArgument(),
                  [] { return Status::InvalidArgument("leafpress_secondary_cache: not a block that can be saved"); });
  }
  if (cache_ == nullptr) {
    return Status::OK();
  }
  return Guarded([&] {
    Saving saving{obj, helper, Status::OK()};
    // Filters are as good as random bits.
    const bool compress = helper->role != rocks::CacheEntryRole::kFilterBlock;
    leafpress_secondary_cache_insert(cache_, View(key), helper->size_cb(obj), Family(helper->role),
                                     Tag(rocks::kNoCompression, rocks::CacheTier::kVolatileTier), compress,
                                     force_insert, Save, &saving);
    return saving.status;
  });
}

Status SecondaryCache::InsertSaved(const Slice& key, const Slice& saved, rocks::CompressionType type,
                                   rocks::CacheTier source) {
  if (cache_ == nullptr) {
    return Status::OK();
  }
  // Blocks that are compressed already are kept unchanged.
  leafpress_secondary_cache_insert(cache_, View(key), saved.size(), /*family=*/6, Tag(type, source),
                                   type == rocks::kNoCompression, /*force=*/false, CopySlice,
                                   const_cast<Slice*>(&saved));
  return Status::OK();
}

std::unique_ptr<rocks::SecondaryCacheResultHandle> SecondaryCache::Lookup(
    const Slice& key, const Cache::CacheItemHelper* helper, Cache::CreateContext* create_context, bool wait,
    bool advise_erase, rocks::Statistics* stats, bool& kept_in_sec_cache) {
  kept_in_sec_cache = false;
  if (cache_ == nullptr || helper == nullptr || helper->create_cb == nullptr) {
    return nullptr;
  }
  Creation creation{helper, create_context};
  const int32_t found = leafpress_secondary_cache_lookup(cache_, View(key), advise_erase, Create, &creation);
  if (found == 0) {
    return nullptr;
  }
  std::unique_ptr<rocks::SecondaryCacheResultHandle> result(new (std::nothrow) Ready(creation.obj, creation.charge));
  if (result == nullptr) {
    if (helper->del_cb != nullptr) {
      Attempt([&] { helper->del_cb(creation.obj, nullptr); });
    }
    return nullptr;
  }
  kept_in_sec_cache = found == 1;
  if (stats != nullptr) {
    stats->recordTick(rocks::COMPRESSED_SECONDARY_CACHE_HITS, 1);
  }
  return result;
}

void SecondaryCache::Erase(const Slice& key) {
  if (cache_ != nullptr) {
    leafpress_secondary_cache_erase(cache_, View(key));
  }
}

Status SecondaryCache::SetCapacity(size_t capacity) {
  if (cache_ != nullptr) {
    leafpress_secondary_cache_set_capacity(cache_, capacity);
  }
  return Status::OK();
}

Status SecondaryCache::GetCapacity(size_t& capacity) {
  capacity = cache_ == nullptr ? 0 : leafpress_secondary_cache_capacity(cache_);
  return Status::OK();
}

Status SecondaryCache::Deflate(size_t decrease) {
  if (cache_ != nullptr) {
    leafpress_secondary_cache_deflate(cache_, decrease);
  }
  return Status::OK();
}

Status SecondaryCache::Inflate(size_t increase) {
  if (cache_ != nullptr) {
    leafpress_secondary_cache_inflate(cache_, increase);
  }
  return Status::OK();
}

Status SecondaryCache::Make(const std::unordered_map<std::string, std::string>& options) {
  return Guarded([&] {
    std::vector<LeafpressView> pairs;
    for (const auto& [name, value] : options) {
      pairs.push_back(View(name));
      pairs.push_back(View(value));
    }
    std::string error;
    cache_ = leafpress_secondary_cache_new(pairs.data(), options.size(), AppendTo, &error);
    return cache_ == nullptr ? Status::InvalidArgument(kClassName(), error) : Status::OK();
  });
}

Status SecondaryCache::ConfigureOptions(const rocks::ConfigOptions& config_options,
                                        const std::unordered_map<std::string, std::string>& options,
                                        std::unordered_map<std::string, std::string>* unused) {
  return Guarded([&] {
    if (cache_ == nullptr && !options.empty()) {
      return Make(options);
    }
    for (const auto& [name, value] : options) {
      std::string error;
      if (!leafpress_secondary_cache_set(cache_, View(name), View(value), AppendTo, &error)) {
        return Status::InvalidArgument(kClassName(), error);
      }
    }
    return config_options.invoke_prepare_options ? PrepareOptions(config_options) : Status::OK();
  });
}

Status SecondaryCache::PrepareOptions(const rocks::ConfigOptions& config_options) {
  // A cache without options lacks its capacity, and says so.
  return cache_ == nullptr ? Guarded([&] { return Make({}); }) : Status::OK();
}

std::string SecondaryCache::GetPrintableOptions() const {
  return Guarded(std::string(), [&] {
    std::string options;
    if (cache_ != nullptr) {
      leafpress_secondary_cache_options(cache_, AppendTo, &options);
    }
    return "    " + std::string(kClassName()) + " : " + options + "\n";
  });
}

Status SecondaryCache::GetOption(const rocks::ConfigOptions& config_options, const std::string& name,
                                 std::string* value) const {
  return Guarded([&] {
    value->clear();
    if (cache_ != nullptr && leafpress_secondary_cache_get(cache_, View(name), AppendTo, value)) {
      return Status::OK();
    }
    return Status::NotFound("leafpress_secondary_cache has no option", name);
  });
}


void RegisterSecondaryCache(rocks::ObjectLibrary& library) {
  library.AddFactory<rocks::SecondaryCache>(
      rocks::ObjectLibrary::PatternEntry(SecondaryCache::kClassName()).AddSeparator("://", false),
      [](const std::string& uri, std::unique_ptr<rocks::SecondaryCache>* guard, std::string* error) {
        const Status status = Guarded([&] {
          auto cache = std::make_unique<SecondaryCache>();
          std::unordered_map<std::string, std::string> options;
          const size_t scheme = uri.find("://");
          Status made;
          if (scheme != std::string::npos) {
            made = rocks::StringToMap(uri.substr(scheme + 3), &options);
            made = made.ok() ? cache->Make(options) : made;
          }
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
