// Fails the n-th allocation that C++ code makes below one of Leafpress's functions, for every n until there is none,
// while a database and the overrides by themselves are at work:
//   alloc_faults LIBRARY
// An exception that leaves the library ends the program: by RocksDB's threads, by `noexcept`, or by the checks in here.
// The Rust library's own allocations do not come by here; they end the process where they fail.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "leafpress_rocksdb.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/secondary_cache.h"
#include "rocksdb/table.h"

using namespace rocksdb;

namespace {

// Where the library's code is.
uintptr_t library_begin = 0;
uintptr_t library_end = 0;

std::atomic<bool> armed{false};
// Allocations below the library since it was armed.
std::atomic<long> seen{0};
long fails_at = 0;
// Whether all that follow fail too.
bool fails_on = false;

bool BelowLibrary() {
  void* frames[96];
  const int count = backtrace(frames, 96);
  for (int i = 0; i < count; ++i) {
    const auto at = reinterpret_cast<uintptr_t>(frames[i]);
    if (at >= library_begin && at < library_end) {
      return true;
    }
  }
  return false;
}

bool Fails() {
  if (!armed.load(std::memory_order_relaxed) || !BelowLibrary()) {
    return false;
  }
  const long nth = ++seen;
  return nth == fails_at || (fails_on && nth > fails_at);
}

int FindCode(dl_phdr_info* info, size_t, void* name) {
  if (strcmp(info->dlpi_name, static_cast<const char*>(name)) == 0) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) {
        library_begin = info->dlpi_addr + part.p_vaddr;
        library_end = library_begin + part.p_memsz;
      }
    }
  }
  return 0;
}

[[noreturn]] void Die(const std::string& what) {
  armed = false;
  fprintf(stderr, "allocation %ld%s: %s\n", fails_at, fails_on ? " and all that follow" : "", what.c_str());
  _exit(1);
}

std::string Key(int i) { return "key" + std::to_string(100000 + i); }

std::string Value(int i) {
  std::string value;
  for (int k = 0; k < 8; ++k) {
    value += "field " + std::to_string(i * 31 % 97 + k) + "; ";
  }
  return value;
}

const char* const kManager =
    "create_if_missing=true;compression_manager={id=leafpress;codec=zstd:3;dictionary_bytes=4096;verify=true}";
const char* const kSecondaryCache = "leafpress_secondary_cache://capacity=1M;codec=lz4";
// RocksDB's caches are not used below our wrapper of them: they do not survive an exception of their own.
const char* const kBlockCache =
    "block_based_table_factory={block_cache={id=leafpress_block_cache://;capacity=64K;type=lru;"
    "secondary_cache={leafpress_secondary_cache://capacity=1M;codec=lz4}}}";

constexpr int kRecords = 40;

bool used_dictionary = false;

// What was read is right, or there was an error.
void CheckGet(DB* db, int i, bool must) {
  std::string value;
  const Status status = db->Get(ReadOptions(), Key(i), &value);
  if (status.ok() ? value != Value(i) : must || status.IsNotFound()) {
    Die("record " + std::to_string(i) + ": " + status.ToString());
  }
}

ConfigOptions Strict() {
  ConfigOptions strict;
  strict.ignore_unsupported_options = false;
  return strict;
}

Status Configure(Options* options) {
  Status status = GetOptionsFromString(Strict(), Options(), kManager, options);
  LRUCacheOptions cache(16 << 10, /*num_shard_bits=*/0, false, 0.0);
  if (status.ok()) {
    status = SecondaryCache::CreateFromString(Strict(), kSecondaryCache, &cache.secondary_cache);
  }
  if (status.ok()) {
    BlockBasedTableOptions table;
    table.block_size = 1024;
    table.cache_index_and_filter_blocks = true;
    table.block_cache = cache.MakeSharedCache();
    options->table_factory.reset(NewBlockBasedTableFactory(table));
  }
  return status;
}

// A database from its options to its end.
void UseDatabase() {
  std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  Options without_faults;
  if (!Configure(&without_faults).ok()) {
    Die("the options are good");
  }
  std::vector<int> acknowledged;
  armed = true;
  {
    Options options;
    if (!Configure(&options).ok()) {
      options = without_faults;
    }
    options.env = env.get();
    std::unique_ptr<DB> db;
    if (DB::Open(options, "/db", &db).ok()) {
      for (int i = 0; i < 3 * kRecords; ++i) {
        if (db->Put(WriteOptions(), Key(i), Value(i)).ok()) {
          acknowledged.push_back(i);
        }
        if (i % kRecords == kRecords - 1) {
          // The second file has the first one's dictionary, the third one another codec.
          db->Flush(FlushOptions()).PermitUncheckedError();
          if (i > kRecords) {
            db->SetOptions({{"compression_manager", "{id=leafpress;codec=lz4}"}}).PermitUncheckedError();
          }
        }
      }
      for (int i : acknowledged) {
        CheckGet(db.get(), i, false);
      }
      db->CompactRange(CompactRangeOptions(), nullptr, nullptr).PermitUncheckedError();
      for (int i : acknowledged) {
        CheckGet(db.get(), i, false);
      }
    }
  }
  armed = false;
  without_faults.env = env.get();
  std::unique_ptr<DB> db;
  const Status status = DB::Open(without_faults, "/db", &db);
  if (!status.ok()) {
    Die("it does not open again: " + status.ToString());
  }
  for (int i : acknowledged) {
    CheckGet(db.get(), i, true);
  }
}

