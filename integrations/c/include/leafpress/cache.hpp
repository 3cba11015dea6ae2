/* leafpress/cache.hpp - caches. Part of leafpress.hpp. */
#ifndef LEAFPRESS_CACHE_HPP
#define LEAFPRESS_CACHE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

namespace leafpress {

/// See lp_cache. It is freed, not closed, unless close() is called.
class Cache {
public:
    Cache() : Cache(nullptr) {}
    explicit Cache(const Options &options) : Cache(options.get()) {}

    void insert(std::string_view key, std::string_view value) {
        detail::check(lp_cache_insert(get(), key.data(), key.size(), value.data(), value.size()));
    }

    /// A record that lives so long.
    void insert(std::string_view key, std::string_view value, std::chrono::milliseconds ttl) {
        auto ttl_ms = ttl.count() < 0 ? 0 : static_cast<std::uint64_t>(ttl.count());
        detail::check(lp_cache_insert_ttl(get(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
    }

    /// Times of a record that differ from the cache's, and its tags: see lp_insert_options.
    struct InsertOptions {
        std::chrono::milliseconds ttl{0};
        std::chrono::milliseconds time_to_idle{0};
        std::vector<std::string_view> tags{};

        /// A time of a record that does not expire.
        static constexpr std::chrono::milliseconds never = std::chrono::milliseconds::max();
    };

    void insert(std::string_view key, std::string_view value, const InsertOptions &options) {
        // A negative time is out of bounds.
        auto ms = [](std::chrono::milliseconds time) {
            return time == InsertOptions::never ? LP_NEVER
                   : time.count() < 0           ? LP_NEVER - 1
                                                : static_cast<std::uint64_t>(time.count());
        };
        std::vector<lp_bytes> tags;
        for (auto tag : options.tags)
            tags.push_back({tag.data(), tag.size()});
        lp_insert_options given{ms(options.ttl), ms(options.time_to_idle), tags.data(), tags.size()};
        detail::check(lp_cache_insert_entry(get(), key.data(), key.size(), value.data(), value.size(), &given));
    }

    /// Removes every record that was inserted with the tag.
    void invalidate_tag(std::string_view tag) {
        detail::check(lp_cache_invalidate_tag(get(), tag.data(), tag.size()));
    }

    std::optional<std::string> get(std::string_view key) const {
        return detail::copy([&](auto read, void *context) {
            return lp_cache_read(get(), key.data(), key.size(), read, context);
        });
    }

    /// Shows the value to a callable; whether it was there.
    template <class F> bool read(std::string_view key, F &&function) const {
        detail::Callback callback{function};
        auto status = lp_cache_read(get(), key.data(), key.size(), &decltype(callback)::value, &callback);
        return callback.end(status) != LP_NOT_FOUND;
    }

    /// Returns the key's value, or inserts and returns what load(key) returns: a std::optional<std::string>, empty if
    /// there is no value. One thread loads a key at a time. What load throws propagates to its caller; other waiting
    /// callers get LP_LOAD_FAILED.
    template <class F> std::optional<std::string> get_or_load(std::string_view key, F &&load) {
        struct Loader {
            F &load;
            std::exception_ptr thrown;

            static int call(void *self, const void *key, std::size_t key_len, lp_load *into) {
                auto &loader = *static_cast<Loader *>(self);
                try {
                    std::optional<std::string> loaded = loader.load(detail::view(key, key_len));
                    if (!loaded)
                        return LP_NOT_FOUND;
                    return lp_load_set(into, loaded->data(), loaded->size());
                } catch (...) {
                    loader.thrown = std::current_exception();
                    return LP_LOAD_FAILED;
                }
            }
        } loader{load, nullptr};
        return detail::copy([&](auto read, void *context) {
            auto status =
                lp_cache_get_or_load(get(), key.data(), key.size(), &Loader::call, &loader, read, context);
            if (loader.thrown)
                std::rethrow_exception(loader.thrown);
            return status;
        });
    }

    /// Shows the index in keys and the std::optional<std::string_view> value of each.
    template <class Keys, class F> void get_many(Keys &&keys, F &&function) const {
        const detail::List listed(keys);
        detail::Callback callback{function};
        callback.end(
            lp_cache_get_many(get(), listed.data(), listed.size(), &decltype(callback)::found, &callback));
    }

    bool contains(std::string_view key) const {
        return detail::done(lp_cache_contains(get(), key.data(), key.size()));
    }

    /// Whether it was there.
    bool remove(std::string_view key) { return detail::done(lp_cache_remove(get(), key.data(), key.size())); }

    /// Removes it, and does not say whether it was there: unlike remove(), it never reads the disk.
    void invalidate(std::string_view key) { detail::done(lp_cache_invalidate(get(), key.data(), key.size())); }

    std::optional<std::string> take(std::string_view key) {
        return detail::copy([&](auto read, void *context) {
            return lp_cache_take(get(), key.data(), key.size(), read, context);
        });
    }

    /// The value that the key had.
    std::optional<std::string> swap(std::string_view key, std::string_view value) {
        return detail::copy([&](auto read, void *context) {
            return lp_cache_swap(get(), key.data(), key.size(), value.data(), value.size(), read, context);
        });
    }

    /// Replaces the value if it is the expected one; returns whether it did. std::nullopt stands for an absent record.
    bool compare_and_swap(std::string_view key, std::optional<std::string_view> expected,
                          std::optional<std::string_view> value) {
        lp_bytes old = detail::bytes(expected.value_or("")), now = detail::bytes(value.value_or(""));
        return detail::done(lp_cache_compare_and_swap(get(), key.data(), key.size(), expected ? &old : nullptr,
                                                      value ? &now : nullptr));
    }

    /// Shows each Record in memory whose key begins with prefix.
    template <class F> void scan_prefix(std::string_view prefix, F &&function) const {
        detail::Callback callback{function};
        callback.end(
            lp_cache_scan_prefix(get(), prefix.data(), prefix.size(), &decltype(callback)::record, &callback));
    }

    /// Records in memory.
    std::uint64_t size() const {
        std::uint64_t records;
        detail::check(lp_cache_len(get(), &records));
        return records;
    }

    void clear() { detail::check(lp_cache_clear(get())); }
    void set_memory(std::uint64_t bytes) { detail::check(lp_cache_set_memory(get(), bytes)); }
    void settle() { detail::check(lp_cache_settle(get())); }
    void validate() const { detail::check(lp_cache_validate(get())); }

    /// Leaves what it has in its disk tier. The cache is gone then, whether this throws or not.
    void close() { detail::check(lp_cache_close(handle_.release())); }

    lp_cache_stats stats() const {
        lp_cache_stats stats;
        stats.struct_size = sizeof stats;
        detail::check(lp_cache_get_stats(get(), &stats));
        return stats;
    }

    /// A few lines for people.
    std::string describe() const {
        std::string text;
        std::size_t len = 0;
        detail::check(lp_cache_describe(get(), nullptr, 0, &len));
        for (;;) {
            // It may have grown meanwhile.
            text.resize(len + 1);
            lp_status status = lp_cache_describe(get(), text.data(), text.size(), &len);
            if (status != LP_BUFFER_TOO_SMALL) {
                detail::check(status);
                text.resize(len);
                return text;
            }
        }
    }

    lp_cache *get() const noexcept { return handle_.get(); }

private:
    explicit Cache(const lp_options *options) {
        lp_cache *made;
        detail::check(lp_cache_open(options, &made));
        handle_.reset(made);
    }

    detail::Handle<lp_cache, lp_cache_free> handle_;
};

} // namespace leafpress

#endif
