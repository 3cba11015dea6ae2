//! A page pool over a file: reading, updating, flushing, and statistics.

use leafpress::store::FileStore;
use leafpress_pages::PagePool;

const PAGE_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pages");
    let pages: Vec<u8> = (0..4000_u32)
        .flat_map(|page| format!("page {page:06} ").repeat(PAGE_BYTES / 12 + 1).into_bytes()[..PAGE_BYTES].to_vec())
        .collect();
    std::fs::write(&path, pages)?;

    // 16 MB of pages in 2 MB of memory.
    let pool = PagePool::builder(FileStore::open(&path, PAGE_BYTES)?)
        .memory(2 << 20)
        .codec("lz4".parse()?)
        .build()?;
    for round in 0..5 {
        for page in 0..4000 {
            let bytes = pool.get(page)?;
            assert!(round > 0 || bytes.starts_with(format!("page {page:06}").as_bytes()));
        }
        pool.write(round, &[round as u8; PAGE_BYTES])?;
    }
    pool.flush()?;

    let stats = pool.stats();
    println!(
        "{} raw hits, {} compressed hits, {} misses; {} raw and {} compressed pages in {} of {} bytes, {:.0}% meant \
         for raw ones",
        stats.raw_hits,
        stats.compressed_hits,
        stats.misses,
        stats.raw_pages,
        stats.compressed_pages,
        stats.bytes_held,
        stats.budget_bytes,
        stats.raw_percent
    );
    Ok(())
}
