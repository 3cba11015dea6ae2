// See bulk_map.cpp.
#define WITHOUT_TLS_SETUP
#include "bulk_map.cpp"
