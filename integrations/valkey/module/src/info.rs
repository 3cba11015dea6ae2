//! The module's section of `INFO`.

use crate::alloc::held;
use crate::api::failure::wrong_types;
use crate::api::info::Section;
use crate::commands::conversion;
use crate::commands::native::refused;
use crate::filter::rewritten;
use crate::store::databases::{KindTotals, databases};
use crate::store::generation::Generation;
use crate::store::map::Map;
use crate::store::removal;
use crate::store::settings::trees;
use crate::trainings::{self, held_per_user_byte};
use crate::upkeep;

/// Fills the section in constant time, whatever the amount of data.
pub fn fill(section: &mut Section) {
    let (mut training, mut dictionaries, mut dictionary_bytes) = (0, 0, 0);
    let (mut map_bytes, mut text_bytes) = (0, 0);
    let totals = {
        let databases = databases();
        for generation in databases.generations() {
            training += u64::from(generation.tree().is_training());
            if let Ok(Some(dictionary)) = generation.tree().dictionary() {
                dictionaries += 1;
                dictionary_bytes += dictionary.held_bytes() as u64;
            }
            let (of_maps, of_texts) = held_by_kind(generation);
            map_bytes += of_maps;
            text_bytes += of_texts;
        }
        databases.totals()
    };
    let (maps, texts) = (totals.maps, totals.texts);
    section.text(c"codec", &trees().codec.to_string());
    section.number(c"keys", maps.keys + texts.keys);
    section.number(c"records", maps.records + texts.records);
    section.number(c"user_bytes", totals.user_bytes());
    section.number(c"held_bytes", held() as u64);
    section.fraction(c"held_per_user_byte", held_per_user_byte());
    section.number(c"maps", maps.keys);
    section.number(c"map_user_bytes", maps.user_bytes);
    section.number(c"map_held_bytes", map_bytes + maps.keys * size_of::<Map>() as u64);
    section.number(c"strings", texts.keys);
    section.number(c"string_user_bytes", texts.user_bytes);
    section.number(c"string_held_bytes", text_bytes);
    section.number(c"generations", totals.generations);
    let (values, bytes) = removal::waiting();
    section.number(c"removals_waiting", values);
    section.number(c"removals_waiting_user_bytes", bytes);
    section.number(c"trainings_running", training);
    let last = trainings::last();
    section.number(c"trainings", last.count);
    section.number(c"last_training_time", last.time);
    section.number(
        c"last_training_ms",
        u64::try_from(last.took.as_millis()).unwrap_or(u64::MAX),
    );
    section.number(c"last_training_replaced", u64::from(last.is_replaced));
    section.fraction(c"last_training_held_per_user_byte_before", last.held_per_user_byte);
    section.number(c"dictionaries", dictionaries);
    section.number(c"dictionary_bytes", dictionary_bytes);
    let (running, converted, failed) = conversion::counts();
    section.number(c"conversions_running", running);
    section.number(c"conversion_keys_converted", converted);
    section.number(c"conversion_keys_not_converted", failed);
    let upkeep = upkeep::report();
    section.number(c"upkeep_us", upkeep.spent_us);
    section.number(c"upkeep_longest_us", upkeep.longest_us);
    section.number(c"upkeep_longest_since_info_us", upkeep.longest_since_report_us);
    section.number(c"upkeep_failures", upkeep.failures);
    section.number(c"commands_rewritten", rewritten());
    let refused = refused();
    section.number(c"commands_refused", refused.values().sum());
    let by_name: Vec<_> = refused.iter().map(|(name, count)| format!("{name}={count}")).collect();
    section.text(c"commands_refused_by_name", &by_name.join(","));
    section.number(c"commands_wrong_type", wrong_types());
}

/// Returns the bytes that a generation's tree holds, divided among its maps and strings in proportion to the bytes of
/// their records' keys and values.
fn held_by_kind(generation: &Generation) -> (u64, u64) {
    let [mut maps, mut texts] = [KindTotals::default(); 2];
    maps.add(&generation.counts().maps);
    texts.add(&generation.counts().texts);
    let (of_maps, of_texts) = (maps.key_and_value_bytes(), texts.key_and_value_bytes());
    let held = generation.tree().bytes_held();
    match u128::from(of_maps) + u128::from(of_texts) {
        0 => (0, 0),
        all => {
            let maps = u64::try_from(u128::from(held) * u128::from(of_maps) / all).unwrap_or(held);
            (maps, held - maps)
        }
    }
}
