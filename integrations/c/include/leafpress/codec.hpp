/* leafpress/codec.hpp - codecs and sealed blocks. Part of leafpress.hpp. */
#ifndef LEAFPRESS_CODEC_HPP
#define LEAFPRESS_CODEC_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "dictionary.hpp"

namespace leafpress {

/// See lp_codec. Blocks of compress() say nothing of themselves; those of seal() say all.
class Codec {
public:
    explicit Codec(const std::string &name) {
        lp_codec *made;
        detail::check(lp_codec_open(name.c_str(), &made));
        handle_.reset(made);
    }

    std::string compress(std::string_view raw, const Dictionary *dictionary = nullptr) const {
        return made(lp_compress_bound(raw.size()), [&](void *buffer, std::size_t capacity, std::size_t *len) {
            return lp_compress(get(), of(dictionary), raw.data(), raw.size(), buffer, capacity, len);
        });
    }

    std::string decompress(std::string_view block, std::size_t raw_len, const Dictionary *dictionary = nullptr) const {
        std::string raw(raw_len, '\0');
        detail::check(lp_decompress(get(), of(dictionary), block.data(), block.size(), raw.data(), raw_len));
        return raw;
    }

    std::string seal(std::string_view raw, const Dictionary *dictionary = nullptr) const {
        return made(lp_seal_bound(raw.size()), [&](void *buffer, std::size_t capacity, std::size_t *len) {
            return lp_seal(get(), of(dictionary), raw.data(), raw.size(), buffer, capacity, len);
        });
    }

    const lp_codec *get() const noexcept { return handle_.get(); }

private:
    static const lp_dictionary *of(const Dictionary *dictionary) {
        return dictionary == nullptr ? nullptr : dictionary->get();
    }

    template <class Make> static std::string made(std::size_t capacity, Make &&make) {
        std::string buffer(capacity, '\0');
        std::size_t len = 0;
        detail::check(make(buffer.data(), buffer.size(), &len));
        buffer.resize(len);
        return buffer;
    }

    detail::Handle<lp_codec, lp_codec_free> handle_;
};

/// Returns the raw bytes of a sealed block of any codec, at most most_bytes. The dictionaries are those that it may
/// need.
inline std::string unseal(std::string_view sealed, std::size_t most_bytes,
                          std::initializer_list<const Dictionary *> dictionaries = {}) {
    std::vector<const lp_dictionary *> handles;
    for (const Dictionary *dictionary : dictionaries)
        handles.push_back(dictionary->get());
    std::size_t len = 0;
    detail::check(lp_unseal(sealed.data(), sealed.size(), handles.data(), handles.size(), nullptr, 0, &len));
    if (len > most_bytes)
        throw Error(LP_TOO_LONG, "the sealed block is of more bytes than are allowed");
    std::string raw(len, '\0');
    // NULL would request only the length.
    char none;
    void *buffer = len == 0 ? &none : raw.data();
    detail::check(
        lp_unseal(sealed.data(), sealed.size(), handles.data(), handles.size(), buffer, len, &len));
    return raw;
}

} // namespace leafpress

#endif
