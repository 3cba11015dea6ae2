/* leafpress/tree.hpp - trees and cursors. Part of leafpress.hpp. */
#ifndef LEAFPRESS_TREE_HPP
#define LEAFPRESS_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "options.hpp"

namespace leafpress {

/// A place in a tree: see lp_tree_cursor. `for (Record record : tree.range("a", "b"))` goes through it; each record is
/// valid until the next.
class Cursor {
public:
    explicit Cursor(lp_tree_cursor *owned) : handle_(owned) {}

    bool first() { return detail::done(lp_tree_cursor_first(handle_.get())); }
    bool last() { return detail::done(lp_tree_cursor_last(handle_.get())); }
    bool next() { return detail::done(lp_tree_cursor_next(handle_.get())); }
    bool prev() { return detail::done(lp_tree_cursor_prev(handle_.get())); }

    bool seek(std::string_view key) { return detail::done(lp_tree_cursor_seek(handle_.get(), key.data(), key.size())); }

    bool seek_back(std::string_view key) {
        return detail::done(lp_tree_cursor_seek_back(handle_.get(), key.data(), key.size()));
    }

    /// Throws LP_NOT_FOUND where it is at no record.
    Record record() const {
        lp_bytes key, value;
        lp_status status = lp_tree_cursor_record(handle_.get(), &key, &value);
        if (status != LP_OK)
            throw Error(status, lp_last_error());
        return Record{detail::view(key), detail::view(value)};
    }

    /// Goes through the records once. There is one place for all iterators of a cursor.
    class Iterator {
        /// What the arrow of an iterator needs to point at.
        struct Arrow {
            Record record;
            const Record *operator->() const noexcept { return &record; }
        };

    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Record;
        using difference_type = std::ptrdiff_t;
        using pointer = Arrow;
        using reference = Record;

        Iterator() = default;
        explicit Iterator(Cursor *cursor) : cursor_(cursor) {}

        Record operator*() const { return cursor_->record(); }
        Arrow operator->() const { return Arrow{cursor_->record()}; }

        Iterator &operator++() {
            if (!cursor_->next())
                cursor_ = nullptr;
            return *this;
        }

        /// Returns nothing: the step ends the record.
        void operator++(int) { ++*this; }

        bool operator==(const Iterator &other) const noexcept { return cursor_ == other.cursor_; }
        bool operator!=(const Iterator &other) const noexcept { return cursor_ != other.cursor_; }

    private:
        /// None at the end.
        Cursor *cursor_ = nullptr;
    };

    Iterator begin() { return Iterator(first() ? this : nullptr); }
    Iterator end() { return Iterator(nullptr); }

private:
    detail::Handle<lp_tree_cursor, lp_tree_cursor_free> handle_;
};

namespace detail {

/// The pairs of key and value between two iterators, in the form that lp_tree_load() requires.
template <class Iterator> struct Source {
    using Pair = std::decay_t<decltype(*std::declval<Iterator &>())>;

    Iterator at, end;
    std::exception_ptr thrown = nullptr;
    bool is_first = true;
    /// A pair that the iterator makes.
    std::optional<Pair> made = std::nullopt;

    const auto &record() {
        if constexpr (std::is_lvalue_reference_v<decltype(*at)>)
            return *at;
        else
            return made.emplace(*at);
    }

    static int next(void *self, lp_bytes *key, lp_bytes *value) {
        auto &source = *static_cast<Source *>(self);
        try {
            if (!source.is_first)
                ++source.at;
            source.is_first = false;
            if (source.at == source.end)
                return 0;
            const auto &record = source.record();
            *key = bytes(std::string_view(record.first));
            *value = bytes(std::string_view(record.second));
            return 1;
        } catch (...) {
            source.thrown = std::current_exception();
            return -1;
        }
    }
};

} // namespace detail

/// See lp_tree.
class Tree {
public:
    Tree() : Tree(nullptr) {}
    explicit Tree(const Options &options) : Tree(options.get()) {}

    void insert(std::string_view key, std::string_view value) {
        detail::check(lp_tree_insert(get(), key.data(), key.size(), value.data(), value.size()));
    }

    /// Whether it inserted.
    bool insert_if_absent(std::string_view key, std::string_view value) {
        return detail::done(lp_tree_insert_if_absent(get(), key.data(), key.size(), value.data(), value.size()));
    }

    /// Whether the key was there.
    bool update_if_present(std::string_view key, std::string_view value) {
        return detail::done(lp_tree_update_if_present(get(), key.data(), key.size(), value.data(), value.size()));
    }

    std::optional<std::string> get(std::string_view key) const {
        return detail::copy([&](auto read, void *context) {
            return lp_tree_read(get(), key.data(), key.size(), read, context);
        });
    }

    /// Shows the value to a callable; whether it was there.
    template <class F> bool read(std::string_view key, F &&function) const {
        detail::Callback callback{function};
        auto status = lp_tree_read(get(), key.data(), key.size(), &decltype(callback)::value, &callback);
        return callback.end(status) != LP_NOT_FOUND;
    }

    bool contains(std::string_view key) const { return detail::done(lp_tree_contains(get(), key.data(), key.size())); }

    /// Whether it was there.
    bool remove(std::string_view key) { return detail::done(lp_tree_remove(get(), key.data(), key.size())); }

    std::optional<std::string> take(std::string_view key) {
        return detail::copy([&](auto read, void *context) {
            return lp_tree_take(get(), key.data(), key.size(), read, context);
        });
    }

