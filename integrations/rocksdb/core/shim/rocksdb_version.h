// The versions of RocksDB whose interfaces the shim implements: 10.7 and later.
#pragma once

#include "rocksdb/version.h"

// Whether the headers are of RocksDB `major`.`minor` or a later one.
#define LEAFPRESS_ROCKSDB_AT_LEAST(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

#if !LEAFPRESS_ROCKSDB_AT_LEAST(10, 7)
#error "Leafpress needs the headers of RocksDB 10.7 or later"
#endif
