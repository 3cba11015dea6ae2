/* leafpress/options.hpp - options by name. Part of leafpress.hpp. */
#ifndef LEAFPRESS_OPTIONS_HPP
#define LEAFPRESS_OPTIONS_HPP

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "dictionary.hpp"

namespace leafpress {

/// See lp_options_set().
class Options {
public:
    Options() {
        lp_options *made;
        detail::check(lp_options_new(&made));
        handle_.reset(made);
    }

    Options(std::initializer_list<std::pair<const char *, std::string>> settings) : Options() {
        for (const auto &setting : settings)
            set(setting.first, setting.second);
    }

    Options &set(const char *name, const std::string &value) {
        detail::check(lp_options_set(handle_.get(), name, value.c_str()));
        return *this;
    }

    Options &set(const char *name, std::uint64_t value) {
        detail::check(lp_options_set_number(handle_.get(), name, value));
        return *this;
    }

    Options &dictionary(const Dictionary &dictionary) {
        detail::check(lp_options_set_dictionary(handle_.get(), dictionary.get()));
        return *this;
    }

    const lp_options *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<lp_options, lp_options_free> handle_;
};

} // namespace leafpress

#endif
