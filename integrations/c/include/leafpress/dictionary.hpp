/* leafpress/dictionary.hpp - dictionaries. Part of leafpress.hpp. */
#ifndef LEAFPRESS_DICTIONARY_HPP
#define LEAFPRESS_DICTIONARY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base.hpp"

namespace leafpress {

/// See lp_dictionary.
class Dictionary {
public:
    Dictionary(std::uint32_t id, std::string_view content) {
        lp_dictionary *made;
        detail::check(lp_dictionary_new(id, content.data(), content.size(), &made));
        handle_.reset(made);
    }

    explicit Dictionary(lp_dictionary *owned) : handle_(owned) {}

    /// Of samples: anything with a begin and an end, of what is a std::string_view.
    template <class Samples>
    static Dictionary train(const std::string &codec, Samples &&samples, std::size_t max_bytes) {
        const detail::List listed(samples);
        lp_dictionary *made;
        detail::check(lp_dictionary_train(codec.c_str(), listed.data(), listed.size(), max_bytes, &made));
        return Dictionary(made);
    }

    std::uint32_t id() const {
        std::uint32_t id;
        detail::check(lp_dictionary_content(get(), &id, nullptr));
        return id;
    }

    /// Valid while the dictionary is.
    std::string_view content() const {
        lp_bytes content;
        detail::check(lp_dictionary_content(get(), nullptr, &content));
        return detail::view(content);
    }

    const lp_dictionary *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<lp_dictionary, lp_dictionary_free> handle_;
};

} // namespace leafpress

#endif
