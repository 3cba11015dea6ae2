use super::*;

#[test]
fn the_sequential_share_is_fios_number_behind_randread() {
    let run = |pct| {
        Options {
            sequential_pct: pct,
            ..Options::new("/")
        }
        .run_blocks()
    };
    for (pct, blocks) in [
        (0.0, Some(1)),
        (50.0, Some(2)),
        (75.0, Some(4)),
        (Options::SEQUENTIAL_PCT, Some(9)),
        (90.0, Some(10)),
        (99.0, Some(100)),
        (100.0, None),
    ] {
        assert_eq!(run(pct), blocks, "{pct}");
    }
}

#[test]
fn the_default_is_the_job_of_the_thesis() {
    let options = Options::new("/mnt/hdd");
    options.validate().unwrap();
    assert_eq!(options.block_bytes, [4, 8, 16, 32, 64, 128].map(|kib| kib << 10));
    assert_eq!(
        (options.queue_depths.as_slice(), options.run_blocks()),
        (&[4][..], Some(9))
    );
}

#[test]
fn what_is_out_of_bounds_is_named() {
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new("/");
        change(&mut options);
        match options.validate() {
            Err(LabError::Option { option, .. }) => option,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|o| o.block_bytes.clear()), "block-bytes");
    assert_eq!(refused(&|o| o.block_bytes = vec![4096, 0]), "block-bytes");
    assert_eq!(refused(&|o| o.block_bytes = vec![4097]), "block-bytes");
    assert_eq!(refused(&|o| o.block_bytes = vec![u64::MAX]), "block-bytes");
    assert_eq!(refused(&|o| o.block_bytes = vec![4096, 8192, 4096]), "block-bytes");
    assert_eq!(refused(&|o| o.queue_depths.clear()), "queue-depth");
    assert_eq!(refused(&|o| o.queue_depths = vec![0]), "queue-depth");
    assert_eq!(refused(&|o| o.queue_depths = vec![4, 4]), "queue-depth");
    assert_eq!(
        refused(&|o| (o.queue_depths, o.block_bytes) = (vec![1024], vec![8 << 20])),
        "queue-depth"
    );
    for pct in [-1.0, 100.1, f64::NAN] {
        assert_eq!(refused(&|o| o.sequential_pct = pct), "sequential-pct");
    }
    for seconds in [0.0, -1.0, 1e9, f64::NAN] {
        assert_eq!(refused(&|o| o.seconds = seconds), "seconds");
    }
    assert_eq!(refused(&|o| o.file_bytes = Some(1 << 20)), "file-bytes");
    assert_eq!(refused(&|o| o.file_bytes = Some(u64::MAX)), "file-bytes");
}
