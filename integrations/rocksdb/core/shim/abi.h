// What crosses between the Rust library and the shim (core/src/abi.rs): bytes that are lent, text that is given away,
// how a call went. Neither an exception nor a panic crosses with it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Bytes that stay their owner's.
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
