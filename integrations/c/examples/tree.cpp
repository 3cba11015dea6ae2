// An ordered map that stays compressed, in C++17.
//
//   c++ -std=c++17 tree.cpp $(pkg-config --cflags --libs leafpress) -o tree && ./tree
#include <iostream>
#include <leafpress.hpp>
#include <string>

int main() try {
    leafpress::Tree tree(leafpress::Options{{"codec", "lz4"}});
    tree.insert("apple", "red");
    tree.insert("banana", "yellow");
    tree.insert("cherry", "red");
    if (auto colour = tree.get("apple"))
        std::cout << "apples are " << *colour << "\n";

    // A counter that any number of threads may raise.
    for (int sold = 0; sold < 3; sold++)
        tree.update("sold", [](std::optional<std::string> old) { return std::to_string(std::stoi(old.value_or("0")) + 1); });

    for (auto [fruit, colour] : tree.range("a", "d"))
        std::cout << fruit << ": " << colour << "\n";
    std::cout << "sold: " << *tree.get("sold") << ", records: " << tree.size() << "\n";
} catch (const leafpress::Error &error) {
    std::cerr << lp_status_name(error.status()) << ": " << error.what() << "\n";
    return 1;
}
