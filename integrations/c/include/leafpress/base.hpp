/* leafpress/base.hpp - errors, views, callbacks. Part of leafpress.hpp. */
#ifndef LEAFPRESS_BASE_HPP
#define LEAFPRESS_BASE_HPP

#include <cstddef>
#include <deque>
#include <exception>
#include <iterator>
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

/// A place for bytes where NULL would mean something else: an open end of a range, a request for the length alone.
inline const char *place(std::string_view view) noexcept { return view.data() == nullptr ? "" : view.data(); }

inline lp_bytes bytes(std::string_view view) { return lp_bytes{place(view), view.size()}; }

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

/// Whether what an iterator refers to outlives a step of it. An iterator that makes its elements, or keeps one inside,
/// is an input iterator.
template <class Iterator>
inline constexpr bool refers = std::is_lvalue_reference_v<decltype(*std::declval<Iterator &>())> &&
                               std::is_base_of_v<std::forward_iterator_tag,
                                                 typename std::iterator_traits<Iterator>::iterator_category>;

/// Whether the bytes of a value are borrowed.
template <class T>
inline constexpr bool is_view =
    std::is_same_v<T, std::string_view> || std::is_same_v<T, const char *> || std::is_same_v<T, char *>;

/// Keys as C takes them, of anything that has a begin and an end. Elements that end with a step of the iterator are
/// copied.
class List {
public:
    template <class Keys> explicit List(Keys &&keys) {
        using std::begin, std::end;
        auto at = begin(keys);
        const auto last = end(keys);
        using Iterator = decltype(at);
        if constexpr (refers<Iterator> || is_view<std::decay_t<decltype(*at)>>) {
            for (; at != last; ++at)
                listed_.push_back(bytes(std::string_view(*at)));
        } else {
            // A deque never moves its elements.
            for (; at != last; ++at) {
                auto &&key = *at;
                listed_.push_back(bytes(kept_.emplace_back(std::string_view(key))));
            }
        }
    }

    List(const List &) = delete;
    List &operator=(const List &) = delete;

    const lp_bytes *data() const noexcept { return listed_.data(); }
    std::size_t size() const noexcept { return listed_.size(); }

private:
    std::deque<std::string> kept_;
    std::vector<lp_bytes> listed_;
};

} // namespace detail

} // namespace leafpress

#endif
