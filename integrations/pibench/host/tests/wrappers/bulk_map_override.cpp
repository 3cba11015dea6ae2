// See bulk_map.cpp.
#define OVERRIDES_BULK_LOAD
#include "bulk_map.cpp"
