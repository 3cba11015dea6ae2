//! Makes `include/leafpress.h` of the sources of the C interface. It is a package of its own, so that cbindgen's
//! dependencies have no part in how the library is compiled.
#![warn(missing_docs)]

use std::fmt;
use std::path::PathBuf;

/// The header's sections: a heading, what threads may do, and files of `src/sections`.
pub const SECTIONS: &[(&str, &str, &[&str])] = &[
    (
        "Statuses and messages",
        "Any thread may call these at any time.",
        &["status"],
    ),
    ("Bytes and callbacks", "", &["types"]),
    (
        "Options",
        "One thread at a time may call these with the same options.",
        &["options"],
    ),
    (
        "Trees: ordered maps that stay compressed",
        "Any number of threads may call these with the same tree, but lp_tree_free(), which comes last.",
        &["tree", "tree_swap", "tree_many"],
    ),
    (
        "Trees: ranges",
        "Any number of threads may call these with the same tree.",
        &["tree_scan"],
    ),
    (
        "Trees: cursors",
        "One thread at a time may call these with the same cursor; others may use its tree, and other cursors.",
        &["tree_cursor"],
    ),
    (
        "Trees: upkeep and figures",
        "Any number of threads may call these with the same tree, and go on using it, but for lp_tree_validate().",
        &["tree_upkeep", "tree_stats"],
    ),
    (
        "Caches: maps that forget, within a bound of memory",
        "Any number of threads may call these with the same cache, but lp_cache_close() and lp_cache_free(), of which \
         one comes last; and lp_cache_validate() while no other writes.",
        &["cache", "cache_load", "cache_swap"],
    ),
    (
        "Caches: ranges and figures",
        "Any number of threads may call these with the same cache.",
        &["cache_scan", "cache_stats"],
    ),
    (
        "Dictionaries",
        "Any number of threads may call these with the same dictionary, but lp_dictionary_free(), which comes last.",
        &["dictionary"],
    ),
    (
        "Codecs: compressing bytes of your own",
        "Any number of threads may call these with the same codec, but lp_codec_free(), which comes last.",
        &["codec"],
    ),
    (
        "Sealed blocks: they say themselves what they are",
        "Any number of threads may call these, with the same codec and dictionaries as well.",
        &["sealed"],
    ),
];

/// What stands before the sections and behind them.
const BEGIN: &str = include_str!("begin.h");
const END: &str = include_str!("end.h");

/// Returns a path within `integrations/c`.
pub fn path(within: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(within)
}

/// Why there is no header.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn error(file: &str, reason: impl fmt::Display) -> Error {
    Error(format!("src/sections/{file}.rs: {reason}"))
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

/// Returns the types of a file. They would be left out where none of its own functions takes them.
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
fn of_file(name: &str) -> Result<String, Error> {
    let file = path("src/sections").join(name).with_extension("rs");
    let source = std::fs::read_to_string(&file).map_err(|reason| error(name, reason))?;
    let mut config = config();
    config.export.include = types_of(&source);
    let bindings = cbindgen::Builder::new().with_config(config).with_src(&file).generate();
    let mut text = Vec::new();
    bindings.map_err(|reason| error(name, reason))?.write(&mut text);
    let text = String::from_utf8(text).map_err(|reason| error(name, reason))?;
    if text.trim().is_empty() {
        return Err(error(name, "it has nothing for the header"));
    }
    Ok(text)
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

fn heading(text: &str, threads: &str) -> String {
    let line = "=".repeat(74);
    let note = if threads.is_empty() {
        String::new()
    } else {
        format!(" *\n * {threads}\n")
    };
    format!("/* {line}\n * {text}\n{note} * {line} */\n\n")
}

/// Returns the header as the sources say it.
///
/// # Errors
/// A file that cannot be read, or that has nothing for C.
pub fn made() -> Result<String, Error> {
    let (mut handles, mut sections) = (Vec::new(), String::new());
    for (text, threads, files) in SECTIONS {
        sections.push_str(&heading(text, threads));
        for file in *files {
            sections.push_str(take_handles(&of_file(file)?, &mut handles).trim());
            sections.push_str("\n\n");
        }
    }
    let handles = heading("Handles", "") + &handles.join("\n\n");
    let text = wrapped(&format!("{BEGIN}\n{handles}\n\n{sections}{END}"));
    // What is shared changes inside, whatever is done with it; `const` would say that it does not.
    let text = text
        .replace("const lp_tree *", "lp_tree *")
        .replace("const lp_cache *", "lp_cache *");
    Ok(short_comments(&tagged(&aligned(&text))))
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
            let Some(end) = out[at..].find("\n} ").map(|end| at + end + 3) else {
                break;
            };
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
