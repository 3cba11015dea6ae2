//! The tree beside the registry's uncompressed concurrent ordered maps, on data of your own.
//!
//! `cargo run --release -p leafpress-lab --features peers --example peers -- DATA [KEYS] [OUT_DIR]`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress_lab::peers::{PeersConfig, run_peers};
use leafpress_lab::{CHILD_SUBCOMMAND, LabError, child_main};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn compare(mut args: impl Iterator<Item = String>) -> Result<bool, LabError> {
    let mut config = PeersConfig::default();
    if let Some(data) = args.next() {
        config.data = data.parse()?;
    }
    if let Some(keys) = args.next().and_then(|keys| keys.parse().ok()) {
        config.keys = keys;
    }
    let out_dir = args
        .next()
        .map_or_else(|| PathBuf::from("leafpress-results/peers"), PathBuf::from);
    let mut shown = usize::MAX;
    let outcome = run_peers(
        &config,
        &out_dir,
        &Arc::new(AtomicBool::new(false)),
        &mut |number, total, peer, _, _| {
            if number != shown {
                eprintln!("[{}/{total}] {peer}", number + 1);
                shown = number;
            }
        },
    )?;
    println!("{}", outcome.table);
    Ok(outcome.mismatches == 0 && outcome.failures.is_empty())
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().is_some_and(|arg| arg == CHILD_SUBCOMMAND) {
        return child_main();
    }
    match compare(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
