//! Recommendations on made-up figures.

use std::sync::Arc;

use super::*;
use crate::core::keys::Distribution;
use crate::device::{self, Latency, Measurement};
use crate::model::tco::Prices;
use crate::model::{Access, BreakEven, CodecCosts, MAX_COMPRESSED, WITHIN_ERROR};
use crate::report::testing::assert_golden;

const HOT_SET: Access = Access::Distribution(Distribution::HotSet {
    keys_pct: 20.0,
    operations_pct: 80.0,
});

fn block(block_bytes: u64, device_us: f64, codecs: &[(&str, f64, f64, f64)]) -> BlockFigures {
    let costs = |&(name, ratio, compress_us, decompress_us): &(&str, f64, f64, f64)| {
        CodecCosts::new(name, ratio, compress_us, decompress_us)
    };
    BlockFigures {
        block_bytes,
        copy_us: Some(0.4),
        reads: Reads::Always(device_us),
        codecs: codecs.iter().map(costs).collect(),
    }
}

/// 200 GiB of data in 15 GiB of memory, as in the thesis.
fn question(access: Access, blocks: Vec<BlockFigures>) -> Question {
    Question {
        data_bytes: 200 << 30,
        memory_bytes: 15 << 30,
        access_bytes: 8 << 10,
        access,
        workers: 1,
        hit_us: 0.15,
        background_pct: 0.0,
        promote_after_hits: 8,
        blocks,
        prices: None,
    }
}

const LZ4: (&str, f64, f64, f64) = ("lz4", 2.2, 9.0, 2.0);
const ZSTD: (&str, f64, f64, f64) = ("zstd:1", 3.2, 19.0, 8.0);

#[track_caller]
fn recommended(question: &Question) -> Recommendation {
    recommend(question).unwrap_or_else(|e| panic!("{e}"))
}

/// All that is said, in one string.
fn said(recommendation: &Recommendation, question: &Question) -> String {
    let mut said = sentence(recommendation);
    for reason in reasons(recommendation, question) {
        said += &format!("\n{reason}");
    }
    said
}

