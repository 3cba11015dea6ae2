/* leafpress/options.hpp - options by name. Part of leafpress.hpp. */
#ifndef LEAFPRESS_OPTIONS_HPP
#define LEAFPRESS_OPTIONS_HPP

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
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

    /// What an option is set to: text, a whole number, true or false.
    class Value {
    public:
        Value(const char *text) : text_(text) {}
        Value(std::string text) : text_(std::move(text)) {}
        Value(std::string_view text) : text_(text) {}
        template <class Number, std::enable_if_t<std::is_integral_v<Number>, int> = 0>
        Value(Number number) : text_(written(number)) {}

        const char *text() const noexcept { return text_.c_str(); }

    private:
        static std::string written(bool flag) { return flag ? "true" : "false"; }
        template <class Number> static std::string written(Number number) { return std::to_string(number); }

        std::string text_;
    };

    Options(std::initializer_list<std::pair<const char *, Value>> settings) : Options() {
        for (const auto &setting : settings)
            set(setting.first, setting.second);
    }

    Options &set(const char *name, const Value &value) {
        detail::check(lp_options_set(handle_.get(), name, value.text()));
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
