/*
 * leafpress.hpp - Leafpress for C++17: handles that free themselves, views, optionals, exceptions.
 *
 * Apache-2.0 or MIT, at your option.
 *
 * It is all in headers, over leafpress.h, which says what the functions do. Keys and values are
 * std::string_view, which need not be text. What is copied comes as std::string; functions that take a callable
 * show the bytes without a copy, until it returns. A call that fails throws leafpress::Error. A callable may
 * throw too: the exception propagates to the caller. One that returns bool goes on while it returns true.
 */
#ifndef LEAFPRESS_HPP
#define LEAFPRESS_HPP

#include "leafpress/base.hpp"
#include "leafpress/cache.hpp"
#include "leafpress/codec.hpp"
#include "leafpress/dictionary.hpp"
#include "leafpress/options.hpp"
#include "leafpress/tree.hpp"

#if defined(__has_include)
#if __has_include(<span>) && __cplusplus >= 202002L
#include <span>
#endif
#endif

#if defined(__cpp_lib_span)
namespace leafpress {

/// Bytes as a key or a value.
inline std::string_view view(std::span<const std::byte> bytes) { return detail::view(bytes.data(), bytes.size()); }

} // namespace leafpress
#endif

#endif
