// Compressor and Decompressor over the Rust engines.
#include "compression.h"

namespace leafpress {

using rocks::CompressionType;
using rocks::Slice;
using rocks::Status;

std::string Take(LeafpressText text) {
  struct Back {
    LeafpressText text;
    ~Back() { leafpress_text_free(text); }
  } back{text};
  return text.data == nullptr ? std::string() : std::string(text.data, text.len);
}

Status TakeStatus(int32_t code, LeafpressText error) noexcept {
  if (code == kLeafpressOk) {
    return Status::OK();
  }
  const std::string message = Guarded(std::string(), [&] { return Take(error); });
  switch (code) {
    case kLeafpressInvalidArgument:
      return Spoken(Status::InvalidArgument(), [&] { return Status::InvalidArgument(message); });
    case kLeafpressCorruption:
      return Spoken(Status::Corruption(), [&] { return Status::Corruption(message); });
    case kLeafpressNotSupported:
      return Spoken(Status::NotSupported(), [&] { return Status::NotSupported(message); });
    case kLeafpressMemoryLimit:
      return Spoken(Status::MemoryLimit(), [&] { return Status::MemoryLimit(message); });
    default:
      return Spoken(Status::IOError(), [&] { return Status::IOError(message); });
  }
}

std::string BlockCompressor::GetId() const noexcept {
  // The name is short enough to need no memory.
  return Guarded(std::string(Name()), [&] { return Take(leafpress_compressor_id(handle_.get())); });
}

size_t BlockCompressor::SampleBytes(rocks::CacheEntryRole block_type) const noexcept {
  // Of the blocks that are compressed, only data blocks are alike enough, and many enough.
  return block_type == rocks::CacheEntryRole::kDataBlock ? leafpress_compressor_sample_bytes(handle_.get()) : 0;
}

#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 0)
rocks::Compressor::DictConfig BlockCompressor::GetDictGuidance(rocks::CacheEntryRole block_type) const noexcept {
  const size_t sample_bytes = SampleBytes(block_type);
  if (sample_bytes == 0) {
    return DictDisabled{};
  }
  return Guarded(DictConfig(DictSampling{sample_bytes}), [&]() -> DictConfig {
    std::string ready = Take(leafpress_compressor_ready_dictionary(handle_.get()));
    if (ready.empty()) {
      return DictSampling{sample_bytes};
    }
    return DictPreDefined{std::move(ready)};
  });
}
#else
size_t BlockCompressor::GetMaxSampleSizeIfWantDict(rocks::CacheEntryRole block_type) const noexcept {
  return SampleBytes(block_type);
}
#endif

Slice BlockCompressor::GetSerializedDict() const noexcept {
  const LeafpressView bytes = leafpress_compressor_dictionary(handle_.get());
  return bytes.len == 0 ? Slice() : Slice(bytes.data, bytes.len);
}

CompressionType BlockCompressor::GetPreferredCompressionType() const noexcept {
  return static_cast<CompressionType>(leafpress_compressor_block_type(handle_.get()));
}

std::unique_ptr<rocks::Compressor> BlockCompressor::Wrap(CompressorHandle handle) const noexcept {
  return Guarded(std::unique_ptr<rocks::Compressor>(), [&]() -> std::unique_ptr<rocks::Compressor> {
    return handle == nullptr ? nullptr : std::make_unique<BlockCompressor>(std::move(handle), parallel_threads_, logger_);
  });
}

// RocksDB does not check for null here. It calls this function only from its own wrappers of compressors.
std::unique_ptr<rocks::Compressor> BlockCompressor::Clone() const noexcept {
  return Wrap(CompressorHandle(leafpress_compressor_copy(handle_.get())));
}

LeafpressCompressor* BlockCompressor::Train(const std::string& sample_data,
                                            const std::vector<size_t>& sample_lens) const noexcept {
  size_t sum = 0;
  for (const size_t length : sample_lens) {
    sum += length;
  }
  if (sum == 0 || sum != sample_data.size()) {
    return nullptr;
  }
  return leafpress_compressor_train(handle_.get(), Lend(Slice(sample_data)), sample_lens.data(), sample_lens.size());
}

// On null RocksDB continues with this compressor, without a dictionary.
#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 0)
std::unique_ptr<rocks::Compressor> BlockCompressor::MaybeCloneSpecialized(rocks::CacheEntryRole,
                                                                          DictConfigArgs&& dict_config) const noexcept {
  CompressorHandle with;
  if (const auto* samples = std::get_if<DictSamples>(&dict_config)) {
    with.reset(Train(samples->sample_data, samples->sample_lens));
  } else if (const auto* given = std::get_if<DictPreDefined>(&dict_config)) {
    if (!given->dict_data.empty()) {
      with.reset(leafpress_compressor_with_dictionary(handle_.get(), Lend(Slice(given->dict_data))));
    }
  }
  return Wrap(std::move(with));
}
#else
std::unique_ptr<rocks::Compressor> BlockCompressor::MaybeCloneSpecialized(rocks::CacheEntryRole,
                                                                          DictSampleArgs&& samples) const noexcept {
  return Wrap(CompressorHandle(Train(samples.sample_data, samples.sample_lens)));
}
#endif

Status BlockCompressor::CompressBlock(Slice uncompressed_data, char* compressed_output,
                                      size_t* compressed_output_size, CompressionType* out_compression_type,
                                      ManagedWorkingArea*) noexcept {
  const int64_t written =
      leafpress_compress(handle_.get(), Lend(uncompressed_data), compressed_output, *compressed_output_size);
  if (written > 0) {
    *compressed_output_size = static_cast<size_t>(written);
    *out_compression_type = GetPreferredCompressionType();
    return Status::OK();
  }
  if (written == -2) {
    // The raw bytes are valid, and are stored uncompressed: a faulty engine must not fail a flush.
    Attempt([&] {
      rocks::Error(logger_,
                   "leafpress: a block of %zu bytes did not decode to what it was compressed from (%s) and is stored raw; "
                   "the engine or the machine's memory is faulty",
                   uncompressed_data.size(), GetId().c_str());
    });
  }
  *compressed_output_size = written == 0 ? 0 : 1;
  *out_compression_type = CompressionType::kNoCompression;
  return Status::OK();
}

Status BlockDecompressor::MaybeCloneForDict(const Slice& serialized_dict,
                                            std::unique_ptr<rocks::Decompressor>* out) noexcept {
  return Guarded([&] {
    LeafpressDictionary* made = nullptr;
    LeafpressText error{};
    const int32_t code = leafpress_dictionary_new(Lend(serialized_dict), &made, &error);
    DictionaryHandle dictionary(made);
    if (code != kLeafpressOk) {
      return TakeStatus(code, error);
    }
    *out = std::make_unique<BlockDecompressor>(handle_, std::move(dictionary), serialized_dict);
    return Status::OK();
  });
}

size_t BlockDecompressor::ApproximateOwnedMemoryUsage() const noexcept {
  return sizeof(*this) + (dictionary_ == nullptr ? 0 : leafpress_dictionary_held_bytes(dictionary_.get()));
}

Status BlockDecompressor::ExtractUncompressedSize(Args& args) noexcept {
  size_t prefix = 0;
  LeafpressText error{};
  const int32_t code = leafpress_raw_bytes(static_cast<uint8_t>(args.compression_type), Lend(args.compressed_data),
                                           &args.uncompressed_size, &prefix, &error);
  if (code != kLeafpressOk) {
    return TakeStatus(code, error);
  }
  args.compressed_data.remove_prefix(prefix);
  return Status::OK();
}

Status BlockDecompressor::DecompressBlock(const Args& args, char* uncompressed_output) noexcept {
  LeafpressText error{};
  const int32_t code = leafpress_decompress(handle_.get(), static_cast<uint8_t>(args.compression_type),
                                            dictionary_.get(), Lend(args.compressed_data), uncompressed_output,
                                            args.uncompressed_size, &error);
  return TakeStatus(code, error);
}

}  // namespace leafpress
