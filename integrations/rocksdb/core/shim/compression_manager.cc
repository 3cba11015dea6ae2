// The manager: its options, and what it hands to RocksDB.
#include "compression.h"

#include <stdexcept>

#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/utilities/options_type.h"

namespace leafpress {

using rocks::CompressionType;
using rocks::ConfigOptions;
using rocks::OptionTypeInfo;
using rocks::Slice;
using rocks::Status;

const std::array<const char*, Manager::kOptions> Manager::kOptionNames = {
    "codec",   "level_codec",      "execution_path",   "compression_mode",        "level",
    "verify",  "parallel_threads", "dictionary_bytes", "dictionary_sample_bytes", "dictionary_sharing", "honor_no_compression",
};

namespace {

// Whether an option can be, and its usual spelling.
Status Check(const std::string& name, const std::string& value, std::string* spelling) noexcept {
  return Guarded([&] {
    LeafpressText text{};
    LeafpressText error{};
    const int32_t code = leafpress_option_check(Lend(Slice(name)), Lend(Slice(value)), &text, &error);
    if (code == kLeafpressOk) {
      *spelling = Take(text);
    }
    return TakeStatus(code, error);
  });
}

// Every option is text whose meaning the Rust library knows.
const std::unordered_map<std::string, OptionTypeInfo>& TypeInfo() {
  static const auto* info = [] {
    auto all = std::make_unique<std::unordered_map<std::string, OptionTypeInfo>>();
    for (size_t i = 0; i < Manager::kOptions; ++i) {
      OptionTypeInfo one(static_cast<int>(i * sizeof(std::string)), rocks::OptionType::kString);
      one.SetParseFunc([](const ConfigOptions&, const std::string& name, const std::string& value, void* field) {
        return Check(name, value, static_cast<std::string*>(field));
      });
      // RocksDB's own would put a backslash before every colon.
      one.SetSerializeFunc([](const ConfigOptions&, const std::string&, const void* field, std::string* value) {
        return Guarded([&] {
          *value = *static_cast<const std::string*>(field);
          return Status::OK();
        });
      });
      all->emplace(Manager::kOptionNames[i], one);
    }
    return all.release();
  }();
  return *info;
}

// Returns a decompressor for a reader.
std::shared_ptr<rocks::Decompressor> Share(LeafpressDecompressor* decompressor) {
  std::shared_ptr<LeafpressDecompressor> handle(decompressor, leafpress_decompressor_free);
  return std::make_shared<BlockDecompressor>(std::move(handle));
}

}  // namespace

Manager::Manager() {
  RegisterOptions("leafpress", &fields_, &TypeInfo());
  LeafpressDecompressor* decompressor = nullptr;
  LeafpressText error{};
  if (leafpress_decompressor_new(nullptr, &decompressor, &error) != kLeafpressOk) {
    throw std::runtime_error(Take(error));
  }
  plain_decompressor_ = Share(decompressor);
}

Status Manager::PrepareOptions(const ConfigOptions& config_options) noexcept {
  return Guarded([&] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      prepared_.reset();
    }
    std::shared_ptr<const Prepared> prepared;
    Status status = Prepare(&prepared);
    if (status.ok()) {
      status = CompressionManager::PrepareOptions(config_options);
    }
    return status;
  });
}

Status Manager::ConfigureOptions(const ConfigOptions& config_options,
                                 const std::unordered_map<std::string, std::string>& opts_map,
                                 std::unordered_map<std::string, std::string>* unused) noexcept {
  return Guarded([&] {
    // RocksDB would name `compression_manager` as what it does not know.
    if (!config_options.ignore_unknown_options && unused == nullptr) {
      for (const auto& option : opts_map) {
        if (TypeInfo().count(option.first) == 0 && option.first != OptionTypeInfo::kIdPropName()) {
          std::string spelling;
          Status status = Check(option.first, option.second, &spelling);
          if (!status.ok()) {
            return status;
          }
        }
      }
    }
    return CompressionManager::ConfigureOptions(config_options, opts_map, unused);
  });
}

Status Manager::Prepare(std::shared_ptr<const Prepared>* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (prepared_ == nullptr) {
    std::array<LeafpressView, 2 * kOptions> pairs;
    for (size_t i = 0; i < kOptions; ++i) {
      pairs[2 * i] = Lend(Slice(kOptionNames[i]));
      pairs[2 * i + 1] = Lend(Slice(fields_[i]));
    }
    LeafpressText error{};
    LeafpressOptions* options = nullptr;
    int32_t code = leafpress_options_new(pairs.data(), kOptions, &options, &error);
    if (code != kLeafpressOk) {
      return TakeStatus(code, error);
    }
    OptionsHandle handle(options);
    LeafpressDecompressor* decompressor = nullptr;
    code = leafpress_decompressor_new(options, &decompressor, &error);
    if (code != kLeafpressOk) {
      return TakeStatus(code, error);
    }
    auto prepared = std::make_shared<Prepared>(Prepared{std::move(handle), Share(decompressor)});
    // What several options say together is kept as the codec that it comes to: setting another one later replaces it.
    std::array<std::string, kOptions> fields;
    for (size_t i = 0; i < kOptions; ++i) {
      fields[i] = Take(leafpress_options_text(options, Lend(Slice(kOptionNames[i]))));
    }
    fields_ = std::move(fields);
    prepared_ = std::move(prepared);
  }
  *out = prepared_;
  return Status::OK();
}

