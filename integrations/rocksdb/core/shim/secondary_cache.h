// Leafpress's victim cache as a RocksDB SecondaryCache.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>

#include "rocksdb/secondary_cache.h"
#include "rocksdb/utilities/object_registry.h"
#include "secondary_cache_abi.h"

namespace leafpress {

namespace rocks = ROCKSDB_NAMESPACE;

class SecondaryCache final : public rocks::SecondaryCache {
 public:
  SecondaryCache() = default;
  ~SecondaryCache() override;

  static const char* kClassName() { return "leafpress_secondary_cache"; }
  const char* Name() const override { return kClassName(); }

  rocks::Status Insert(const rocks::Slice& key, rocks::Cache::ObjectPtr obj,
                       const rocks::Cache::CacheItemHelper* helper, bool force_insert) override;
  rocks::Status InsertSaved(const rocks::Slice& key, const rocks::Slice& saved, rocks::CompressionType type,
                            rocks::CacheTier source) override;
  std::unique_ptr<rocks::SecondaryCacheResultHandle> Lookup(const rocks::Slice& key,
                                                            const rocks::Cache::CacheItemHelper* helper,
                                                            rocks::Cache::CreateContext* create_context, bool wait,
                                                            bool advise_erase, rocks::Statistics* stats,
                                                            bool& kept_in_sec_cache) override;
  bool SupportForceErase() const override { return true; }
  void Erase(const rocks::Slice& key) override;
  // Every result is ready when it is handed out.
  void WaitAll(std::vector<rocks::SecondaryCacheResultHandle*> handles) override {}

  rocks::Status SetCapacity(size_t capacity) override;
  rocks::Status GetCapacity(size_t& capacity) override;
  rocks::Status Deflate(size_t decrease) override;
  rocks::Status Inflate(size_t increase) override;

  rocks::Status PrepareOptions(const rocks::ConfigOptions& config_options) override;
  std::string GetPrintableOptions() const override;
  rocks::Status GetOption(const rocks::ConfigOptions& config_options, const std::string& name,
                          std::string* value) const override;

  // Makes the cache.
  rocks::Status Make(const std::unordered_map<std::string, std::string>& options);

 protected:
  rocks::Status ConfigureOptions(const rocks::ConfigOptions& config_options,
                                 const std::unordered_map<std::string, std::string>& options,
                                 std::unordered_map<std::string, std::string>* unused) override;

 private:
  // Null until the options are known.
  LeafpressSecondaryCache* cache_ = nullptr;
};


void RegisterSecondaryCache(rocks::ObjectLibrary& library);
// `leafpress_block_cache://...`: a block cache with any secondary cache, in one options string.
void RegisterBlockCache(rocks::ObjectLibrary& library);

}  // namespace leafpress
