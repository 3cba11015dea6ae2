//! Checks the documents against the commands: every command in an example or table must parse.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::Cli;

/// The marker before the rows of a table that `scripts/tables` writes.
const TABLE: &str = "<!-- scripts/tables: ";

/// Placeholders, and a value for each.
const PLACEHOLDERS: [(&str, &str); 5] = [
    ("N", "1"),
    ("M", "1"),
    ("US", "1"),
    ("LAW", "uniform"),
    ("x=RATIO,..", "x=2,1,1"),
];

/// README.md and the documents, except the records of experiments.
fn documents() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["docs", "docs/commands"].into_iter().flat_map(|folder| {
        let entries = top.join(folder).read_dir().expect("a folder of documents");
        entries.map(|entry| entry.expect("an entry").path())
    });
    let mut documents: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    documents.push(top.join("README.md"));
    documents.sort();
    documents
}

/// Splits a line as a shell does: at spaces outside quotes, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut is_word = false;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, '#' | '|' | '>' | ';' | '&') if !is_word => break,
            (None, ' ') => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (_, letter) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    words.extend(is_word.then_some(word));
    words
}

/// Commands of this program in a document: lines of code that begin with its name, and rows of measured tables.
fn commands(document: &str) -> Vec<Vec<String>> {
    let (mut is_code, mut is_table) = (false, false);
    let mut commands = Vec::new();
    let joined = document.replace("\\\n", " ");
    for line in joined.lines() {
        is_code ^= line.trim_start().starts_with("```");
        is_table = line.starts_with(TABLE) || (is_table && !line.starts_with("-->"));
        let line = match line.split_once(": leafpress ") {
            Some((_, command)) if is_table => format!("leafpress {command}"),
            _ if is_code => line.trim_start().trim_start_matches("$ ").to_owned(),
            _ => continue,
        };
        let mut words = words(&line);
        let name = words.first().map(String::as_str);
        // In a Cargo.toml it is a dependency.
        let is_command = matches!(name, Some("leafpress" | "target/release/leafpress"))
            && words.get(1).is_none_or(|word| word != "=");
        if is_command {
            for word in &mut words {
                if let Some((_, value)) = PLACEHOLDERS.iter().find(|(name, _)| name == word) {
                    *word = (*value).to_owned();
                }
            }
            commands.push(words);
        }
    }
    commands
}

#[test]
fn commands_in_documents_are_taken() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in documents() {
        let document = std::fs::read_to_string(&path).expect("a document");
        for command in commands(&document) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&command)
                && error.use_stderr()
            {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{}: {}: {reason}", path.display(), command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands were found");
}

#[test]
fn commands_are_found_as_a_shell_reads_them() {
    let document = "text `leafpress nonsense`\n```\nleafpress eval --data 'a b' \\\n  --keys 5 # why\n  leafpress \
                    peers > out\nother\n```\n\
                    <!-- scripts/tables: peers\nkeys: 8 bytes: leafpress peers --keys 7\n-->\n";
    let found: Vec<_> = commands(document).iter().map(|words| words.join("_")).collect();
    assert_eq!(
        found,
        [
            "leafpress_eval_--data_a b_--keys_5",
            "leafpress_peers",
            "leafpress_peers_--keys_7"
        ]
    );
}

/// The first table of the README is reproduced by one command.
#[test]
fn the_table_of_the_readme_has_its_commands() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(top.join("README.md")).expect("README.md");
    let (_, behind) = readme.split_once(TABLE).expect("a table with its commands");
    let (rows, table) = behind.split_once("\n-->\n").expect("the end of the commands");
    let (table, _) = table
        .split_once("<!-- scripts/tables: end -->")
        .expect("the end of the table");
    // The heading and a rule precede the rows.
    assert_eq!(rows.lines().skip(1).count(), table.lines().skip(2).count(), "{table}");
    for (row, line) in rows.lines().skip(1).zip(table.lines().skip(2)) {
        let (name, _) = row.split_once(": leafpress ").expect("a command");
        assert!(line.starts_with(&format!("| {name} |")), "{line}");
    }
}
