//! `include/leafpress.h` is what the sources say: with `LEAFPRESS_WRITE_HEADER=1` it is written, and else compared.

use std::path::{Path, PathBuf};

/// The header's sections: files of `src/sections`, under one heading each.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Statuses and messages", &["status"]),
    ("Bytes and callbacks", &["types"]),
    ("Options", &["options"]),
    (
        "Trees: ordered maps that stay compressed",
        &["tree", "tree_swap", "tree_many"],
    ),
    ("Trees: ranges and cursors", &["tree_scan", "tree_cursor"]),
    ("Trees: upkeep and figures", &["tree_upkeep", "tree_stats"]),
    (
        "Caches: maps that forget, within a bound of memory",
        &["cache", "cache_load", "cache_swap"],
    ),
    ("Caches: ranges and figures", &["cache_scan", "cache_stats"]),
    ("Dictionaries", &["dictionary"]),
    ("Codecs: compressing bytes of your own", &["codec"]),
    ("Sealed blocks: they say themselves what they are", &["sealed"]),
];

/// What stands before the sections and behind them.
const BEGIN: &str = include_str!("header/begin.h");
const END: &str = include_str!("header/end.h");

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn config() -> cbindgen::Config {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        style: cbindgen::Style::Type,
        no_includes: true,
        documentation: true,
        documentation_style: cbindgen::DocumentationStyle::Doxy,
        line_length: 100,
        usize_is_size_t: true,
        ..cbindgen::Config::default()
    };
    config.function.args = cbindgen::Layout::Auto;
    config.function.prefix = Some("LP_API".to_owned());
    config
}

/// The types of a file. They would be left out where none of its own functions takes them.
fn types_of(source: &str) -> Vec<String> {
    let declared = source.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ")?;
        let name = ["struct ", "enum ", "type "]
            .iter()
            .find_map(|kind| line.strip_prefix(kind))?;
        Some(
            name.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()?
                .to_owned(),
        )
    });
    declared.collect()
}

/// What C sees of one file.
fn of_file(name: &str) -> String {
    let path = root().join("src/sections").join(name).with_extension("rs");
    let mut config = config();
    config.export.include = types_of(&std::fs::read_to_string(&path).unwrap());
    let bindings = cbindgen::Builder::new().with_config(config).with_src(&path).generate();
    let mut text = Vec::new();
    bindings
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .write(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(!text.trim().is_empty(), "{name} has nothing for the header");
    text
}

/// Takes the handles, each with its comment, out of a section. All stand before all functions, which may take several.
fn take_handles(section: &str, handles: &mut Vec<String>) -> String {
    let mut rest = Vec::new();
    for block in section.split("\n\n") {
        let is_handle = |line: &str| line.starts_with("typedef struct ") && line.ends_with(';');
        match block.lines().last() {
            Some(last) if is_handle(last) => handles.push(block.trim().to_owned()),
            _ => rest.push(block),
        }
    }
    rest.join("\n\n")
}

fn heading(text: &str) -> String {
    let line = "=".repeat(74);
    format!("/* {line}\n * {text}\n * {line} */\n\n")
}

/// The header as the sources say it.
fn made() -> String {
    let (mut handles, mut sections) = (Vec::new(), String::new());
    for (text, files) in SECTIONS {
        sections.push_str(&heading(text));
        for file in *files {
            sections.push_str(take_handles(&of_file(file), &mut handles).trim());
            sections.push_str("\n\n");
        }
    }
    let handles = heading("Handles") + &handles.join("\n\n");
    let text = wrapped(&format!("{BEGIN}\n{handles}\n\n{sections}{END}"));
    short_comments(&tagged(&aligned(&text)))
}

/// `LP_API` on the line of its function, whose further lines move with it.
fn aligned(header: &str) -> String {
    let mut out = String::new();
    let mut moves = false;
    for line in header.lines() {
        if line == "LP_API" {
            out.push_str("LP_API ");
            moves = true;
            continue;
        }
        if moves && line.starts_with(' ') {
            out.push_str("       ");
        }
        moves &= !line.ends_with(';');
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Structs and enums with their names in front as well, so that they can be declared ahead.
fn tagged(header: &str) -> String {
    let mut out = header.to_owned();
    for kind in ["typedef struct {", "typedef enum {"] {
        while let Some(at) = out.find(kind) {
            let end = at + out[at..].find("\n} ").unwrap() + 3;
            let name = out[end..].split(';').next().unwrap().to_owned();
            out.insert_str(at + kind.len() - 1, &format!("{name} "));
        }
    }
    out
}

/// Comments of one line on one line, where they fit.
fn short_comments(header: &str) -> String {
    let lines: Vec<&str> = header.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let short = match &lines[at..] {
            [begin, text, end, ..] if begin.trim() == "/**" && end.trim() == "*/" => {
                let indent = &begin[..begin.len() - 3];
                let text = text.trim_start().trim_start_matches("* ");
                Some(format!("{indent}/** {text} */")).filter(|line| line.len() <= 100)
            }
            _ => None,
        };
        at += if short.is_some() { 3 } else { 1 };
        out.push_str(short.as_deref().unwrap_or_else(|| lines[at - 1]));
        out.push('\n');
    }
    out
}

/// Comments of several lines, filled to 80 columns: a paragraph is what is between empty lines.
fn wrapped(header: &str) -> String {
    let mut out = String::new();
    let mut paragraph: Option<(String, String)> = None;
    for line in header.lines() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let words = line
            .trim_start()
            .strip_prefix("* ")
            .filter(|words| !words.starts_with(['=', ' ']));
        match (words, &mut paragraph) {
            (Some(words), Some((_, text))) => {
                text.push(' ');
                text.push_str(words);
            }
            (Some(words), None) => paragraph = Some((indent, words.to_owned())),
            (None, _) => {
                flush(&mut out, paragraph.take());
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
    }
    flush(&mut out, paragraph);
    out
}

fn flush(out: &mut String, paragraph: Option<(String, String)>) {
    let Some((indent, text)) = paragraph else { return };
    let mut line = format!("{indent}*");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > 80 && !line.ends_with('*') {
            out.push_str(&line);
            out.push('\n');
            line = format!("{indent}*");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = root().join("include/leafpress.h");
    let made = made();
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

/// No section was left out of the header, and every function in it has a documentation.
#[test]
fn every_section_is_in_the_header() {
    let files = std::fs::read_dir(root().join("src/sections")).unwrap();
    for file in files {
        let name = file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        let is_there = SECTIONS.iter().any(|(_, files)| files.contains(&name.as_str()));
        assert!(is_there || name == "mod", "{name} is in no section");
    }
    let header = std::fs::read_to_string(root().join("include/leafpress.h")).unwrap();
    let mut before = "";
    for line in header.lines() {
        if line.starts_with("LP_API") {
            assert!(before.ends_with("*/"), "no documentation: {line}");
        }
        before = line;
    }
    assert!(Path::new(&root()).join("include/leafpress.hpp").exists());
}