    /// The value that the key had.
    std::optional<std::string> swap(std::string_view key, std::string_view value) {
        return detail::copy([&](auto read, void *context) {
            return lp_tree_swap(get(), key.data(), key.size(), value.data(), value.size(), read, context);
        });
    }

    /// Replaces the value if it is the expected one; returns whether it did. std::nullopt stands for an absent record.
    bool compare_and_swap(std::string_view key, std::optional<std::string_view> expected,
                          std::optional<std::string_view> value) {
        lp_bytes old = detail::bytes(expected.value_or("")), now = detail::bytes(value.value_or(""));
        return detail::done(lp_tree_compare_and_swap(get(), key.data(), key.size(), expected ? &old : nullptr,
                                                     value ? &now : nullptr));
    }

    /// Has a callable make a new value of the old one (std::optional<std::string>, both), atomically: it is called
    /// again if another thread was in between.
    template <class F> void update(std::string_view key, F &&make) {
        for (;;) {
            std::optional<std::string> old = get(key);
            std::optional<std::string> made = make(old);
            if (compare_and_swap(key, old, made))
                return;
        }
    }

    std::optional<std::pair<std::string, std::string>> first() const {
        return detail::copy_record([&](auto read, void *context) { return lp_tree_first(get(), read, context); });
    }

    std::optional<std::pair<std::string, std::string>> last() const {
        return detail::copy_record([&](auto read, void *context) { return lp_tree_last(get(), read, context); });
    }

    std::optional<std::pair<std::string, std::string>> pop_first() {
        return detail::copy_record([&](auto read, void *context) { return lp_tree_pop_first(get(), read, context); });
    }

    std::optional<std::pair<std::string, std::string>> pop_last() {
        return detail::copy_record([&](auto read, void *context) { return lp_tree_pop_last(get(), read, context); });
    }

    /// Shows the index in keys and the std::optional<std::string_view> value of each.
    template <class Keys, class F> void get_many(Keys &&keys, F &&function) const {
        const detail::List listed(keys);
        detail::Callback callback{function};
        callback.end(
            lp_tree_get_many(get(), listed.data(), listed.size(), &decltype(callback)::found, &callback));
    }

    /// Inserts what is between two iterators over pairs of key and value; how many keys were new. See lp_tree_load().
    template <class Iterator> std::uint64_t load(Iterator begin, Iterator end) {
        detail::Source<Iterator> source{begin, end};
        std::uint64_t inserted = 0;
        auto status = lp_tree_load(get(), &source.next, &source, &inserted);
        if (source.thrown)
            std::rethrow_exception(source.thrown);
        detail::check(status);
        return inserted;
    }

    /// A cursor over all records, or from one key to before another.
    Cursor range(std::optional<std::string_view> from = std::nullopt,
                 std::optional<std::string_view> to = std::nullopt) const {
        // NULL is an open end.
        auto data = [](const std::optional<std::string_view> &key) { return key ? detail::place(*key) : nullptr; };
        lp_tree_cursor *made;
        detail::check(lp_tree_cursor_open(get(), data(from), from ? from->size() : 0, data(to), to ? to->size() : 0,
                                          &made));
        return Cursor(made);
    }

    /// Shows each Record whose key begins with prefix.
    template <class F> void scan_prefix(std::string_view prefix, F &&function) const {
        detail::Callback callback{function};
        callback.end(
            lp_tree_scan_prefix(get(), prefix.data(), prefix.size(), &decltype(callback)::record, &callback));
    }

    /// How many there were from one key to before another.
    std::uint64_t remove_range(std::string_view from, std::string_view to) {
        std::uint64_t removed = 0;
        detail::check(lp_tree_remove_range(get(), detail::place(from), from.size(), detail::place(to), to.size(),
                                           &removed));
        return removed;
    }

    std::uint64_t size() const {
        std::uint64_t records;
        detail::check(lp_tree_len(get(), &records));
        return records;
    }

    /// How many there are from one key to before another.
    std::uint64_t count(std::string_view from, std::string_view to) const {
        std::uint64_t records = 0;
        detail::check(lp_tree_count(get(), detail::place(from), from.size(), detail::place(to), to.size(), &records));
        return records;
    }

    bool empty() const { return size() == 0; }
    void clear() { detail::check(lp_tree_clear(get())); }
    void settle() { detail::check(lp_tree_settle(get())); }
    void compact() { detail::check(lp_tree_compact(get())); }
    /// Whether it was better.
    bool train() { return detail::done(lp_tree_train(get())); }
    void validate() const { detail::check(lp_tree_validate(get())); }

    std::optional<Dictionary> dictionary() const {
        lp_dictionary *made;
        if (!detail::done(lp_tree_dictionary(get(), &made)))
            return std::nullopt;
        return Dictionary(made);
    }

    lp_tree_stats stats() const {
        lp_tree_stats stats;
        stats.struct_size = sizeof stats;
        detail::check(lp_tree_get_stats(get(), &stats));
        return stats;
    }

    lp_tree *get() const noexcept { return handle_.get(); }

private:
    explicit Tree(const lp_options *options) {
        lp_tree *made;
        detail::check(lp_tree_open(options, &made));
        handle_.reset(made);
    }

    detail::Handle<lp_tree, lp_tree_free> handle_;
};

} // namespace leafpress

#endif
