/* Leafpress for programs that load libleafpress_rocksdb.so next to RocksDB. */
#ifndef LEAFPRESS_ROCKSDB_H
#define LEAFPRESS_ROCKSDB_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `leafpress` known to RocksDB's options strings and readers. To be called before the first database is opened; more
 * than once does no harm. 0 for success; otherwise leafpress_rocksdb_error() says why. */
int leafpress_rocksdb_register(void);

/* Why leafpress_rocksdb_register() failed; empty if it did not. It stays valid. */
const char* leafpress_rocksdb_error(void);

/* What compression did in this process, one `name COUNT : n` a line, as Statistics::ToString has it. To be given to
 * leafpress_rocksdb_free(); NULL without memory. */
char* leafpress_rocksdb_statistics(void);

/* Frees text that leafpress_rocksdb_statistics() returned; NULL does nothing. */
void leafpress_rocksdb_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
