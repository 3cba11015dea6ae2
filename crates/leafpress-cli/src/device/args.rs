//! The command line of `leafpress device`.

use std::path::PathBuf;

use clap::Args;
use leafpress_console::given::Given;
use leafpress_lab::LabError;
use leafpress_lab::device::{DeviceError, Options};

use crate::failure::Failure;

/// Arguments of `leafpress device`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct DeviceArgs {
    #[command(flatten)]
    given: Given<Options>,
    /// Directory on the device, in which a file is made, filled and removed; or a file or block device, which is only
    /// read
    #[arg(value_name = "PATH", required_unless_present = "fio_json")]
    path: Option<PathBuf>,
    /// Measure for half a second each, with a file of 256M
    #[arg(long, display_order = 6)]
    quick: bool,
    /// Use a result of fio --output-format=json instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "path", "block_bytes", "queue_depths", "sequential_pct", "seconds", "file_bytes", "write", "quick",
            "engine", "seed",
        ]
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
    /// Returns the requested probe, validated.
    pub fn options(&self) -> Result<Options, Failure> {
        let path = self.path.clone().unwrap_or_default();
        let is_directory = path.is_dir();
        let mut options = Options::new(path);
        if self.quick {
            options = options.quick();
            // An existing file is read entirely: it costs no time to create.
            options.file_bytes = options.file_bytes.filter(|_| is_directory);
        }
        self.given.set(&mut options);
        options.validate().map_err(|e| failure(&e))?;
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
