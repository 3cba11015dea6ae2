// In the place of RocksDB's own: a version that no library was built for.
#include <string>

namespace rocksdb {
std::string GetRocksVersionAsString(bool) { return "9.99"; }
}  // namespace rocksdb
