//! `include/leafpress.h` is what the sources say: with `LEAFPRESS_WRITE_HEADER=1` it is written, and else compared.

use leafpress_c_header::{SECTIONS, made, path};

#[test]
fn the_header_matches_the_sources() {
    let path = path("include/leafpress.h");
    let made = made().unwrap();
    if std::env::var_os("LEAFPRESS_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    let differs = found.lines().zip(made.lines()).position(|(found, made)| found != made);
    assert!(
        found == made,
        "{} is not what the sources say, from line {:?} on; LEAFPRESS_WRITE_HEADER=1 writes it anew",
        path.display(),
        differs.map(|line| line + 1)
    );
}

/// No section was left out, and every function has a documentation.
#[test]
fn every_section_is_in_the_header() {
    for file in std::fs::read_dir(path("src/sections")).unwrap() {
        let name = file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        let is_there = SECTIONS.iter().any(|(_, _, files)| files.contains(&name.as_str()));
        assert!(is_there || name == "mod", "{name} is in no section");
    }
    let header = std::fs::read_to_string(path("include/leafpress.h")).unwrap();
    let mut before = "";
    for line in header.lines() {
        if line.starts_with("LP_API") {
            assert!(before.ends_with("*/"), "no documentation: {line}");
        }
        before = line;
    }
}
