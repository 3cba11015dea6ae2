//! Measures codecs on one-record and small frames with trained dictionaries: ratio and nanoseconds per call.
//!
//! `cargo run --release --example codec_table -- CODECS FRAME_BYTES DICTIONARY_KIB FILE...` where each of the first
//! three is a comma-separated list; frames are cut from the file's bytes. Times are the thread's CPU time, the minimum
//! of several passes.

use std::hint::black_box;

use leafpress::codec::{Dictionary, EngineOptions, Scratch};

const MEASURED_BYTES: usize = 6 << 20;
const PASSES: usize = 5;

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes of a `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [codecs, frames, dictionaries, files @ ..] = args.as_slice() else {
        return Err("usage: codec_table CODECS FRAME_BYTES DICTIONARY_KIB FILE...".into());
    };
    println!("| file | codec | frame | dict KiB | held KiB | ratio | compress ns | decode ns | decode 1/4 ns |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for file in files {
        let data = std::fs::read(file)?;
        for codec in codecs.split(',') {
            let codec: leafpress::Codec = codec.parse()?;
            let engine = codec.open(&EngineOptions::default())?;
            for frame in frames.split(',') {
                let frame: usize = frame.parse()?;
                let raws: Vec<&[u8]> = pick(&data, frame, MEASURED_BYTES / frame);
                for kib in dictionaries.split(',') {
                    let kib: usize = kib.parse()?;
                    let dictionary = if kib == 0 {
                        None
                    } else {
                        let samples = pick(&data, frame, (kib << 10) * 50 / frame);
                        Some(Dictionary::train(codec, &samples, kib << 10)?)
                    };
                    let dictionary = dictionary.as_ref();
                    let mut out = Vec::new();
                    let mut blocks = Vec::new();
                    let mut compress_ns = f64::MAX;
                    for _ in 0..PASSES {
                        out.clear();
                        blocks.clear();
                        let start = cpu_ns();
                        for raw in &raws {
                            let at = out.len();
                            engine.compress(raw, dictionary, &mut out)?;
                            blocks.push(at..out.len());
                        }
                        compress_ns = compress_ns.min((cpu_ns() - start) / raws.len() as f64);
                    }
                    let mut scratch = Scratch::default();
                    let mut decode = |needed: usize| -> Result<f64, leafpress::CodecError> {
                        let mut best = f64::MAX;
                        for _ in 0..PASSES {
                            let start = cpu_ns();
                            for block in &blocks {
                                black_box(engine.decode(
                                    &out[block.clone()],
                                    dictionary,
                                    frame,
                                    needed,
                                    &mut scratch,
                                )?);
                            }
                            best = best.min((cpu_ns() - start) / blocks.len() as f64);
                        }
                        Ok(best)
                    };
                    let (whole, quarter) = (decode(frame)?, decode(frame / 4)?);
                    println!(
                        "| {} | {codec} | {frame} | {kib} | {} | {:.2} | {compress_ns:.0} | {whole:.0} | {quarter:.0} \
                         |",
                        file.rsplit('/').next().unwrap_or(file),
                        dictionary.map_or(0, Dictionary::held_bytes) >> 10,
                        (raws.len() * frame) as f64 / out.len() as f64,
                    );
                }
            }
        }
    }
    Ok(())
}

/// Returns at most `count` frames spread evenly over `data`.
fn pick(data: &[u8], frame: usize, count: usize) -> Vec<&[u8]> {
    let all = data.len() / frame;
    let count = count.clamp(1, all);
    (0..count).map(|i| &data[i * all / count * frame..][..frame]).collect()
}
