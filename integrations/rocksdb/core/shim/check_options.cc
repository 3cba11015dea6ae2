// Reading an options string the strict way, which RocksDB's C interface does not offer.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "leafpress_rocksdb.h"
#include "rocksdb/convenience.h"
#include "rocksdb/options.h"

extern "C" char* leafpress_shim_check_options(const char* text) {
  std::string message;
  try {
    ROCKSDB_NAMESPACE::ConfigOptions strict;
    strict.ignore_unknown_options = false;
    strict.ignore_unsupported_options = false;
    ROCKSDB_NAMESPACE::Options parsed;
    const auto status = ROCKSDB_NAMESPACE::GetOptionsFromString(strict, ROCKSDB_NAMESPACE::Options(), text, &parsed);
    if (status.ok()) {
      return nullptr;
    }
    message = status.ToString();
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "the options cannot be read";
  }
  char* copy = strdup(message.c_str());
  return copy;
}

extern "C" void leafpress_shim_text_free(char* text) { free(text); }