#[test]
fn compression_pays_where_reads_are_slow() {
    let question = question(HOT_SET, vec![block(8192, 460.0, &[LZ4, ZSTD])]);
    let advice = recommended(&question);
    assert_eq!(advice.verdict, Verdict::Compress);
    assert_eq!(advice.choice().name(), "zstd:1");
    assert_eq!(advice.second_codec().map(Candidate::name), Some("lz4"));
    let (raw, best) = (&advice.raw.best, &advice.best.best);
    assert!(best.hit_ratio > raw.hit_ratio + 0.2 && best.us_per_page < raw.us_per_page * 0.7);
    assert!(best.share > 0.5 && best.share <= 15.0 / 16.0);
    let memory = question.memory_bytes as f64;
    assert!(advice.raw_memory_bytes.is_some_and(|needed| needed > 1.3 * memory));
    assert!(advice.enough_memory_bytes.is_some_and(|enough| enough < 0.8 * memory));
    let said = said(&advice, &question);
    for words in [
        "Compress: give",
        "zstd:1",
        "Second best: lz4",
        "Break-even",
        "Sensitivity: ",
        "uncompressed pages would be faster",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
}

#[test]
fn the_memory_that_is_as_fast_is_as_fast() {
    let question = question(HOT_SET, vec![block(8192, 110.0, &[LZ4])]);
    let advice = recommended(&question);
    let raw_memory = advice.raw_memory_bytes.unwrap();
    let with = |memory: f64| Question {
        memory_bytes: memory as u64,
        ..question.clone()
    };
    let us = recommended(&with(raw_memory)).raw.best.us_per_page;
    assert!((us / advice.best.best.us_per_page - 1.0).abs() < 0.01, "{us}");
    let us = recommended(&with(advice.enough_memory_bytes.unwrap()))
        .best
        .best
        .us_per_page;
    assert!((us / advice.raw.best.us_per_page - 1.0).abs() < 0.02, "{us}");
}

#[test]
fn compression_does_not_pay_where_the_device_is_as_fast_as_decoding() {
    let question = question(HOT_SET, vec![block(8192, 8.0, &[LZ4, ZSTD])]);
    let advice = recommended(&question);
    assert_eq!(advice.verdict, Verdict::DoNotCompress);
    assert_eq!((advice.choice().name(), advice.choice().best.share), ("none", 0.0));
    assert_eq!(advice.break_even, BreakEven::Never);
    assert!(advice.raw_memory_bytes.is_none() && advice.savings.is_none() && advice.pays_until.is_none());
    // And from which latency on it would.
    let from = advice.pays_from_us.unwrap();
    assert!(from > 8.0 && from < 110.0, "{from}");
    let said = said(&advice, &question);
    assert!(said.starts_with("Do not compress"), "{said}");
    assert!(
        said.contains("compression would begin to pay (here: 8.00 us)"),
        "{said}"
    );
}

#[test]
fn the_latency_from_which_on_it_pays_is_where_it_changes() {
    let at = |device_us: f64| question(HOT_SET, vec![block(8192, device_us, &[LZ4, ZSTD])]);
    let from = recommended(&at(110.0)).pays_from_us.unwrap();
    let gain = |device_us: f64| recommended(&at(device_us)).gain();
    assert!(gain(from * 1.05) > 0.0 && gain(from * 0.95) <= 0.0, "{from}");
}

#[test]
fn a_turn_is_where_another_codec_takes_over() {
    let at = |device_us: f64| question(HOT_SET, vec![block(8192, device_us, &[LZ4, ZSTD])]);
    let slow = recommended(&at(460.0));
    let [Some(below), None] = &slow.crossovers else {
        panic!("{:?}", slow.crossovers);
    };
    assert_eq!((slow.best.name(), below.codec.as_str()), ("zstd:1", "lz4"));
    assert_eq!(recommended(&at(below.device_us * 1.03)).best.name(), "zstd:1");
    assert_eq!(recommended(&at(below.device_us * 0.97)).best.name(), "lz4");
}

#[test]
fn a_gain_within_the_error_is_not_recommended() {
    // Just above the latency from which on it pays.
    let at = |device_us: f64| question(HOT_SET, vec![block(8192, device_us, &[LZ4])]);
    let from = recommended(&at(110.0)).pays_from_us.unwrap();
    let question = at(from * 1.03);
    let advice = recommended(&question);
    assert_eq!(advice.verdict, Verdict::TooClose);
    assert!(advice.gain() > 0.0 && advice.gain() < WITHIN_ERROR);
    assert_eq!(advice.choice().name(), "none");
    let said = said(&advice, &question);
    assert!(said.starts_with("Do not compress: the gain is too small"), "{said}");
}

/// Whatever the device takes, `model` and `advise` name one share as the best, and recommend it or both do not.
#[test]
fn the_model_and_the_advice_never_contradict_each_other() {
    let from = {
        let question = question(HOT_SET, vec![block(8192, 110.0, &[LZ4])]);
        recommended(&question).pays_from_us.unwrap()
    };
    let mut verdicts = Vec::new();
    for times in [0.5, 1.02, 1.05, 1.1, 1.2, 3.0, 30.0] {
        let question = question(HOT_SET, vec![block(8192, from * times, &[LZ4])]);
        let advice = recommended(&question);
        let options = question.model_options(&question.blocks[0], from * times);
        let outcome = crate::model::evaluate(&options).unwrap();
        let best = outcome.codecs[0].best;
        let (one, other) = (best.us_per_page, advice.best.best.us_per_page);
        assert!((one / other - 1.0).abs() < 1e-3, "{times}: {one} and {other}");
        assert!(best.share <= MAX_COMPRESSED && advice.best.best.share <= MAX_COMPRESSED);
        assert_eq!(outcome.recommended().is_some(), advice.verdict.pays(), "{times}");
        let said = crate::model::document(&outcome, None).text();
        assert_eq!(said.contains("Compress nothing"), !advice.verdict.pays(), "{said}");
        verdicts.push(advice.verdict);
    }
    for verdict in [Verdict::DoNotCompress, Verdict::TooClose, Verdict::Compress] {
        assert!(verdicts.contains(&verdict), "{verdicts:?}");
    }
}

#[test]
fn what_does_not_shrink_is_not_compressed() {
    let question = question(
        HOT_SET,
        vec![block(
            8192,
            460.0,
            &[("lz4", 1.0, 5.0, 0.4), ("zstd:1", 1.01, 20.0, 1.0)],
        )],
    );
    let advice = recommended(&question);
    assert!(!advice.verdict.pays(), "{:?}", advice.verdict);
    assert!(said(&advice, &question).contains("hardly compresses"));
}

#[test]
fn what_fits_is_not_compressed() {
    let mut question = question(HOT_SET, vec![block(8192, 460.0, &[LZ4])]);
    question.memory_bytes = 210 << 30;
    let advice = recommended(&question);
    assert_eq!(advice.verdict, Verdict::AllFits);
    assert!(sentence(&advice).contains("fits"));
}

#[test]
fn two_codecs_alike_are_called_alike() {
    let question = question(HOT_SET, vec![block(8192, 460.0, &[LZ4, ("other", 2.2, 9.1, 2.0)])]);
    let advice = recommended(&question);
    assert_eq!(advice.best.name(), "lz4");
    assert!(said(&advice, &question).contains("within the error"));
}

#[test]
fn longer_blocks_are_charged_with_what_an_access_does_not_want() {
    // They compress better and cost no more to read, and still lose: they mix hot and cold pages.
    let long = ("lz4", 2.6, 9.0, 2.0);
    let skewed = question(HOT_SET, vec![block(8192, 110.0, &[LZ4]), block(65536, 110.0, &[long])]);
    assert_eq!(recommended(&skewed).best.block_bytes, 8192);
    // With uniform access there is nothing to lose.
    let even = question(
        Access::Distribution(Distribution::Uniform),
        vec![block(8192, 110.0, &[LZ4]), block(65536, 110.0, &[long])],
    );
    assert_eq!(recommended(&even).best.block_bytes, 65536);
    // Except for their decoding and reading.
    let costly = question(
        Access::Distribution(Distribution::Uniform),
        vec![
            block(8192, 110.0, &[LZ4]),
            block(65536, 170.0, &[("lz4", 2.6, 72.0, 16.0)]),
        ],
    );
    assert_eq!(recommended(&costly).best.block_bytes, 8192);
}

#[test]
fn a_block_that_holds_several_accesses_has_the_mean_of_their_heat() {
    use crate::model::formulas::{gathered, mass_of_tiers, tiers};
    let law = Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    };
    let pages = tiers(law, 1e6);
    for pieces in [1, 2, 3, 4, 7, 8] {
        let blocks = gathered(&pages, pieces);
        let count: f64 = blocks.iter().map(|tier| tier.pages).sum();
        let mass: f64 = blocks.iter().map(|tier| tier.pages * tier.rate).sum();
        assert!(
            (count * f64::from(pieces) / 1e6 - 1.0).abs() < 1e-9,
            "{pieces}: {count}"
        );
        assert!((mass - 1.0).abs() < 1e-9, "{pieces}: {mass}");
    }
    // Two in a block: of four kinds of pairs, 0.04 have both hot, 0.32 one.
    let pairs = gathered(&pages, 2);
    assert_eq!(pairs.len(), 3);
    assert!((pairs[0].pages / 5e5 - 0.04).abs() < 1e-9 && (pairs[1].pages / 5e5 - 0.32).abs() < 1e-9);
    assert!((mass_of_tiers(&pairs, 0.36 * 5e5) - (0.04 * 8e-6 + 0.32 * 4.25e-6) * 5e5).abs() < 1e-9);
}

