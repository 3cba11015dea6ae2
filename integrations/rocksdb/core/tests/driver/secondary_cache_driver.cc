// A block cache and its secondary cache, driven directly: what a database does with them, one call at a time, with
// faults.
#include <cstring>
#include <memory>
#include <string>

#include "rocksdb/advanced_cache.h"
#include "rocksdb/cache.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"
#include "rocksdb/secondary_cache.h"

using namespace ROCKSDB_NAMESPACE;

namespace {

// Which callbacks fail: 1 saveto, 2 create with a status, 4 create without an object.
thread_local int faults = 0;
// Of the calling thread.
thread_local long live_objects = 0;

struct Object {
  explicit Object(std::string b) : bytes(std::move(b)) { ++live_objects; }
  ~Object() { --live_objects; }
  std::string bytes;
};

void Delete(Cache::ObjectPtr obj, MemoryAllocator*) { delete static_cast<Object*>(obj); }
size_t Size(Cache::ObjectPtr obj) { return static_cast<Object*>(obj)->bytes.size(); }

Status SaveTo(Cache::ObjectPtr obj, size_t offset, size_t length, char* out) {
  if (faults & 1) {
    return Status::IOError("saveto fails");
  }
  std::memcpy(out, static_cast<Object*>(obj)->bytes.data() + offset, length);
  return Status::OK();
}

Status Create(const Slice& data, CompressionType type, CacheTier source, Cache::CreateContext* context,
              MemoryAllocator*, Cache::ObjectPtr* out, size_t* charge) {
  if (faults & 2) {
    return Status::MemoryLimit("create fails");
  }
  *charge = data.size();
  // The context receives how the block was saved, if the caller requests that.
  if (context != nullptr) {
    int* saved = reinterpret_cast<int*>(context);
    saved[0] = static_cast<int>(type);
    saved[1] = static_cast<int>(source);
  }
  *out = faults & 4 ? nullptr : new Object(data.ToString());
  return Status::OK();
}

const Cache::CacheItemHelper* Helper() {
  static const Cache::CacheItemHelper plain(CacheEntryRole::kDataBlock, Delete);
  static const Cache::CacheItemHelper full(CacheEntryRole::kDataBlock, Delete, Size, SaveTo, Create, &plain);
  return &full;
}

struct Driver {
  std::shared_ptr<SecondaryCache> secondary;
  std::shared_ptr<Cache> cache;
};

int Report(const Status& status, char* text, size_t capacity) {
  const std::string message = status.ToString();
  std::strncpy(text, message.c_str(), capacity - 1);
  text[capacity - 1] = 0;
  return status.ok() ? 0 : 1;
}

}  // namespace

