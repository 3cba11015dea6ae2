//! The command line of `leafpress device`.

use std::path::PathBuf;

use clap::Args;
use leafpress_lab::device::{DeviceError, Options};
use leafpress_lab::{Bytes, LabError};

use crate::failure::Failure;

/// Arguments of `leafpress device`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct DeviceArgs {
    /// Directory on the device, in which a file is made, filled and removed; or a file or block device, which is only
    /// read
    #[arg(value_name = "PATH", required_unless_present = "fio_json")]
    path: Option<PathBuf>,
    /// Block sizes, each measured separately
    #[arg(
        short = 'b',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "4K,8K,16K,32K,64K,128K"
    )]
    block_bytes: Vec<Bytes>,
    /// Requests in flight; several numbers (1,4) are measured in turn
    #[arg(
        short = 'Q',
        short_alias = 'q',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "4"
    )]
    queue_depth: Vec<u32>,
    /// Percentage of requests that directly follow the previous one; the default is fio's rw=randread:9, eight of nine,
    /// which the thesis calls 90%
    #[arg(long, value_name = "PCT", default_value_t = Options::SEQUENTIAL_PCT, allow_negative_numbers = true)]
    sequential_pct: f64,
    /// Length of each measurement [default: 5]
    #[arg(short = 'd', long, value_name = "SECONDS", allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Size of the probe file [default: 1G]; of an existing file, how much of it to read [default: all]
    #[arg(short = 's', long, value_name = "BYTES")]
    file_bytes: Option<Bytes>,
    /// Measure writes too, after all reads; requires a directory
    #[arg(short_alias = 'w', long)]
    write: bool,
    /// Measure for half a second each, with a file of 256M
    #[arg(long)]
    quick: bool,
    /// How requests reach the kernel: auto, io_uring or threads
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    engine: String,
    /// Seed of the offsets and of the written data
    #[arg(long, default_value_t = 1729)]
    seed: u64,
    /// Use a result of fio --output-format=json instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["path", "block_bytes", "queue_depth", "sequential_pct", "seconds", "file_bytes", "write", "quick", "engine", "seed"]
    )]
    pub fio_json: Option<PathBuf>,
    /// Write summary.tsv, results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
docs/commands/device.md explains the table, and when its figures are not the device's.

  leafpress device /mnt/ssd --out result
  leafpress device /mnt/ssd --queue-depth 1,4,16 --block-bytes 8K --sequential-pct 0 --file-bytes 64G --seconds 60
  leafpress device /mnt/ssd/table.db --quick
  leafpress device --fio-json fio.json --out result";

impl DeviceArgs {
    /// The requested probe, validated.
    pub fn options(&self) -> Result<Options, Failure> {
        let options = self.unchecked().map_err(|e| failure(&e))?;
        options.validate().map_err(|e| failure(&e))?;
        Ok(options)
    }

    fn unchecked(&self) -> Result<Options, LabError> {
        let path = self.path.clone().unwrap_or_default();
        let is_directory = path.is_dir();
        let mut options = Options::new(path);
        if self.quick {
            options = options.quick();
            // An existing file is read entirely: it costs no time to create.
            options.file_bytes = options.file_bytes.filter(|_| is_directory);
        }
        options.block_bytes = self.block_bytes.iter().map(|bytes| bytes.0).collect();
        options.queue_depths.clone_from(&self.queue_depth);
        options.sequential_pct = self.sequential_pct;
        options.seconds = self.seconds.unwrap_or(options.seconds);
        options.file_bytes = self.file_bytes.map(|bytes| bytes.0).or(options.file_bytes);
        options.write = self.write;
        options.engine = self.engine.parse()?;
        options.seed = self.seed;
        Ok(options)
    }
}

/// Converts an error of the laboratory to this command's report.
pub fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => {
            Failure::Interrupted("interrupted: nothing was measured yet, and nothing is left behind".into())
        }
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Device(DeviceError::Fio { .. }) => Failure::bad_input(format!("--fio-json {error}")),
        LabError::Device(DeviceError::Path { .. } | DeviceError::NoRoom { .. } | DeviceError::NoUring(_)) => {
            Failure::bad_input(error.to_string())
        }
        e => Failure::failed(e.to_string()),
    }
}