#[test]
fn prices_are_worked_out_where_it_pays_and_only_there() {
    let mut question = question(HOT_SET, vec![block(8192, 460.0, &[LZ4])]);
    question.prices = Some(Prices {
        memory_gib_cost: Some(4.0),
        total_cost: Some(1000.0),
        ..Prices::default()
    });
    let advice = recommended(&question);
    let saved = advice.savings.as_ref().unwrap();
    let more = advice.raw_memory_bytes.unwrap() - question.memory_bytes as f64;
    assert!((saved.memory_cost.unwrap() - more / (1_u64 << 30) as f64 * 4.0).abs() < 0.01);
    assert!((saved.worth.cores_saved - advice.workers_saved).abs() < 1e-9);
    question.blocks = vec![block(8192, 5.0, &[LZ4])];
    assert!(recommended(&question).savings.is_none());
}

#[test]
fn questions_out_of_bounds_are_refused() {
    let refused = |question: Question, words: &str| match recommend(&question) {
        Err(crate::core::LabError::Option { reason, .. }) => assert!(reason.contains(words), "{reason}"),
        other => panic!("{other:?}"),
    };
    refused(question(HOT_SET, Vec::new()), "no codec is available");
    refused(
        question(HOT_SET, vec![block(8192, 110.0, &[])]),
        "no codec is available",
    );
    refused(question(HOT_SET, vec![block(12288, 110.0, &[LZ4])]), "multiple");
    refused(question(HOT_SET, vec![block(8192, f64::NAN, &[LZ4])]), "not between");
}

