//! A database that one deflate codec wrote opens with every other.

use rocksdb::DB;

use crate::support::{self, check, compressions, fill};

/// Returns the family's codecs that can write here.
fn writers() -> Vec<&'static str> {
    let mut codecs = vec!["deflate:1", "deflate:12", "qpl:auto:dynamic", "qpl:auto:fixed"];
    if support::has_zlib() {
        codecs.push("zlib:6");
    }
    if support::has_qpl() {
        codecs.extend(["qpl:software:dynamic", "qpl:software:fixed"]);
    }
    codecs
}

#[test]
fn each_reads_what_the_others_wrote() {
    for block_bytes in [4096, 16_384, 262_144] {
        let with = |codec: &str| {
            support::options(&format!(
                "compression_manager={{id=leafpress;codec={codec}}};\
                 block_based_table_factory={{block_size={block_bytes};no_block_cache=true}}"
            ))
        };
        for writer in writers() {
            let directory = tempfile::tempdir().unwrap();
            {
                let db = DB::open(&with(writer), directory.path()).unwrap();
                fill(&db, 0..3000);
                let found = compressions(&db);
                assert_eq!(
                    (found[0].types.as_str(), found[0].compressor.as_str()),
                    ("C4", format!("leafpress {writer}").as_str())
                );
            }
            for reader in writers().into_iter().chain(["lz4"]) {
                check(&DB::open(&with(reader), directory.path()).unwrap(), 0..3000);
            }
        }
    }
}
