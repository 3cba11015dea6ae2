// A program in C++ with a RocksDB of its own, which loads Leafpress at run time:
//   host write LIBRARY DATABASE OPTIONS
//   host read LIBRARY|- DATABASE
//   host repair LIBRARY|- DATABASE
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "leafpress_rocksdb.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/version.h"

static int Fail(const std::string& what) {
  fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

static std::string Value(int i) {
  std::string value;
  for (int k = 0; k < 20; ++k) {
    value += "field " + std::to_string(i * 31 % 97 + k) + "; ";
  }
  return value;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    return Fail("host write|read|repair LIBRARY DATABASE [OPTIONS]");
  }
  const std::string mode = argv[1];
  void* library = nullptr;
  if (strcmp(argv[2], "-") != 0) {
    library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return Fail(std::string("dlopen: ") + dlerror());
    }
    auto* registers = reinterpret_cast<decltype(&leafpress_rocksdb_register)>(dlsym(library, "leafpress_rocksdb_register"));
    auto* error = reinterpret_cast<decltype(&leafpress_rocksdb_error)>(dlsym(library, "leafpress_rocksdb_error"));
    if (registers() != 0) {
      return Fail(std::string("register: ") + error());
    }
  }
  rocksdb::ConfigOptions strict;
  strict.ignore_unsupported_options = false;
  rocksdb::Options options;
  rocksdb::Status status = rocksdb::GetOptionsFromString(strict, options, mode == "write" ? argv[4] : "", &options);
  if (!status.ok()) {
    return Fail(status.ToString());
  }
  if (mode == "repair") {
    status = rocksdb::RepairDB(argv[3], options);
    if (!status.ok()) {
      return Fail(status.ToString());
    }
    printf("host repair: good\n");
    return 0;
  }
  options.create_if_missing = mode == "write";
  std::unique_ptr<rocksdb::DB> db;
  status = rocksdb::DB::Open(options, argv[3], &db);
  if (!status.ok()) {
    return Fail(status.ToString());
  }
  for (int i = 0; i < 5000 && status.ok(); ++i) {
    const std::string key = "key" + std::to_string(100000 + i);
    if (mode == "write") {
      status = db->Put(rocksdb::WriteOptions(), key, Value(i));
    } else {
      std::string value;
      status = db->Get(rocksdb::ReadOptions(), key, &value);
      if (status.ok() && value != Value(i)) {
        status = rocksdb::Status::Corruption("wrong value");
      }
    }
  }
  if (status.ok() && mode == "write") {
    status = db->Flush(rocksdb::FlushOptions());
  }
  db.reset();
  if (!status.ok()) {
    return Fail(status.ToString());
  }
  if (library != nullptr) {
    auto* statistics =
        reinterpret_cast<decltype(&leafpress_rocksdb_statistics)>(dlsym(library, "leafpress_rocksdb_statistics"));
    auto* release = reinterpret_cast<decltype(&leafpress_rocksdb_free)>(dlsym(library, "leafpress_rocksdb_free"));
    char* text = statistics();
    printf("%s", text);
    release(text);
  }
  printf("host %s: good\n", mode.c_str());
  return 0;
}
