// Leafpress codecs as RocksDB's CompressionManager, Compressor and Decompressor.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compression_abi.h"
#include "guard.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb_version.h"

namespace leafpress {

inline LeafpressView Lend(const rocks::Slice& slice) noexcept { return {slice.data(), slice.size()}; }

// Takes text over from Rust. Throws, and then the text is freed and lost.
std::string Take(LeafpressText text);
// The status of a call; takes the error over.
rocks::Status TakeStatus(int32_t code, LeafpressText error) noexcept;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* handle) const { Free(handle); }
};
using OptionsHandle = std::unique_ptr<LeafpressOptions, Deleter<LeafpressOptions, leafpress_options_free>>;
using CompressorHandle =
    std::unique_ptr<LeafpressCompressor, Deleter<LeafpressCompressor, leafpress_compressor_free>>;
using DecompressorHandle =
    std::unique_ptr<LeafpressDecompressor, Deleter<LeafpressDecompressor, leafpress_decompressor_free>>;
using DictionaryHandle =
    std::unique_ptr<LeafpressDictionary, Deleter<LeafpressDictionary, leafpress_dictionary_free>>;

// One file's way to compress. It needs no working areas: the engines keep their contexts per thread.
class BlockCompressor final : public rocks::Compressor {
 public:
  BlockCompressor(CompressorHandle handle, uint32_t parallel_threads, rocks::Logger* logger)
      : handle_(std::move(handle)), parallel_threads_(parallel_threads), logger_(logger) {}

  const char* Name() const noexcept override { return "leafpress"; }
  std::string GetId() const noexcept override;
#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 0)
  DictConfig GetDictGuidance(rocks::CacheEntryRole block_type) const noexcept override;
#else
  size_t GetMaxSampleSizeIfWantDict(rocks::CacheEntryRole block_type) const noexcept override;
#endif
  rocks::Slice GetSerializedDict() const noexcept override;
  rocks::CompressionType GetPreferredCompressionType() const noexcept override;
#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 2)
  uint32_t GetRecommendedParallelThreads() const noexcept override { return parallel_threads_; }
#endif
  std::unique_ptr<rocks::Compressor> Clone() const noexcept override;
#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 0)
  std::unique_ptr<rocks::Compressor> MaybeCloneSpecialized(rocks::CacheEntryRole block_type,
                                                           DictConfigArgs&& dict_config) const noexcept override;
#else
  std::unique_ptr<rocks::Compressor> MaybeCloneSpecialized(rocks::CacheEntryRole block_type,
                                                           DictSampleArgs&& samples) const noexcept override;
#endif
  rocks::Status CompressBlock(rocks::Slice uncompressed_data, char* compressed_output,
                              size_t* compressed_output_size, rocks::CompressionType* out_compression_type,
                              ManagedWorkingArea* working_area) noexcept override;

 private:
  // The bytes of blocks to collect as samples; 0 for no dictionary.
  size_t SampleBytes(rocks::CacheEntryRole block_type) const noexcept;
  // A compressor with a dictionary for these samples; null where none pays.
  LeafpressCompressor* Train(const std::string& sample_data, const std::vector<size_t>& sample_lens) const noexcept;
  // The compressor that owns `handle`; null for null, or without memory.
  std::unique_ptr<rocks::Compressor> Wrap(CompressorHandle handle) const noexcept;

  CompressorHandle handle_;
  uint32_t parallel_threads_;
  // The database's, which outlives the file that is being written; null for none.
  rocks::Logger* logger_;
};

// Reads the blocks of every codec of one schema.
class BlockDecompressor final : public rocks::Decompressor {
 public:
  explicit BlockDecompressor(std::shared_ptr<LeafpressDecompressor> handle) : handle_(std::move(handle)) {}
  // `dictionary_bytes` live as long as this.
  BlockDecompressor(std::shared_ptr<LeafpressDecompressor> handle, DictionaryHandle dictionary,
                    const rocks::Slice& dictionary_bytes)
      : handle_(std::move(handle)), dictionary_(std::move(dictionary)), dictionary_bytes_(dictionary_bytes) {}

  const char* Name() const noexcept override { return "leafpress"; }
  const rocks::Slice& GetSerializedDict() const noexcept override { return dictionary_bytes_; }
  rocks::Status MaybeCloneForDict(const rocks::Slice& serialized_dict,
                                  std::unique_ptr<rocks::Decompressor>* out) noexcept override;
  size_t ApproximateOwnedMemoryUsage() const noexcept override;
  rocks::Status ExtractUncompressedSize(Args& args) noexcept override;
  rocks::Status DecompressBlock(const Args& args, char* uncompressed_output) noexcept override;

 private:
  std::shared_ptr<LeafpressDecompressor> handle_;
  DictionaryHandle dictionary_;
  rocks::Slice dictionary_bytes_;
};

// `compression_manager={id=leafpress;...}`.
class Manager final : public rocks::CompressionManager {
 public:
  Manager();

  static const char* kClassName() { return "leafpress"; }
  // The schema's name, which SST files carry: docs/formats.md.
  static const char* kCompatibilityName() { return "leafpress_rocksdb_v1"; }

  const char* Name() const noexcept override { return kClassName(); }
  const char* CompatibilityName() const noexcept override { return kCompatibilityName(); }
  rocks::Status PrepareOptions(const rocks::ConfigOptions& config_options) noexcept override;
  bool SupportsCompressionType(rocks::CompressionType type) const noexcept override;
#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 3)
  std::string CompressionTypeToString(rocks::CompressionType type) const noexcept override;
#endif
  std::unique_ptr<rocks::Compressor> GetCompressorForSST(const rocks::FilterBuildingContext& context,
                                                         const rocks::CompressionOptions& opts,
                                                         rocks::CompressionType preferred) noexcept override;
  std::unique_ptr<rocks::Compressor> GetCompressor(const rocks::CompressionOptions& opts,
                                                   rocks::CompressionType type) noexcept override;
  std::shared_ptr<rocks::Decompressor> GetDecompressor() noexcept override;

  static constexpr size_t kOptions = 11;
  static const std::array<const char*, kOptions> kOptionNames;

 protected:
  rocks::Status ConfigureOptions(const rocks::ConfigOptions& config_options,
                                 const std::unordered_map<std::string, std::string>& opts_map,
                                 std::unordered_map<std::string, std::string>* unused) noexcept override;

 private:
  // The options as one, made from `fields_`.
  struct Prepared {
    OptionsHandle options;
    std::shared_ptr<rocks::Decompressor> decompressor;
  };

  // Throws.
  rocks::Status Prepare(std::shared_ptr<const Prepared>* out);
  std::unique_ptr<rocks::Compressor> NewCompressor(const std::string& family, int level, rocks::Logger* logger,
                                                   const rocks::CompressionOptions& opts,
                                                   rocks::CompressionType preferred, bool verified) noexcept;

  // The options in their usual spelling, empty for a default, in the order of `kOptionNames`.
  std::array<std::string, kOptions> fields_;
  std::mutex mutex_;
  std::shared_ptr<const Prepared> prepared_;
  // Made with the manager: RocksDB does not check for null.
  std::shared_ptr<rocks::Decompressor> plain_decompressor_;
};

void RegisterCompression(rocks::ObjectLibrary& library);

}  // namespace leafpress
