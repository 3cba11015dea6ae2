// db_bench as RocksDB has it, with Leafpress registered first where LEAFPRESS_ROCKSDB_LIBRARY names libleafpress_rocksdb.so.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "rocksdb/db_bench_tool.h"

int main(int argc, char** argv) {
  if (const char* library = std::getenv("LEAFPRESS_ROCKSDB_LIBRARY")) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    auto* registers = handle == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(handle, "leafpress_rocksdb_register"));
    if (registers == nullptr || registers() != 0) {
      std::fprintf(stderr, "%s: %s\n", library, registers == nullptr ? dlerror() : "it does not fit this RocksDB");
      return 1;
    }
  }
  return ROCKSDB_NAMESPACE::db_bench_tool(argc, argv);
}
