// The types that the Rust library and the shim exchange (core/src/abi.rs): borrowed bytes, text whose ownership is
// transferred, and results of calls. Neither exceptions nor panics cross this boundary.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Borrowed bytes.
struct LeafpressView {
  const char* data;
  size_t len;
};

// Text, or other bytes, owned by the receiver, which frees them with leafpress_text_free.
struct LeafpressText {
  char* data;
  size_t len;
};

void leafpress_text_free(LeafpressText text);

// What a function that can fail returns; why it did stands in its LeafpressText.
enum LeafpressCode : int32_t {
  kLeafpressOk = 0,
  kLeafpressInvalidArgument = 1,
  kLeafpressCorruption = 2,
  kLeafpressNotSupported = 3,
  kLeafpressMemoryLimit = 4,
  kLeafpressIoError = 5,
};
}
