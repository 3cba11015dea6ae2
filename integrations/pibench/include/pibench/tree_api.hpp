// The binary interface between PiBench and the shared libraries it measures ("wrappers").
//
// A wrapper exports `create_tree`, which makes a tree from the options; the benchmark then calls the tree's virtual
// methods, from as many threads as it runs, and deletes the tree through its virtual destructor. The order of the
// members of `tree_options_t` and of the virtual methods of `tree_api` *is* the interface: never reorder them.
//
// Written for Leafpress from the published interface of PiBench (PVLDB 13(4), 2019).
#ifndef LEAFPRESS_PIBENCH_TREE_API_HPP
#define LEAFPRESS_PIBENCH_TREE_API_HPP

#include <cstddef>
#include <cstdint>
#include <string>

/// What a tree is made from. PiBench itself passes the members up to `num_threads`; a fork appends the three bytes
/// after it. A wrapper may read those only when it knows which benchmark loads it.
struct tree_options_t {
    /// Bytes of every key, prefix included.
    std::size_t key_size = 8;
    /// Bytes of every value.
    std::size_t value_size = 8;
    /// Where a persistent tree keeps its file; empty when it is to be in memory.
    std::string pool_path{};
    /// Bytes of that file.
    std::size_t pool_size = 0;
    /// Threads that will call the tree.
    std::size_t num_threads = 1;

    /// Fork only. Concurrency control: 0 one writer, 1 optimistic reads with write coupling, 2 optimistic lock
    /// coupling.
    std::uint8_t protocol = 0;
    /// Fork only. Clock: 0 optimistic, 1 synchronised, 3 free.
    std::uint8_t clock_type = 0;
    /// Fork only. Whether old versions are collected: 0 or 1.
    std::uint8_t gc_enabled = 0;
};

/// An ordered index. Every method may be called from many threads at once.
class tree_api {
  public:
    virtual ~tree_api() = default;

    /// Copies the key's value to `value_out`, which has room for `value_size` bytes; returns whether the key is there.
    virtual bool find(const char* key, std::size_t key_size, char* value_out) = 0;

    /// Adds a record; returns false, and changes nothing, when the key is there already.
    virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;

    /// Replaces a value; returns false when the key is not there.
    virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;

    /// Removes a record; returns whether it was there.
    virtual bool remove(const char* key, std::size_t key_size) = 0;

    /// Collects up to `count` records from the first key that is not below `key`, ascending; returns how many.
    /// `values_out` is set to them, `<key><value>` one after the other, in memory that the wrapper owns and that stays
    /// unchanged until the calling thread's next scan.
    virtual int scan(const char* key, std::size_t key_size, int count, char*& values_out) = 0;
};

/// Makes a tree, which the caller deletes; null when it cannot.
extern "C" tree_api* create_tree(const tree_options_t& options);

#endif
