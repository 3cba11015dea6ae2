// Compressor and Decompressor over the Rust engines.
#include "compression.h"

namespace leafpress {

using rocks::CompressionType;
using rocks::Slice;
using rocks::Status;

std::string Take(LeafpressBytes text) {
  std::string taken;
  try {
    taken.assign(text.data == nullptr ? "" : text.data, text.len);
  } catch (...) {
    // Without memory the text is lost.
  }
  leafpress_text_free(text);
  return taken;
}

Status TakeStatus(int32_t code, LeafpressBytes error) {
  if (code == 0) {
    return Status::OK();
  }
  const std::string message = Take(error);
  switch (code) {
    case 1:
      return Status::InvalidArgument(message);
    case 2:
      return Status::Corruption(message);
    case 3:
      return Status::NotSupported(message);
    case 4:
      return Status::MemoryLimit(message);
    default:
      return Status::IOError(message);
  }
}

std::string BlockCompressor::GetId() const { return Take(leafpress_compressor_id(handle_.get())); }

rocks::Compressor::DictConfig BlockCompressor::GetDictGuidance(rocks::CacheEntryRole block_type) const {
  // Of the blocks that are compressed, only data blocks are alike enough, and many enough.
  const size_t sample_bytes =
      block_type == rocks::CacheEntryRole::kDataBlock ? leafpress_compressor_sample_bytes(handle_.get()) : 0;
  if (sample_bytes == 0) {
    return DictDisabled{};
  }
  if (std::string ready = Take(leafpress_compressor_ready_dictionary(handle_.get())); !ready.empty()) {
    return DictPreDefined{std::move(ready)};
  }
  return DictSampling{sample_bytes};
}

Slice BlockCompressor::GetSerializedDict() const {
  const LeafpressBytes bytes = leafpress_compressor_dictionary(handle_.get());
  return bytes.len == 0 ? Slice() : Slice(bytes.data, bytes.len);
}

CompressionType BlockCompressor::GetPreferredCompressionType() const {
  return static_cast<CompressionType>(leafpress_compressor_block_type(handle_.get()));
}

std::unique_ptr<rocks::Compressor> BlockCompressor::Clone() const {
  CompressorHandle copy(leafpress_compressor_copy(handle_.get()));
  if (copy == nullptr) {
    return nullptr;
  }
  return std::make_unique<BlockCompressor>(std::move(copy), parallel_threads_, logger_);
}

std::unique_ptr<rocks::Compressor> BlockCompressor::MaybeCloneSpecialized(rocks::CacheEntryRole,
                                                                          DictConfigArgs&& dict_config) const {
  CompressorHandle with;
  if (const auto* samples = std::get_if<DictSamples>(&dict_config)) {
    if (!samples->empty() && samples->Verify()) {
      with.reset(leafpress_compressor_train(handle_.get(), Lend(Slice(samples->sample_data)),
                                            samples->sample_lens.data(), samples->sample_lens.size()));
    }
  } else if (const auto* given = std::get_if<DictPreDefined>(&dict_config)) {
    if (!given->dict_data.empty()) {
      with.reset(leafpress_compressor_with_dictionary(handle_.get(), Lend(Slice(given->dict_data))));
    }
  }
  if (with == nullptr) {
    return nullptr;
  }
  return std::make_unique<BlockCompressor>(std::move(with), parallel_threads_, logger_);
}

Status BlockCompressor::CompressBlock(Slice uncompressed_data, char* compressed_output,
                                      size_t* compressed_output_size, CompressionType* out_compression_type,
                                      ManagedWorkingArea*) {
  const int64_t written =
      leafpress_compress(handle_.get(), Lend(uncompressed_data), compressed_output, *compressed_output_size);
  if (written > 0) {
    *compressed_output_size = static_cast<size_t>(written);
    *out_compression_type = GetPreferredCompressionType();
    return Status::OK();
  }
  if (written == -2) {
    // The raw bytes are good, and stored as they are: losing a flush over a faulty engine would help nobody.
    rocks::Error(logger_,
                 "leafpress: a block of %zu bytes did not decode to what it was compressed from (%s) and is stored raw; "
                 "the engine or the machine's memory is faulty",
                 uncompressed_data.size(), GetId().c_str());
  }
  *compressed_output_size = written == 0 ? 0 : 1;
  *out_compression_type = CompressionType::kNoCompression;
  return Status::OK();
}

Status BlockDecompressor::MaybeCloneForDict(const Slice& serialized_dict,
                                            std::unique_ptr<rocks::Decompressor>* out) {
  LeafpressDictionary* dictionary = nullptr;
  LeafpressBytes error{};
  const int32_t code = leafpress_dictionary_new(Lend(serialized_dict), &dictionary, &error);
  if (code != 0) {
    return TakeStatus(code, error);
  }
  *out = std::make_unique<BlockDecompressor>(handle_, DictionaryHandle(dictionary), serialized_dict);
  return Status::OK();
}

size_t BlockDecompressor::ApproximateOwnedMemoryUsage() const {
  return sizeof(*this) + (dictionary_ == nullptr ? 0 : leafpress_dictionary_held_bytes(dictionary_.get()));
}

Status BlockDecompressor::ExtractUncompressedSize(Args& args) {
  size_t prefix = 0;
  LeafpressBytes error{};
  const int32_t code = leafpress_raw_bytes(static_cast<uint8_t>(args.compression_type), Lend(args.compressed_data),
                                           &args.uncompressed_size, &prefix, &error);
  if (code != 0) {
    return TakeStatus(code, error);
  }
  args.compressed_data.remove_prefix(prefix);
  return Status::OK();
}

Status BlockDecompressor::DecompressBlock(const Args& args, char* uncompressed_output) {
  LeafpressBytes error{};
  const int32_t code = leafpress_decompress(handle_.get(), static_cast<uint8_t>(args.compression_type),
                                            dictionary_.get(), Lend(args.compressed_data), uncompressed_output,
                                            args.uncompressed_size, &error);
  return code == 0 ? Status::OK() : TakeStatus(code, error);
}

}  // namespace leafpress
