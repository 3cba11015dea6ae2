// What the C++ shim and the Rust library call in each other. No exception and no panic crosses it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Defined in C++ (register.cc): makes the factories known to RocksDB. Null for success, else why not, which stays
// valid.
const char* leafpress_shim_register();

// Defined in C++ (check_options.cc): null when RocksDB takes every part of an options string, else why not; the text
// goes to leafpress_shim_text_free.
char* leafpress_shim_check_options(const char* text);
void leafpress_shim_text_free(char* text);
}