/// Reads of a device that answers in `us` at depth 1 and has as many more a second at depth 2 as `gain` says.
fn probed(us: f64, gain: f64) -> Reads {
    let measurement = |queue_depth: u32, iops: f64, mean_us: f64| Measurement {
        job: None,
        operation: device::Operation::Read,
        block_bytes: 8192,
        queue_depth,
        seconds: 1.0,
        operations: iops as u64,
        iops,
        mb_per_s: iops * 8192.0 / 1e6,
        us_per_block: 1e6 / iops,
        latency: Latency {
            mean_us,
            ..Latency::default()
        },
        random_latency: None,
        submit_us: None,
        tenths: Vec::new(),
        cores: None,
    };
    let alone = 1e6 / us;
    let report = device::Report {
        source: device::Source::Fio {
            path: "fio.json".into(),
            version: "fio-3".into(),
            engine: None,
            pattern: None,
        },
        host: String::new(),
        measurements: vec![measurement(1, alone, us), measurement(2, alone * gain, 2.0 * us / gain)],
        notes: Vec::new(),
        interrupted: false,
    };
    Reads::Probed {
        report: Arc::new(report),
        block_bytes: 8192,
    }
}

#[test]
fn a_read_waits_as_long_as_at_the_load_it_makes() {
    // One worker has one read in flight: its latency, not the reciprocal of a throughput.
    let reads = probed(100.0, 1.25);
    assert!((reads.wait_of_workers_us(1.0, 0.0, 1.0) - 100.0).abs() < 0.1);
    // Two that always miss have two.
    assert!((reads.wait_of_workers_us(2.0, 0.0, 1.0) - 160.0).abs() < 0.1);
    // Two that seldom miss hardly ever.
    assert!((reads.wait_of_workers_us(2.0, 50.0, 0.1) - 100.0).abs() < 0.1);
    // In between the wait and the load agree.
    let wait = reads.wait_of_workers_us(2.0, 30.0, 0.8);
    let asked = 2.0 * 0.8 * 1e6 / (30.0 + 0.8 * wait);
    assert!((reads.wait_us(asked) - wait).abs() < 0.1, "{wait}");
    assert!(wait > 100.0 && wait < 160.0, "{wait}");
}

#[test]
fn a_read_never_waits_longer_than_a_longer_one() {
    let Reads::Probed { report, .. } = probed(100.0, 1.25) else {
        unreachable!()
    };
    let mut report = device::Report::clone(&report);
    let mut longer = report.measurements[0].clone();
    longer.block_bytes = 16384;
    longer.latency.mean_us = 70.0;
    report.measurements.push(longer);
    let report = Arc::new(report);
    for block_bytes in [8192, 16384] {
        let reads = Reads::Probed {
            report: Arc::clone(&report),
            block_bytes,
        };
        assert_eq!(reads.wait_us(0.0), 70.0);
    }
}

#[test]
fn the_latency_of_the_question_is_the_loads() {
    let with = |workers: u32| {
        let mut question = question(
            Access::Distribution(Distribution::Uniform),
            vec![block(8192, 0.0, &[LZ4])],
        );
        question.blocks[0].reads = probed(100.0, 1.25);
        question.workers = workers;
        recommended(&question).raw.device_us
    };
    assert!((with(1) - 100.0).abs() < 0.1);
    assert!(with(2) > 130.0 && with(2) < 160.0, "{}", with(2));
}

#[test]
fn the_recommendation_matches_its_golden_text() {
    let mut all = String::new();
    for (what, device_us, codecs) in [
        ("a slow device", 460.0, &[LZ4, ZSTD][..]),
        ("a fast device", 8.0, &[LZ4, ZSTD]),
        ("noise", 460.0, &[("lz4", 1.0, 5.0, 0.4)]),
    ] {
        let question = question(HOT_SET, vec![block(8192, device_us, codecs)]);
        all += &format!("# {what}\n{}\n\n", said(&recommended(&question), &question));
    }
    assert_golden("advise/golden/said.txt", &all);
}
