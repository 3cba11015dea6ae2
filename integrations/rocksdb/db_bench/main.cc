// db_bench as RocksDB has it, with Leafpress: registered first where LEAFPRESS_ROCKSDB_LIBRARY names
// libleafpress_rocksdb.so, and with a flag for what db_bench has none for.
#include <dlfcn.h>
#include <gflags/gflags.h>

#include <cstdio>
#include <cstdlib>

#include "rocksdb/convenience.h"
#include "rocksdb/db_bench_tool.h"

DEFINE_string(rocksdb_options, "",
              "Options in RocksDB's spelling, on top of what the other flags say, as in "
              "compression_manager={id=leafpress;codec=zstd:3}");

namespace {

class Hooks : public ROCKSDB_NAMESPACE::DefaultHooks {
 public:
  using DefaultHooks::Open;

  ROCKSDB_NAMESPACE::Status Open(const ROCKSDB_NAMESPACE::Options& options, const std::string& name,
                                 std::unique_ptr<ROCKSDB_NAMESPACE::DB>* db) override {
    ROCKSDB_NAMESPACE::ConfigOptions strict;
    strict.ignore_unsupported_options = false;
    ROCKSDB_NAMESPACE::Options changed;
    const auto status = GetOptionsFromString(strict, options, FLAGS_rocksdb_options, &changed);
    return status.ok() ? DefaultHooks::Open(changed, name, db) : status;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (const char* library = std::getenv("LEAFPRESS_ROCKSDB_LIBRARY")) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    auto* registers = handle == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(handle, "leafpress_rocksdb_register"));
    if (registers == nullptr || registers() != 0) {
      std::fprintf(stderr, "%s: %s\n", library, registers == nullptr ? dlerror() : "it does not fit this RocksDB");
      return 1;
    }
  }
  Hooks hooks;
  return ROCKSDB_NAMESPACE::db_bench_tool(argc, argv, hooks);
}
