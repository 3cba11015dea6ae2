/* leafpress/base.hpp - errors, views, callbacks. Part of leafpress.hpp. */
#ifndef LEAFPRESS_BASE_HPP
#define LEAFPRESS_BASE_HPP

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../leafpress.h"

namespace leafpress {

/// What a call that failed throws.
class Error : public std::runtime_error {
public:
    Error(lp_status status, const char *message) : std::runtime_error(message), status_(status) {}

    lp_status status() const noexcept { return status_; }

private:
    lp_status status_;
};

/// A key and its value, both views.
struct Record {
    std::string_view key;
    std::string_view value;
};

namespace detail {

inline lp_status check(lp_status status) {
    switch (status) {
    case LP_OK:
    case LP_NOT_FOUND:
    case LP_EXISTS:
    case LP_MISMATCH:
    case LP_STOPPED:
        return status;
    default:
        throw Error(status, lp_last_error());
    }
}

/// Whether the call did it: false for LP_NOT_FOUND and the like.
inline bool done(lp_status status) { return check(status) == LP_OK; }

inline std::string_view view(const void *data, std::size_t len) {
    return len == 0 ? std::string_view() : std::string_view(static_cast<const char *>(data), len);
}

inline std::string_view view(lp_bytes bytes) { return view(bytes.data, bytes.len); }

inline lp_bytes bytes(std::string_view view) { return lp_bytes{view.data(), view.size()}; }

template <auto Free> struct Freed {
    template <class T> void operator()(T *handle) const noexcept { Free(handle); }
};

template <class T, auto Free> using Handle = std::unique_ptr<T, Freed<Free>>;

/// A callable as C calls it back. What it throws waits until the library has returned.
template <class F> struct Callback {
    F &function;
    std::exception_ptr thrown = nullptr;

    template <class... Args> int call(Args &&...args) noexcept {
        try {
            if constexpr (std::is_convertible_v<std::invoke_result_t<F &, Args...>, bool>) {
                return function(std::forward<Args>(args)...) ? 0 : 1;
            } else {
                function(std::forward<Args>(args)...);
                return 0;
            }
        } catch (...) {
            thrown = std::current_exception();
            return 1;
        }
    }

    static int value(void *self, const void *data, std::size_t len) {
        return static_cast<Callback *>(self)->call(view(data, len));
    }

    static int record(void *self, const void *key, std::size_t key_len, const void *data, std::size_t len) {
        return static_cast<Callback *>(self)->call(Record{view(key, key_len), view(data, len)});
    }

    static int found(void *self, std::size_t index, const void *data, std::size_t len) {
        auto value = data == nullptr ? std::nullopt : std::optional<std::string_view>(view(data, len));
        return static_cast<Callback *>(self)->call(index, value);
    }

    lp_status end(lp_status status) {
        if (thrown)
            std::rethrow_exception(thrown);
        return check(status);
    }
};

template <class F> Callback(F &) -> Callback<F>;

/// The one value that a call shows, copied.
template <class Call> std::optional<std::string> copy(Call &&call) {
    std::optional<std::string> copied;
    auto keep = [&](std::string_view value) { copied.emplace(value); };
    Callback callback{keep};
    callback.end(call(&decltype(callback)::value, &callback));
    return copied;
}

/// The one record that a call shows, copied.
template <class Call> std::optional<std::pair<std::string, std::string>> copy_record(Call &&call) {
    std::optional<std::pair<std::string, std::string>> copied;
    auto keep = [&](Record record) { copied.emplace(record.key, record.value); };
    Callback callback{keep};
    callback.end(call(&decltype(callback)::record, &callback));
    return copied;
}

/// Keys as C takes them, of anything that has a begin and an end.
template <class Keys> std::vector<lp_bytes> list(const Keys &keys) {
    std::vector<lp_bytes> listed;
    for (const auto &key : keys)
        listed.push_back(bytes(std::string_view(key)));
    return listed;
}

} // namespace detail

} // namespace leafpress

#endif
