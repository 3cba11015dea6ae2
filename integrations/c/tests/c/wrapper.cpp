// The C++ wrapper: what it returns, what it throws, what it frees.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#if __has_include(<ranges>) && __cplusplus >= 202002L
#include <ranges>
#endif
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <leafpress.hpp>

using namespace std::string_view_literals;
using leafpress::Record;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);      \
            std::abort();                                                                    \
        }                                                                                    \
    } while (0)

// The call throws an error of this status, with this in its message.
#define THROWS(expected, text, call)                                                         \
    do {                                                                                     \
        bool has_thrown = false;                                                             \
        try {                                                                                \
            (void)(call);                                                                    \
        } catch (const leafpress::Error &error) {                                            \
            has_thrown = true;                                                               \
            CHECK(error.status() == (expected));                                             \
            CHECK(std::string(error.what()).find(text) != std::string::npos);                \
        }                                                                                    \
        CHECK(has_thrown);                                                                   \
    } while (0)

static void tree() {
    leafpress::Tree tree(leafpress::Options{{"codec", "zstd:3"}, {"shards", "2"}});
    CHECK(tree.empty() && !tree.get("a") && !tree.first() && !tree.pop_last());
    tree.insert("a", "1");
    tree.insert("b", "zero\0byte"sv);
    tree.insert("", "");
    CHECK(tree.get("b") == std::string("zero\0byte", 9) && tree.get("")->empty());
    CHECK(!tree.insert_if_absent("a", "2") && tree.insert_if_absent("c", "3"));
    CHECK(tree.update_if_present("c", "4") && !tree.update_if_present("d", "4"));
    CHECK(tree.contains("c") && !tree.contains("d") && tree.size() == 4);
    CHECK(tree.take("c") == "4" && !tree.take("c") && !tree.remove("c") && tree.remove(""));
    CHECK(!tree.swap("s", "1") && tree.swap("s", "2") == "1");
    CHECK(!tree.compare_and_swap("s", "1", "3") && tree.compare_and_swap("s", "2", std::nullopt));
    CHECK(tree.compare_and_swap("s", std::nullopt, "") && tree.compare_and_swap("s", "", std::nullopt));
    for (int round = 0; round < 10; round++)
        tree.update("n", [](std::optional<std::string> old) { return std::to_string(std::stoi(old.value_or("0")) + 1); });
    CHECK(tree.take("n") == "10");
    CHECK(tree.first()->first == "a" && tree.last()->first == "b");
    CHECK(tree.pop_first()->second == "1" && tree.pop_last()->first == "b" && tree.empty());

    std::map<std::string, std::string> records;
    for (int number = 1000; number < 4000; number++)
        records["key " + std::to_string(number)] = "the value of record number " + std::to_string(number);
    CHECK(tree.load(records.begin(), records.end()) == records.size());
    auto expected = records.begin();
    for (Record record : tree.range()) {
        CHECK(record.key == expected->first && record.value == expected->second);
        ++expected;
    }
    CHECK(expected == records.end());
    auto range = tree.range("key 2", "key 2003");
    CHECK(std::distance(range.begin(), range.end()) == 3);
    CHECK(range.last() && range.record().key == "key 2002" && range.prev() && range.record().key == "key 2001");
    CHECK(range.seek_back("key 2000x") && range.record().key == "key 2000" && !range.prev());
    THROWS(LP_NOT_FOUND, "record", range.record());
    CHECK(tree.range("x").begin() == tree.range("x").end());
    CHECK(!tree.range(std::nullopt, "").first());

    int shown = 0;
    tree.scan_prefix("key 30", [&](Record) { return ++shown < 5; });
    CHECK(shown == 5);
    std::vector<std::string> keys{"key 1000", "none", "key 3999"};
    std::vector<bool> found;
    tree.get_many(keys, [&](std::size_t, std::optional<std::string_view> value) { found.push_back(value.has_value()); });
    CHECK((found == std::vector<bool>{true, false, true}));
    CHECK(tree.count("key 1", "key 2") == 1000 && tree.remove_range("key 1", "key 2") == 1000);
    tree.train();
    tree.settle();
    tree.compact();
    tree.validate();
    CHECK(tree.stats().records == 2000);
    // Whether one pays with so few records is the tree's to say.
    auto dictionary = tree.dictionary();
    CHECK(!dictionary || dictionary->id() == tree.stats().dictionary_id);
    tree.clear();
}

