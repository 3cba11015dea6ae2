// Reading an options string the strict way, which RocksDB's C interface does not offer.
#include <cstdlib>
#include <cstring>
#include <string>

#include "guard.h"
#include "leafpress_rocksdb.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"

// What is said where there is no memory for a copy.
static char no_memory[] = "out of memory";

extern "C" char* leafpress_shim_check_options(const char* text) {
  const auto status = leafpress::Guarded([&] {
    ROCKSDB_NAMESPACE::ConfigOptions strict;
    strict.ignore_unknown_options = false;
    strict.ignore_unsupported_options = false;
    ROCKSDB_NAMESPACE::Options parsed;
    return ROCKSDB_NAMESPACE::GetOptionsFromString(strict, ROCKSDB_NAMESPACE::Options(), text, &parsed);
  });
  if (status.ok()) {
    return nullptr;
  }
  const std::string message = leafpress::Guarded(std::string(no_memory), [&] { return status.ToString(); });
  char* copy = strdup(message.c_str());
  return copy == nullptr ? no_memory : copy;
}

extern "C" void leafpress_shim_text_free(char* text) {
  if (text != no_memory) {
    free(text);
  }
}