bool Manager::SupportsCompressionType(CompressionType type) const noexcept {
  // RocksDB's own types in `compression` and `compression_per_level` are ignored: the codec determines what is written.
  return type <= CompressionType::kLastBuiltinCompression ||
         leafpress_block_type_name(static_cast<uint8_t>(type)).len != 0;
}

#if LEAFPRESS_ROCKSDB_AT_LEAST(11, 3)
// The base class's function is not called: a RocksDB that lacks it could not load the library, which then could not say
// what version it is for.
std::string Manager::CompressionTypeToString(CompressionType type) const noexcept {
  // The name is short enough to need no memory.
  return Guarded(std::string(Name()), [&] {
    const LeafpressView name = leafpress_block_type_name(static_cast<uint8_t>(type));
    if (name.len != 0) {
      return "leafpress_" + std::string(name.data, name.len);
    }
    std::string builtin;
    return rocks::GetStringFromCompressionType(&builtin, type).ok() ? builtin : std::to_string(static_cast<int>(type));
  });
}
#endif

// Null for a file without compression.
std::unique_ptr<rocks::Compressor> Manager::NewCompressor(const std::string& family, int level, rocks::Logger* logger,
                                                          const rocks::CompressionOptions& opts,
                                                          CompressionType preferred, bool verified) noexcept {
  std::unique_ptr<rocks::Compressor> made;
  if (opts.max_compressed_bytes_per_kb <= 0) {
    return made;
  }
  const Status status = Guarded([&] {
    std::shared_ptr<const Prepared> prepared;
    if (Status failed = Prepare(&prepared); !failed.ok()) {
      return failed;
    }
    if (preferred == CompressionType::kNoCompression &&
        leafpress_options_honor_no_compression(prepared->options.get())) {
      return Status::OK();
    }
    LeafpressCompressor* compressor = nullptr;
    LeafpressText error{};
    const int32_t code = leafpress_compressor_new(prepared->options.get(), Lend(Slice(family)), level,
                                                  opts.max_dict_bytes, opts.zstd_max_train_bytes, verified,
                                                  &compressor, &error);
    CompressorHandle handle(compressor);
    if (code == kLeafpressOk && handle != nullptr) {
      made = std::make_unique<BlockCompressor>(
          std::move(handle), leafpress_options_parallel_threads(prepared->options.get()), logger);
    }
    return TakeStatus(code, error);
  });
  if (!status.ok()) {
    // Options are checked before a database is opened; a file without compression is what is left.
    Attempt([&] { rocks::Error(logger, "leafpress: files are not compressed: %s", status.ToString().c_str()); });
  }
  return made;
}

std::unique_ptr<rocks::Compressor> Manager::GetCompressorForSST(const rocks::FilterBuildingContext& context,
                                                                const rocks::CompressionOptions& opts,
                                                                CompressionType preferred) noexcept {
  if (context.table_options.block_align) {
    // RocksDB fails a file that is both aligned and compressed, and does not consult a manager when a database is
    // opened.
    Attempt([&] {
      rocks::Warn(context.info_log, "leafpress: the file is not compressed, because block_align requires blocks of one length");
    });
    return nullptr;
  }
  return NewCompressor(context.column_family_name, context.level_at_creation, context.info_log, opts, preferred,
                       context.table_options.verify_compression);
}

std::unique_ptr<rocks::Compressor> Manager::GetCompressor(const rocks::CompressionOptions& opts,
                                                          CompressionType type) noexcept {
  return NewCompressor(std::string(), -1, nullptr, opts, type, /*verified=*/false);
}

std::shared_ptr<rocks::Decompressor> Manager::GetDecompressor() noexcept {
  // Used if the codec to write with is not available: reading does not need it.
  return Guarded(plain_decompressor_, [&] {
    std::shared_ptr<const Prepared> prepared;
    return Prepare(&prepared).ok() ? prepared->decompressor : plain_decompressor_;
  });
}

void RegisterCompression(rocks::ObjectLibrary& library) {
  const auto create = [](const std::string&, std::unique_ptr<rocks::CompressionManager>* guard, std::string* error) {
    const Status status = Guarded([&] {
      *guard = std::make_unique<Manager>();
      return Status::OK();
    });
    if (!status.ok()) {
      Attempt([&] { *error = status.ToString(); });
    }
    return guard->get();
  };
  library.AddFactory<rocks::CompressionManager>(Manager::kClassName(), create);
  // Readers look for the schema's name.
  library.AddFactory<rocks::CompressionManager>(Manager::kCompatibilityName(), create);
}

}  // namespace leafpress