// Compresses a block and reads it back.
void RoundTrip(Compressor* compressor, Decompressor* decompressor) {
  std::string raw;
  for (int i = 0; i < 20; ++i) {
    raw += Value(i);
  }
  std::string block(raw.size(), 0);
  size_t len = block.size();
  CompressionType type = kNoCompression;
  const Status compressed = compressor->CompressBlock(raw, block.data(), &len, &type, nullptr);
  if (!compressed.ok() || type == kNoCompression) {
    return;
  }
  for (const bool good : {true, false}) {
    Decompressor::Args args;
    args.compression_type = type;
    args.compressed_data = Slice(block.data(), good ? len : len / 2);
    std::string back;
    Status status = decompressor->ExtractUncompressedSize(args);
    if (status.ok()) {
      back.resize(args.uncompressed_size);
      status = decompressor->DecompressBlock(args, back.data());
    }
    if (good ? status.ok() && back != raw : status.ok()) {
      Die("a block was read wrongly");
    }
    // The reason may be lost for lack of memory, but not the kind of error.
    if (!status.ok() && !status.IsCorruption() && !status.IsMemoryLimit()) {
      Die("no such error was to be: " + status.ToString());
    }
  }
}

// The overrides that a good database does not come to.
void CallOverrides() {
  const ConfigOptions strict = Strict();
  std::shared_ptr<CompressionManager> manager;
  armed = true;
  {
    Options made;
    GetOptionsFromString(strict, Options(), kBlockCache, &made).PermitUncheckedError();
    std::shared_ptr<SecondaryCache> secondary;
    if (SecondaryCache::CreateFromString(strict, kSecondaryCache, &secondary).ok()) {
      std::string value;
      secondary->GetPrintableOptions();
      secondary->GetOption(strict, "statistics", &value).PermitUncheckedError();
      secondary->GetOption(strict, "no_such_option", &value).PermitUncheckedError();
      secondary->ConfigureFromString(strict, "no_such_option=1").PermitUncheckedError();
    }
  }
  Status status = CompressionManager::CreateFromString(
      strict, "id=leafpress;codec=lz4:hc=5;dictionary_bytes=4096", &manager);
  if (status.ok() && manager != nullptr) {
    manager->ConfigureFromString(strict, "codec=no_such_codec_as_this_one").PermitUncheckedError();
    manager->CompressionTypeToString(static_cast<CompressionType>(0xC4));
    manager->SupportsCompressionType(static_cast<CompressionType>(0xC4));
    const std::shared_ptr<Decompressor> decompressor = manager->GetDecompressor();
    if (decompressor == nullptr) {
      Die("no decompressor, for which RocksDB is not prepared");
    }
    decompressor->ApproximateOwnedMemoryUsage();
    const std::unique_ptr<Compressor> compressor = manager->GetCompressor(CompressionOptions(), kZSTD);
    if (compressor != nullptr) {
      if (compressor->GetId().rfind("leafpress", 0) != 0) {
        Die("an id that does not begin with the name");
      }
      compressor->GetDictGuidance(CacheEntryRole::kDataBlock);
      compressor->Clone();
      RoundTrip(compressor.get(), decompressor.get());
      armed = false;
      Compressor::DictSamples samples;
      for (int i = 0; i < 400; ++i) {
        samples.sample_data += Value(i);
        samples.sample_lens.push_back(Value(i).size());
      }
      armed = true;
      const auto with = compressor->MaybeCloneSpecialized(CacheEntryRole::kDataBlock, std::move(samples));
      if (with != nullptr) {
        std::unique_ptr<Decompressor> reading;
        status = decompressor->MaybeCloneForDict(with->GetSerializedDict(), &reading);
        if (status.ok() != (reading != nullptr)) {
          Die("good without a decompressor, or the other way round");
        }
        if (reading != nullptr) {
          used_dictionary = true;
          RoundTrip(with.get(), reading.get());
        }
      }
      std::unique_ptr<Decompressor> reading;
      if (decompressor->MaybeCloneForDict("no dictionary", &reading).ok() != (reading != nullptr)) {
        Die("good without a decompressor, or the other way round");
      }
    }
  }
  armed = false;
}

// Runs `work` with every `step`th allocation failing in turn; the number of allocations.
long Run(const char* name, void (*work)(), bool on, long step) {
  fails_on = on;
  for (fails_at = 1;; fails_at += step) {
    seen = 0;
    try {
      work();
    } catch (const std::bad_alloc&) {
      Die(std::string("an exception left the library: ") + name);
    }
    if (seen < fails_at) {
      return seen;
    }
  }
}

}  // namespace

void* operator new(size_t bytes) {
  if (Fails()) {
    throw std::bad_alloc();
  }
  if (void* made = malloc(bytes == 0 ? 1 : bytes)) {
    return made;
  }
  throw std::bad_alloc();
}
void operator delete(void* made) noexcept { free(made); }
void operator delete(void* made, size_t) noexcept { free(made); }

int main(int, char** argv) {
  void* warm[1];
  backtrace(warm, 1);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Die(dlerror());
  }
  auto* registers = reinterpret_cast<decltype(&leafpress_rocksdb_register)>(dlsym(library, "leafpress_rocksdb_register"));
  if (registers() != 0) {
    Die("not registered");
  }
  Dl_info where;
  dladdr(reinterpret_cast<void*>(registers), &where);
  dl_iterate_phdr(FindCode, const_cast<char*>(where.dli_fname));
  if (library_begin == library_end) {
    Die("the library's code was not found");
  }
  for (const bool on : {false, true}) {
    const long overrides = Run("the overrides", CallOverrides, on, 1);
    const long database = Run("a database", UseDatabase, on, on ? 5 : 1);
    printf("%s overrides %ld database %ld\n", on ? "from-there-on" : "one", overrides, database);
    fflush(stdout);
  }
  if (!used_dictionary) {
    Die("no dictionary was trained");
  }
  return 0;
}
