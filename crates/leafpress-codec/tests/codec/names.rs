//! Codec names: bounds, messages, and that `Display` and `FromStr` round-trip.

use leafpress_codec::Codec;
use leafpress_codec::{CodecError, EngineOptions, QplMode, QplPath};
use proptest::prelude::*;

fn any_codec() -> impl Strategy<Value = Codec> {
    let path = prop_oneof![Just(QplPath::Software), Just(QplPath::Hardware), Just(QplPath::Auto)];
    let mode = prop_oneof![Just(QplMode::Fixed), Just(QplMode::Dynamic)];
    prop_oneof![
        Just(Codec::None),
        (1..=65_537).prop_map(|acceleration| Codec::Lz4 { acceleration }),
        (2..=12).prop_map(|level| Codec::Lz4Hc { level }),
        prop_oneof![-131_072..0, 1..=22].prop_map(|level| Codec::Zstd { level }),
        (1..=12).prop_map(|level| Codec::Deflate { level }),
        (1..=9).prop_map(|level| Codec::Zlib { level }),
        (1..=9).prop_map(|level| Codec::Zlib32K { level }),
        (path, mode).prop_map(|(path, mode)| Codec::Qpl { path, mode }),
    ]
}

proptest! {
    #[test]
    fn printed_names_are_read_back(codec in any_codec()) {
        let name = codec.to_string();
        prop_assert_eq!(name.parse::<Codec>().unwrap(), codec);
        prop_assert_eq!(name.split(':').next().unwrap(), codec.family());
    }

    #[test]
    fn any_string_is_a_name_or_an_error(name in "\\PC*") {
        let _ = name.parse::<Codec>();
    }

    #[test]
    fn what_is_read_is_printed_alike(name in "(none|lz4|zstd|deflate|zlib|qpl)(:(fast=|hc=)?[-+0-9a-z]{0,7}){0,2}") {
        if let Ok(codec) = name.parse::<Codec>() {
            prop_assert!(codec.to_string() == name || name == "lz4:fast=1");
        }
    }
}

#[test]
fn bounds() {
    for good in [
        "none",
        "lz4",
        "lz4:fast=1",
        "lz4:fast=65537",
        "lz4:hc=2",
        "lz4:hc=12",
        "zstd:1",
        "zstd:22",
        "zstd:-1",
        "zstd:-131072",
        "onpair",
        "onpair:12",
        "onpair:14",
        "onpair:16",
        "onpair:huffman",
        "deflate:1",
        "deflate:12",
        "zlib:1",
        "zlib:9",
        "qpl:software:fixed",
        "qpl:hardware:dynamic",
        "qpl:auto:fixed",
    ] {
        assert!(good.parse::<Codec>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "None",
        "none:1",
        "lz4:",
        "lz4:1",
        "lz4:fast=0",
        "lz4:fast=65538",
        "lz4:fast=-1",
        "lz4hc",
        "onpair:",
        "onpair:13",
        "onpair:12:huffman",
        "lz4:hc",
        "lz4:hc=",
        "lz4:hc=1",
        "lz4:hc=13",
        "lz4:hc=09",
        "lz4:hc=9:fast=2",
        "lz4:level=9",
        "zstd",
        "zstd:0",
        "zstd:23",
        "zstd:-131073",
        "zstd:+1",
        "zstd:01",
        "zstd: 1",
        "deflate",
        "deflate:0",
        "deflate:13",
        "zlib:0",
        "zlib:10",
        "qpl",
        "qpl:software",
        "qpl:cpu:fixed",
        "qpl:auto:static",
        "qpl:auto:fixed:1",
        "zstd:99999999999",
        " lz4",
        "snappy",
    ] {
        let error = bad.parse::<Codec>().unwrap_err();
        assert!(matches!(&error, CodecError::UnknownName(name) if name == bad));
        let message = error.to_string();
        for good in [
            "none",
            "lz4",
            "lz4:fast=",
            "lz4:hc=",
            "zstd:",
            "deflate:",
            "zlib:",
            "qpl:",
        ] {
            assert!(message.contains(good), "{bad}: {message}");
        }
        assert!(message.contains(&format!("{bad:?}")) && message.lines().count() == 1);
    }
}

/// A codec can be constructed without a name; opening it checks its settings too.
#[test]
fn settings_out_of_bounds_do_not_open() {
    for codec in [
        Codec::Lz4 { acceleration: 0 },
        Codec::Lz4Hc { level: 1 },
        Codec::Lz4Hc { level: 13 },
        Codec::Zstd { level: 0 },
        Codec::Zstd { level: 23 },
        Codec::Deflate { level: 13 },
        Codec::Zlib { level: -1 },
    ] {
        let opened = codec.open(&EngineOptions::default());
        assert!(matches!(opened, Err(CodecError::UnknownName(_))), "{codec}");
    }
}

#[test]
fn every_codec_is_listed_once_with_an_engine_or_a_reason() {
    let list = Codec::list();
    for family in ["none", "lz4", "zstd", "deflate", "zlib", "qpl"] {
        assert!(list.iter().any(|a| a.codec.family() == family));
    }
    for (i, available) in list.iter().enumerate() {
        assert!(list[..i].iter().all(|other| other.codec != available.codec));
        match &available.engine {
            Ok(engine) => {
                assert!(!engine.is_empty());
                let opened = available.codec.open(&EngineOptions::default()).unwrap();
                assert_eq!(opened.engine_name(), *engine);
                assert_eq!(opened.codec(), available.codec);
            }
            Err(reason) => {
                assert!(!reason.is_empty() && reason.lines().count() == 1, "{reason}");
                assert!(["zlib", "qpl"].contains(&available.codec.family()));
                let error = available.codec.open(&EngineOptions::default()).unwrap_err();
                assert!(error.to_string().contains(&available.codec.to_string()), "{error}");
            }
        }
    }
}