extern "C" {

void driver_faults(int which) { faults = which; }
long driver_live_objects() { return live_objects; }

// A secondary cache from an options string, behind an LRUCache (`clock` 0) or a HyperClockCache of `capacity` bytes.
Driver* driver_new(const char* options, size_t capacity, int clock, char* error, size_t error_capacity) {
  auto driver = std::make_unique<Driver>();
  ConfigOptions config;
  config.ignore_unsupported_options = false;
  if (Report(SecondaryCache::CreateFromString(config, options, &driver->secondary), error, error_capacity) != 0) {
    return nullptr;
  }
  if (clock != 0) {
    HyperClockCacheOptions made(capacity, /*estimated_entry_charge=*/4096, /*num_shard_bits=*/0);
    made.secondary_cache = driver->secondary;
    driver->cache = made.MakeSharedCache();
  } else {
    LRUCacheOptions made(capacity, /*num_shard_bits=*/0, false, 0.0);
    made.secondary_cache = driver->secondary;
    driver->cache = made.MakeSharedCache();
  }
  return driver.release();
}

void driver_free(Driver* driver) { delete driver; }

int driver_insert(Driver* driver, const char* key, const char* data, size_t len) {
  auto* object = new Object(std::string(data, len));
  Status status = driver->cache->Insert(Slice(key, 16), object, Helper(), len);
  if (!status.ok()) {
    delete object;
  }
  return status.ok() ? 0 : 1;
}

// Returns the block's length, or -1; `async` looks it up as MultiGet does.
long driver_lookup(Driver* driver, const char* key, char* out, size_t capacity, int async) {
  Cache::Handle* handle = nullptr;
  if (async != 0) {
    Cache::AsyncLookupHandle pending(Slice(key, 16), Helper(), nullptr);
    driver->cache->StartAsyncLookup(pending);
    handle = driver->cache->Wait(pending);
  } else {
    handle = driver->cache->Lookup(Slice(key, 16), Helper(), nullptr);
  }
  if (handle == nullptr) {
    return -1;
  }
  const std::string& bytes = static_cast<Object*>(driver->cache->Value(handle))->bytes;
  std::memcpy(out, bytes.data(), std::min(capacity, bytes.size()));
  const long len = static_cast<long>(bytes.size());
  driver->cache->Release(handle);
  return len;
}

void driver_erase_primary(Driver* driver, const char* key) { driver->cache->Erase(Slice(key, 16)); }

int driver_secondary_insert(Driver* driver, const char* key, const char* data, size_t len, int force) {
  Object object(std::string(data, len));
  return driver->secondary->Insert(Slice(key, 16), &object, Helper(), force != 0).ok() ? 0 : 1;
}

int driver_secondary_insert_saved(Driver* driver, const char* key, const char* data, size_t len, int type) {
  return driver->secondary
                 ->InsertSaved(Slice(key, 16), Slice(data, len), static_cast<CompressionType>(type),
                               CacheTier::kVolatileTier)
                 .ok()
             ? 0
             : 1;
}

// The block's length, or -1. `saved` receives whether the secondary cache keeps it, its compression type, and its tier.
long driver_secondary_lookup(Driver* driver, const char* key, char* out, size_t capacity, int advise_erase, int* saved) {
  bool kept = false;
  auto handle = driver->secondary->Lookup(Slice(key, 16), Helper(), reinterpret_cast<Cache::CreateContext*>(saved + 1),
                                          /*wait=*/false, advise_erase != 0, nullptr, kept);
  saved[0] = kept ? 1 : 0;
  if (handle == nullptr) {
    return -1;
  }
  driver->secondary->WaitAll({handle.get()});
  std::unique_ptr<Object> object(handle->IsReady() ? static_cast<Object*>(handle->Value()) : nullptr);
  if (object == nullptr || handle->Size() != object->bytes.size()) {
    return -2;
  }
  std::memcpy(out, object->bytes.data(), std::min(capacity, object->bytes.size()));
  return static_cast<long>(object->bytes.size());
}

void driver_secondary_erase(Driver* driver, const char* key) { driver->secondary->Erase(Slice(key, 16)); }

// 0 SetCapacity, 1 Deflate, 2 Inflate.
int driver_size(Driver* driver, int what, size_t bytes) {
  Status status = what == 0   ? driver->secondary->SetCapacity(bytes)
                  : what == 1 ? driver->secondary->Deflate(bytes)
                              : driver->secondary->Inflate(bytes);
  return status.ok() ? 0 : 1;
}

size_t driver_capacity(Driver* driver) {
  size_t capacity = 0;
  driver->secondary->GetCapacity(capacity).PermitUncheckedError();
  return capacity;
}

int driver_configure(Driver* driver, const char* options, char* error, size_t error_capacity) {
  return Report(driver->secondary->ConfigureFromString(ConfigOptions(), options), error, error_capacity);
}

int driver_option(Driver* driver, const char* name, char* value, size_t capacity) {
  std::string found;
  Status status = driver->secondary->GetOption(ConfigOptions(), name, &found);
  std::strncpy(value, status.ok() ? found.c_str() : status.ToString().c_str(), capacity - 1);
  value[capacity - 1] = 0;
  return status.ok() ? 0 : 1;
}

void driver_printable(Driver* driver, char* text, size_t capacity) {
  std::strncpy(text, driver->cache->GetPrintableOptions().c_str(), capacity - 1);
  text[capacity - 1] = 0;
}

// Parses a table factory's options as a database does.
int driver_table_options(const char* options, char* error, size_t error_capacity) {
  Options base, made;
  ConfigOptions config;
  config.ignore_unsupported_options = false;
  return Report(GetOptionsFromString(config, base, options, &made), error, error_capacity);
}
}
