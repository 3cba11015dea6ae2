//! Options strings of the secondary cache and of the block cache.

mod driver;

use driver::{Driver, parse_options};
use leafpress_rocksdb::{
    BlockCache, BlockCacheOptions, PrimaryCache, SecondaryCacheOptions, secondary_cache_statistics,
    secondary_cache_statistics_text,
};

#[test]
fn every_option_is_taken_and_reported() {
    for options in [
        "leafpress_secondary_cache://capacity=64MiB;codec=zstd:3;dictionary=8K;share=25;\
         admission=false;exclusive=false;num_shard_bits=2;name=mine",
        "id=leafpress_secondary_cache;capacity=64M;codec=zstd:3;dictionary=8KiB;share=25%;\
         admission=off;exclusive=0;num_shard_bits=2;name=mine",
    ] {
        let driver = Driver::new(options, 1 << 20, false).unwrap();
        for (name, value) in [
            ("capacity", "67108864"),
            ("codec", "zstd:3"),
            ("dictionary", "8192"),
            ("share", "25"),
            ("admission", "false"),
            ("exclusive", "false"),
            ("num_shard_bits", "2"),
            ("name", "mine"),
        ] {
            assert_eq!(driver.option(name).unwrap(), value, "{name} of {options}");
        }
        assert!(driver.option("colour").unwrap_err().contains("colour"));
        assert!(
            driver
                .printable()
                .contains("leafpress_secondary_cache : capacity=67108864;codec=zstd:3")
        );
        assert!(
            driver
                .option("statistics")
                .unwrap()
                .contains("leafpress.secondary_cache.mine.hits COUNT : 0\n")
        );
        assert!(secondary_cache_statistics_text().contains("leafpress.secondary_cache.mine.hits COUNT : 0"));
    }
}

#[test]
fn mistakes_are_named() {
    for (options, words) in [
        ("codec=lz4", "capacity is missing"),
        ("capacity=x", "capacity cannot be x: give a number of bytes"),
        ("capacity=64XB", "capacity cannot be 64XB"),
        ("capacity=99999999999999999999", "capacity cannot be"),
        ("capacity=16M;codec=lzma", "codec cannot be lzma"),
        ("capacity=16M;codec=zstd:99", "zstd"),
        ("capacity=16M;dictionary=1", "dictionary"),
        ("capacity=16M;dictionary=1G", "dictionary"),
        (
            "capacity=16M;share=101",
            "share cannot be 101: give adaptive, or the percentage",
        ),
        ("capacity=16M;share=half", "share cannot be half"),
        (
            "capacity=16M;admission=perhaps",
            "admission cannot be perhaps: give true or false",
        ),
        ("capacity=16M;exclusive=2", "exclusive cannot be 2"),
        (
            "capacity=16M;num_shard_bits=11",
            "num_shard_bits cannot be 11: give 0 to 10, or -1",
        ),
        ("capacity=16M;name=a b", "name cannot be a b"),
        (
            "capacity=16M;colour=red",
            "unknown option colour; it has capacity, codec",
        ),
    ] {
        for prefix in ["leafpress_secondary_cache://", "id=leafpress_secondary_cache;"] {
            let error = Driver::new(&format!("{prefix}{options}"), 1 << 20, false).err();
            let error = error.unwrap_or_else(|| panic!("{prefix}{options} was taken"));
            assert!(error.contains(words), "{prefix}{options}: {error}");
        }
    }
    let error = Driver::new("leafpress_secondary_cache", 1 << 20, false).err().unwrap();
    assert!(error.contains("capacity is missing"), "{error}");
}

#[test]
fn the_capacity_of_a_cache_in_use_can_be_configured_and_nothing_else() {
    let driver = Driver::new("leafpress_secondary_cache://capacity=8M;codec=lz4", 1 << 20, false).unwrap();
    driver.configure("capacity=4M;codec=lz4").unwrap();
    assert_eq!(driver.capacity(), 4 << 20);
    let error = driver.configure("codec=zstd:1").unwrap_err();
    assert!(
        error.contains("codec cannot be changed in a cache that is in use"),
        "{error}"
    );
    assert!(
        driver
            .configure("colour=red")
            .unwrap_err()
            .contains("unknown option colour")
    );
}

