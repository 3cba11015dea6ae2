// Registers Leafpress in RocksDB's object library, so that options strings can name it.
#include <mutex>
#include <string>

#include "compression.h"
#include "leafpress_rocksdb.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb/version.h"
#include "secondary_cache.h"

namespace {

// The shim is compiled against the headers of one RocksDB, whose classes another one lays out differently.
std::string VersionMismatch() {
  const std::string compiled = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  const std::string running = ROCKSDB_NAMESPACE::GetRocksVersionAsString(false);
  if (running == compiled) {
    return {};
  }
  return "leafpress: built for RocksDB " + compiled + ", and this program runs RocksDB " + running +
         "; build libleafpress_rocksdb with ROCKSDB_INCLUDE_DIR set to the headers of " + running;
}

std::string RegisterAll() {
  std::string error = VersionMismatch();
  if (error.empty()) {
    auto& library = *ROCKSDB_NAMESPACE::ObjectLibrary::Default();
    leafpress::RegisterCompression(library);
    leafpress::RegisterSecondaryCache(library);
    leafpress::RegisterBlockCache(library);
  }
  return error;
}

}  // namespace

extern "C" const char* leafpress_shim_register() {
  static std::once_flag once;
  static std::string error;
  try {
    std::call_once(once, [] { error = RegisterAll(); });
  } catch (...) {
    // It has not been done, and the next call tries again.
    return "leafpress: out of memory while it was registered";
  }
  return error.empty() ? nullptr : error.c_str();
}
