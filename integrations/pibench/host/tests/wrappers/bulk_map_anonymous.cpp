// A wrapper whose methods have no names that the loader sees: see bulk_map.cpp.
#define ANONYMOUS
#define OVERRIDES_BULK_LOAD
#include "bulk_map.cpp"
