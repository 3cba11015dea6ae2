//! One format: every engine of the deflate family reads the blocks of every other, with a window of 4 KiB.

use crate::support::{engines, sample};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

#[test]
fn every_engine_reads_every_other() {
    let family: Vec<_> = engines()
        .into_iter()
        .filter(|e| ["deflate", "zlib", "qpl"].contains(&e.codec().family()))
        .collect();
    for size in [0, 1, 100, 1000, 4096, 5000, 16_384, 70_000] {
        for kind in 0..4 {
            let raw = sample(kind, size, 11);
            for writer in &family {
                let mut block = Vec::new();
                writer.compress(&raw, None, &mut block).unwrap();
                assert!(
                    inflates_with_small_window(&block, &raw),
                    "{} size {size} kind {kind}",
                    writer.codec()
                );
                for reader in &family {
                    let mut back = vec![0; size];
                    let result = reader.decompress(&block, None, &mut back);
                    assert!(result.is_ok(), "{} to {}: {result:?}", writer.codec(), reader.codec());
                    assert!(
                        back == raw,
                        "{} to {} size {size} kind {kind}",
                        writer.codec(),
                        reader.codec()
                    );
                }
            }
        }
    }
}

/// Inflates through a circular buffer of 4 KiB, which bounds the distance of matches.
fn inflates_with_small_window(mut block: &[u8], raw: &[u8]) -> bool {
    let mut inflate = DecompressorOxide::new();
    let mut window = [0; 4096];
    let mut back = Vec::new();
    loop {
        let at = back.len() % window.len();
        let (status, read, written) = decompress(&mut inflate, block, &mut window, at, 0);
        block = &block[read..];
        back.extend_from_slice(&window[at..at + written]);
        match status {
            TINFLStatus::Done => return back == raw && block.is_empty(),
            TINFLStatus::HasMoreOutput => {}
            _ => return false,
        }
    }
}

/// The check above can fail: a match at a distance of more than 4 KiB does not pass it.
#[test]
fn a_larger_window_is_noticed() {
    let mut raw = sample(0, 9000, 1);
    raw.extend_from_within(100..2000);
    let mut stream = zlib_rs::Deflate::new(6, false, 15);
    let mut block = vec![0; 20_000];
    stream
        .compress(&raw, &mut block, zlib_rs::DeflateFlush::Finish)
        .unwrap();
    block.truncate(stream.total_out() as usize);
    assert!(block.len() < raw.len() - 1000);
    assert!(!inflates_with_small_window(&block, &raw));
}
