//! Resources of a process as reported by the system: alone in its test binary, since other tests would be in the
//! figures.

use leafpress_lab::core::resources::{host, peak_resident_kib, release_free_memory, resident_bytes, usage};

#[test]
fn figures_are_plausible_and_follow_what_is_done() {
    let before = usage().unwrap();
    release_free_memory();
    let resident = resident_bytes().unwrap();
    let memory = vec![1_u8; 64 << 20];
    let mut sum = 0;
    loop {
        sum += memory.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        if usage().unwrap().user_seconds >= before.user_seconds + 0.05 {
            break;
        }
    }
    assert_eq!(sum % (64 << 20), 0);
    let grown = resident_bytes().unwrap() - resident;
    assert!((60 << 20..80 << 20).contains(&grown), "{grown}");
    assert!(peak_resident_kib().unwrap() >= (resident + grown) >> 10);
    drop(memory);
    release_free_memory();
    let left = resident_bytes().unwrap().saturating_sub(resident);
    assert!(left < 16 << 20, "{left} bytes stay after all was freed");
    assert!(host().contains(" core"));
}
