//! The module's section of `INFO`.

use crate::alloc::held;
use crate::api::info::Section;
use crate::commands::conversion;
use crate::commands::native::refused;
use crate::store::databases::databases;
use crate::store::removal;
use crate::store::settings::trees;
use crate::upkeep::spent;

/// Fills the section in constant time, whatever the amount of data.
pub fn fill(section: &mut Section) {
    let (mut training, mut dictionaries, mut dictionary_bytes) = (0, 0, 0);
    let totals = {
        let databases = databases();
        for generation in databases.generations() {
            training += u64::from(generation.tree().is_training());
            if let Ok(Some(dictionary)) = generation.tree().dictionary() {
                dictionaries += 1;
                dictionary_bytes += dictionary.held_bytes() as u64;
            }
        }
        databases.totals()
    };
    let held = held() as u64;
    section.text(c"codec", &trees().codec.to_string());
    section.number(c"keys", totals.keys);
    section.number(c"records", totals.records);
    section.number(c"user_bytes", totals.user_bytes);
    section.number(c"held_bytes", held);
    let ratio = held as f64 / totals.user_bytes.max(1) as f64;
    section.fraction(c"held_per_user_byte", if totals.user_bytes == 0 { 0.0 } else { ratio });
    section.number(c"generations", totals.generations);
    section.number(c"removals_waiting", removal::waiting() as u64);
    section.number(c"trainings_running", training);
    section.number(c"dictionaries", dictionaries);
    section.number(c"dictionary_bytes", dictionary_bytes);
    let (running, converted, failed) = conversion::counts();
    section.number(c"conversions_running", running);
    section.number(c"conversion_keys_converted", converted);
    section.number(c"conversion_keys_not_converted", failed);
    let (took, longest, failures) = spent();
    section.number(c"upkeep_us", took);
    section.number(c"upkeep_longest_us", longest);
    section.number(c"upkeep_failures", failures);
    section.number(c"commands_refused", refused());
}