// Equal views are one key, wherever they point.
static void views_without_a_place() {
    leafpress::Tree tree;
    for (auto key : {"", "a", "b", "c"})
        tree.insert(key, "1");
    std::string_view none, empty = "";
    CHECK(none == empty && none.data() == nullptr);
    for (auto view : {none, empty}) {
        CHECK(tree.count("a", view) == 0 && tree.remove_range("a", view) == 0);
        CHECK(tree.count(view, "b") == 2 && tree.count(view, view) == 0 && tree.remove_range(view, view) == 0);
        CHECK(!tree.range("a", view).first() && tree.range(view, "a").first());
        CHECK(tree.get(view) == "1" && tree.contains(view) && tree.swap(view, view) == "1" && tree.get(view) == "");
        CHECK(tree.compare_and_swap(view, view, "1") && !tree.compare_and_swap(view, std::nullopt, view));
        CHECK(tree.size() == 4);
    }
    CHECK(leafpress::unseal(leafpress::Codec("lz4").seal(none), 10).empty());
    CHECK(tree.remove_range(none, "b") == 2 && tree.size() == 2);
}

// Makes keys on the heap, which are gone at the next step.
template <class Made> struct Maker {
    using iterator_category = std::input_iterator_tag;
    using value_type = Made;
    using difference_type = std::ptrdiff_t;
    using pointer = const Made *;
    using reference = Made;

    int number;
    Made operator*() const {
        auto key = "a key that is too long to be kept within a string " + std::to_string(number);
        if constexpr (std::is_same_v<Made, std::string>)
            return key;
        else
            return {key, key + "!"};
    }
    Maker &operator++() { return ++number, *this; }
    bool operator==(const Maker &other) const { return number == other.number; }
    bool operator!=(const Maker &other) const { return number != other.number; }
};

template <class Made> struct Makers {
    int count;
    Maker<Made> begin() const { return {0}; }
    Maker<Made> end() const { return {count}; }
};

static void keys_that_are_made() {
    using Pair = std::pair<std::string, std::string>;
    leafpress::Tree tree;
    leafpress::Cache cache;
    Makers<Pair> records{100};
    CHECK(tree.load(records.begin(), records.end()) == 100);
    for (int number = 0; number < 100; number++)
        cache.insert((*Maker<Pair>{number}).first, (*Maker<Pair>{number}).second);
    std::size_t found = 0;
    auto check = [&](std::size_t index, std::optional<std::string_view> value) {
        found += value == (*Maker<Pair>{int(index)}).second;
    };
    tree.get_many(Makers<std::string>{100}, check);
    cache.get_many(Makers<std::string>{100}, check);
    CHECK(found == 200);
    // One string inside of the iterator, anew for each element.
    std::istringstream text("apple pear a-word-that-is-too-long-to-be-kept-within-a-string");
    struct Words {
        std::istringstream &text;
        auto begin() const { return std::istream_iterator<std::string>(text); }
        auto end() const { return std::istream_iterator<std::string>(); }
    } words{text};
    tree.insert("pear", "green");
    std::vector<std::string> seen;
    tree.get_many(words, [&](std::size_t, std::optional<std::string_view> value) { seen.emplace_back(value.value_or("none")); });
    CHECK((seen == std::vector<std::string>{"none", "green", "none"}));
    const char *plain[] = {"pear", "none"};
    seen.clear();
    tree.get_many(plain, [&](std::size_t, std::optional<std::string_view> value) { seen.emplace_back(value.value_or("none")); });
    CHECK((seen == std::vector<std::string>{"green", "none"}));
}

