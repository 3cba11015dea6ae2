// Nothing that RocksDB calls may throw: it is not exception-safe. What every override of its classes does, it does in
// here.
//
// The Rust library throws nothing, and ends the process where it has no memory for the little that it cannot do
// without, so that it is the shim's own allocations, and RocksDB's below it, that are caught.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace leafpress {

namespace rocks = ROCKSDB_NAMESPACE;

// Runs `work` and gives what it gives, or `otherwise` when it throws.
template <typename R, typename Work>
R Guarded(R otherwise, Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    return otherwise;
  }
}

// Runs `work`, which may as well not be done.
template <typename Work>
void Attempt(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
  }
}

// A status with a message; without it where there is no memory for one.
template <typename Make>
rocks::Status Spoken(rocks::Status silent, Make&& make) noexcept {
  return Guarded(std::move(silent), std::forward<Make>(make));
}

// Runs `work` and gives its status, or that of the exception.
template <typename Work>
rocks::Status Guarded(Work&& work) noexcept {
  using rocks::Status;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Spoken(Status::MemoryLimit(), [] { return Status::MemoryLimit("leafpress: out of memory"); });
  } catch (const std::exception& error) {
    return Spoken(Status::Aborted(), [&] { return Status::Aborted("leafpress", error.what()); });
  } catch (...) {
    return Spoken(Status::Aborted(), [] { return Status::Aborted("leafpress: an exception that is none of C++'s own"); });
  }
}

}  // namespace leafpress