#[test]
fn a_database_names_both_caches_in_its_options() {
    leafpress_rocksdb::register();
    let table = |cache: &str| format!("block_based_table_factory={{block_size=4096;block_cache={cache}}}");
    for cache in [
        "{id=leafpress_block_cache://;capacity=8M;\
         secondary_cache={leafpress_secondary_cache://capacity=8M;name=in_options}}",
        "{id=leafpress_block_cache://;capacity=8MiB;estimated_entry_charge=4KB;\
         secondary_cache={leafpress_secondary_cache://capacity=8MB}}",
        "{id=leafpress_block_cache://;capacity=8M;type=lru;num_shard_bits=2;\
         secondary_cache={id=leafpress_secondary_cache;capacity=8M}}",
        "{id=leafpress_block_cache://;capacity=8M;secondary_cache={compressed_secondary_cache://capacity=8M}}",
    ] {
        parse_options(&table(cache)).unwrap();
    }
    for (cache, words) in [
        ("{id=leafpress_block_cache://;type=lru}", "capacity is missing"),
        (
            "{id=leafpress_block_cache://;capacity=8XB}",
            "capacity cannot be 8XB: give a number of bytes, such as 67108864, 64M, 64MiB or 64MB",
        ),
        (
            "{id=leafpress_block_cache://;capacity=8M;type=fifo}",
            "hyper_clock or lru",
        ),
        (
            "{id=leafpress_block_cache://;capacity=8M;size=1}",
            "unknown option size",
        ),
        (
            "{id=leafpress_block_cache://;capacity=8M;num_shard_bits=x}",
            "num_shard_bits",
        ),
        (
            "{id=leafpress_block_cache://;capacity=8M;secondary_cache={leafpress_secondary_cache://codec=lz4}}",
            "capacity is missing",
        ),
        (
            "{id=leafpress_block_cache://;capacity=8M;secondary_cache={nobody://}}",
            "nobody",
        ),
        ("leafpress_block_cache://99999", "no such shared cache"),
    ] {
        let error = parse_options(&table(cache)).unwrap_err();
        assert!(error.contains(words), "{cache}: {error}");
    }
}

#[test]
fn a_shared_cache_is_known_while_it_lives() {
    leafpress_rocksdb::register();
    let mut secondary = SecondaryCacheOptions::new(8 << 20);
    secondary.name = "shared".to_owned();
    let mut options = BlockCacheOptions::new(4 << 20).secondary(&secondary);
    options.primary = PrimaryCache::Lru;
    options.shard_bits = Some(1);
    let cache = BlockCache::new(&options).unwrap();
    assert_eq!(cache.capacity_bytes(), 4 << 20);
    cache.set_capacity(2 << 20);
    assert_eq!((cache.capacity_bytes(), cache.usage_bytes() < 4096), (2 << 20, true));
    let known = cache.table_options("block_size=4096");
    parse_options(&known).unwrap();
    let of = || {
        secondary_cache_statistics()
            .into_iter()
            .find(|each| each.name == "shared")
    };
    assert_eq!(of().unwrap().options, secondary);
    drop(cache);
    assert!(of().is_none());
    assert!(parse_options(&known).is_err());
    options.secondary = Some("leafpress_secondary_cache://capacity=8M;codec=lzma".to_owned());
    assert!(
        BlockCache::new(&options)
            .unwrap_err()
            .to_string()
            .contains("codec cannot be lzma")
    );
}

#[test]
fn options_round_trip() {
    let options: SecondaryCacheOptions =
        "leafpress_secondary_cache://capacity=3GB; codec=lz4:fast=4;dictionary=off;share=7"
            .parse()
            .unwrap();
    assert_eq!((options.capacity_bytes, options.dictionary_bytes), (3_000_000_000, 0));
    assert_eq!(options.to_string().parse::<SecondaryCacheOptions>().unwrap(), options);
}