static void cursors_are_ranges() {
    leafpress::Tree tree;
    for (auto key : {"a", "b", "c", "d"})
        tree.insert(key, std::string(key) + "!");
    auto cursor = tree.range("b");
    auto at = cursor.begin();
    CHECK(at->key == "b" && at->value == "b!" && leafpress::Cursor::Iterator() == cursor.end());
    at++;
    CHECK(at->key == "c" && (*at).value == "c!");
// Older Clangs do not compile the ranges of the GNU library.
#if defined(__cpp_lib_ranges) && __cpp_lib_ranges >= 202110L && (!defined(__clang__) || __clang_major__ >= 16)
    using Iterator = leafpress::Cursor::Iterator;
    static_assert(std::input_iterator<Iterator> && std::sentinel_for<Iterator, Iterator>);
    static_assert(std::ranges::input_range<leafpress::Cursor>);
    std::string keys;
    for (Record record : tree.range() | std::views::drop(1) | std::views::take(2))
        keys += record.key;
    CHECK(keys == "bc");
    auto made = std::views::iota(0, 3) | std::views::transform([](int number) { return std::string(1, char('a' + number)); });
    int found = 0;
    tree.get_many(made | std::views::filter([](const std::string &key) { return key != "b"; }),
                  [&](std::size_t, std::optional<std::string_view> value) { found += value.has_value(); });
    CHECK(found == 2);
#endif
}

static void options_take_text_and_numbers() {
    std::string codec = "zstd:3";
    leafpress::Options options{{"memory_bytes", 64 << 20}, {"codec", codec}, {"ttl_ms", 5000L}, {"name", "of a test"sv}};
    leafpress::Cache cache(options.set("time_to_idle_ms", "60000"));
    CHECK(cache.stats().memory_bytes == 64 << 20);
    THROWS(LP_INVALID_ARGUMENT, "-1", (leafpress::Options{{"memory_bytes", -1}}));
    THROWS(LP_INVALID_ARGUMENT, "disk_path", (leafpress::Cache(leafpress::Options{{"disk_recover_after_crash", true}})));
}

// Exceptions of callables go through; handles move and free themselves.
static void exceptions_and_moves() {
    leafpress::Tree tree;
    tree.insert("a", "1");
    struct Own {};
    auto fails = [&](auto &&call) {
        try {
            call();
        } catch (const Own &) {
            return true;
        }
        return false;
    };
    CHECK(fails([&] { tree.read("a", [](std::string_view) { throw Own(); }); }));
    CHECK(fails([&] { tree.scan_prefix("", [](Record) { throw Own(); }); }));
    CHECK(fails([&] { tree.update("a", [](auto) -> std::optional<std::string> { throw Own(); }); }));
    leafpress::Cache cache;
    CHECK(fails([&] { cache.get_or_load("a", [](std::string_view) -> std::optional<std::string> { throw Own(); }); }));
    THROWS(LP_TOO_LONG, "1025", tree.insert(std::string(1025, 'k'), ""));
    THROWS(LP_INVALID_ARGUMENT, "codek", leafpress::Options().set("codek", "lz4"));
    THROWS(LP_INVALID_ARGUMENT, "memory", leafpress::Cache(leafpress::Options().set("memory_bytes", 17)));
    leafpress::Tree other = std::move(tree);
    CHECK(other.get("a") == "1");
    // What was moved from has no tree.
    THROWS(LP_INVALID_ARGUMENT, "NULL", tree.size());
    tree = std::move(other);
    CHECK(tree.size() == 1);
}

