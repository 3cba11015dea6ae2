// Registers Leafpress in RocksDB's object library, so that options strings can name it.
#include "leafpress_rocksdb.h"

#include <mutex>

#include "secondary_cache.h"

extern "C" int32_t leafpress_shim_register() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto& library = *ROCKSDB_NAMESPACE::ObjectLibrary::Default();
    leafpress::RegisterSecondaryCache(library);
    leafpress::RegisterBlockCache(library);
  });
  return 0;
}
