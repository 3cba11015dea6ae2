// A cache with a loader and records that expire, in C++17.
//
//   c++ -std=c++17 cache.cpp $(pkg-config --cflags --libs leafpress) -o cache && ./cache
#include <chrono>
#include <iostream>
#include <leafpress.hpp>
#include <string>

int main() try {
    using namespace std::chrono_literals;
    leafpress::Cache cache(leafpress::Options{{"memory_bytes", "64MiB"}, {"ttl_ms", "3600000"}});
    cache.insert("session:7", "open", 60s);

    // Of several threads that miss a key, one loads it. A std::nullopt is not kept.
    auto load = [](std::string_view key) -> std::optional<std::string> {
        std::cout << "loading " << key << "\n";
        if (key == "user:0")
            return std::nullopt;
        return "the record of " + std::string(key);
    };
    for (auto key : {"user:1", "user:1", "user:0"})
        std::cout << key << ": " << cache.get_or_load(key, load).value_or("(none)") << "\n";
    std::cout << cache.describe() << "\n";
} catch (const leafpress::Error &error) {
    std::cerr << lp_status_name(error.status()) << ": " << error.what() << "\n";
    return 1;
}
