// What the C++ shim and the Rust library call in each other. No exception and no panic crosses it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Defined in C++ (register.cc): makes the factories known to RocksDB; 0 for success.
int32_t leafpress_shim_register();
}