static void cache() {
    using namespace std::chrono_literals;
    leafpress::Cache cache(leafpress::Options().set("memory_bytes", 8 << 20).set("name", "of a test"));
    cache.insert("a", "1");
    cache.insert("b", "2", 1h);
    THROWS(LP_INVALID_ARGUMENT, "1 ms", cache.insert("c", "3", 0ms));
    CHECK(cache.get("a") == "1" && !cache.get("c") && cache.contains("b") && cache.size() == 2);
    CHECK(cache.get_or_load("l", [](std::string_view key) { return std::optional(std::string(key) + "!"); }) == "l!");
    CHECK(cache.get("l") == "l!");
    CHECK(!cache.get_or_load("none", [](std::string_view) { return std::optional<std::string>(); }));
    std::set<std::string> keys;
    cache.scan_prefix("", [&](Record record) { keys.emplace(record.key); });
    CHECK((keys == std::set<std::string>{"a", "b", "l"}));
    int found = 0;
    cache.get_many(std::array{"a", "x"}, [&](std::size_t, std::optional<std::string_view> value) { found += value.has_value(); });
    CHECK(found == 1);
    CHECK(cache.read("a", [](std::string_view value) { CHECK(value == "1"); }) && !cache.read("x", [](auto) {}));
    CHECK(cache.swap("a", "3") == "1" && cache.compare_and_swap("a", "3", "4") && cache.take("a") == "4");
    CHECK(cache.remove("b") && !cache.remove("b"));
    cache.insert("b", "2");
    cache.invalidate("b");
    cache.invalidate("b");
    CHECK(!cache.contains("b"));
    leafpress::Cache::InsertOptions own;
    own.ttl = leafpress::Cache::InsertOptions::never;
    own.time_to_idle = 1h;
    own.tags = {"red", "green"};
    cache.insert("tagged", "5", own);
    own.ttl = -1ms;
    THROWS(LP_INVALID_ARGUMENT, "10 years", cache.insert("c", "3", own));
    cache.invalidate_tag("blue");
    CHECK(cache.get("tagged") == "5");
    cache.invalidate_tag("green");
    CHECK(!cache.contains("tagged"));
    cache.set_memory(16 << 20);
    cache.settle();
    cache.validate();
    CHECK(cache.stats().memory_bytes == 16 << 20 && cache.describe().find("memory") != std::string::npos);
    cache.clear();
    CHECK(cache.size() == 0);
    cache.close();
    THROWS(LP_INVALID_ARGUMENT, "NULL", cache.get("a"));
}

static void codec() {
    std::vector<std::string> samples;
    for (int number = 0; number < 300; number++)
        samples.push_back("{\"id\":" + std::to_string(number) + ",\"mail\":\"user" + std::to_string(number) + "@example.org\"}");
    auto dictionary = leafpress::Dictionary::train("zstd:3", samples, 2048);
    leafpress::Dictionary same(dictionary.id(), dictionary.content());
    leafpress::Codec codec("zstd:3");
    for (const std::string &raw : {samples[7], std::string(), std::string(5000, 'x')}) {
        auto block = codec.compress(raw, &dictionary);
        CHECK(codec.decompress(block, raw.size(), &same) == raw);
        auto sealed = codec.seal(raw, &dictionary);
        CHECK(leafpress::unseal(sealed, 5000, {&same}) == raw);
    }
    auto sealed = codec.seal(samples[7], &dictionary);
    THROWS(LP_UNKNOWN_DICTIONARY, "dictionary", leafpress::unseal(sealed, 5000));
    THROWS(LP_TOO_LONG, "bytes", leafpress::unseal(sealed, 5, {&same}));
    sealed.back() ^= 1;
    THROWS(LP_CORRUPT, "corrupt", leafpress::unseal(sealed, 5000, {&same}));
    THROWS(LP_INVALID_ARGUMENT, "gzip", leafpress::Codec("gzip"));
    leafpress::Tree tree(leafpress::Options().dictionary(dictionary));
    CHECK(tree.dictionary()->id() == dictionary.id());
#if defined(__cpp_lib_span)
    std::array<std::byte, 3> bytes{};
    tree.insert(leafpress::view(bytes), "zeroes");
    CHECK(tree.get("\0\0\0"sv) == "zeroes");
#endif
}

int main() {
    tree();
    views_without_a_place();
    keys_that_are_made();
    cursors_are_ranges();
    options_take_text_and_numbers();
    exceptions_and_moves();
    cache();
    codec();
    std::puts("8 groups of tests passed");
}
