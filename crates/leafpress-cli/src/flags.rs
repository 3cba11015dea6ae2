//! Checks the commands' flags against the rules of docs/flags.md, and its tables against the commands: those of
//! `leafpress` and of `leafpress-rocksdb`, whose command line is a crate without RocksDB.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write};
use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};
use leafpress_console::given::Given;
use leafpress_lab::cache::{PaperObjects, Work};
use leafpress_lab::core::corpus::Source;
use leafpress_lab::peers::PeersConfig;
use leafpress_lab::{EvalConfig, bench, cache, device, model, pool};

use crate::Cli;

/// Sections with another program's options: PiBench's in `bench`, Tyche's in `pool`, db_bench's in `leafpress-rocksdb`,
/// with their own names and letters.
const OTHERS: [&str; 3] = ["PiBench's options", "Tyche's options", "db_bench's options"];
/// Flags whose meaning differs in one command: `bench` writes a file where others print.
const EXCEPTIONS: [(&str, &str); 1] = [("bench", "json")];
/// The marker before the table in the document.
const MARK: &str = "<!-- The rest is written by the test in crates/leafpress-cli/src/flags.rs. -->\n";
/// The text before the flags of `leafpress-rocksdb`.
const ROCKSDB: &str = "\n## leafpress-rocksdb\n\nIts `cache` has the flags of `leafpress cache`. The others, with \
                       db_bench's own flags marked `*`, whose underscores\nmay be hyphens:\n";

/// A flag of a command.
struct Flag {
    command: String,
    /// With hyphens, as in all commands except `bench`.
    name: String,
    short: Option<char>,
    /// The value's name; empty for a switch.
    value: String,
    help: String,
    /// Whether it is another program's.
    is_others: bool,
}

impl Flag {
    fn of(program: &str, command: &Command, arg: &Arg) -> Option<Self> {
        let name = arg.get_long()?.replace('_', "-");
        let takes_value = arg.get_action().takes_values();
        let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
        Some(Self {
            command: format!("{program}{}", command.get_name()),
            short: arg.get_short(),
            value: if takes_value { value } else { String::new() },
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            is_others: arg.get_help_heading().is_some_and(|heading| OTHERS.contains(&heading)),
            name,
        })
    }

    fn is_exception(&self) -> bool {
        EXCEPTIONS.contains(&(self.command.as_str(), self.name.as_str()))
    }
}

/// The flags of a command line by name, the names of its commands behind `program`.
fn flags_of(program: &str, cli: &Command) -> Vec<Flag> {
    let commands = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let of = |command: &Command| {
        let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags = arguments.filter_map(|arg| Flag::of(program, command, arg));
        flags.collect::<Vec<_>>()
    };
    let mut flags: Vec<Flag> = commands.flat_map(of).filter(|flag| flag.name != "help").collect();
    flags.sort_by(|one, other| (&one.name, &one.command).cmp(&(&other.name, &other.command)));
    flags
}

fn of_leafpress() -> Vec<Flag> {
    flags_of("", &Cli::command())
}

fn of_rocksdb() -> Vec<Flag> {
    flags_of("rocksdb ", &leafpress_rocksdb_arguments::Cli::command())
}

fn flags() -> Vec<Flag> {
    let mut flags = of_leafpress();
    flags.extend(of_rocksdb());
    flags
}

#[test]
fn a_letter_stands_for_one_flag() {
    let mut letters: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for flag in flags().iter().filter(|flag| !flag.is_others) {
        if let Some(short) = flag.short {
            letters.entry(short).or_default().insert(flag.name.clone());
        }
    }
    for (letter, names) in &letters {
        assert_eq!(names.len(), 1, "-{letter} is {names:?}");
    }
    // A letter means the same flag in all commands, except where another program uses it.
    for flag in flags().iter().filter(|flag| !flag.is_others && flag.command != "bench") {
        for (letter, names) in &letters {
            if names.contains(&flag.name) {
                assert_eq!(flag.short, Some(*letter), "--{} of {}", flag.name, flag.command);
            }
        }
    }
}

/// The rules list the letters that have a second meaning as another program's options.
#[test]
fn letters_with_two_meanings_are_listed() {
    let mut letters: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for flag in of_leafpress() {
        if let Some(short) = flag.short {
            letters.entry(short).or_default().insert(flag.name);
        }
    }
    letters.retain(|_, names| names.len() > 1);
    let listed: Vec<_> = letters.keys().map(|letter| format!("`-{letter}`")).collect();
    let (last, others) = listed.split_last().expect("some letters have two meanings");
    let sentence = format!("{} and {last} have a second meaning there.", others.join(", "));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/flags.md");
    let document = std::fs::read_to_string(path).expect("docs/flags.md");
    assert!(document.contains(&sentence), "docs/flags.md lacks: {sentence}");
}

#[test]
fn a_flag_takes_the_same_everywhere() {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for flag in flags()
        .into_iter()
        .filter(|flag| !flag.is_others && !flag.is_exception())
    {
        values.entry(flag.name).or_default().insert(flag.value);
    }
    for (name, of) in values {
        // Where one command takes a single value, another may take a list.
        let kinds = of.iter().filter(|value| *value != "LIST").count();
        assert!(kinds <= 1, "--{name} takes {of:?}");
    }
}

/// Every output goes to `--out DIR`.
#[test]
fn what_is_written_goes_to_out() {
    let flags = flags();
    for command in [
        "advise",
        "bench",
        "cache",
        "device",
        "eval",
        "model",
        "peers",
        "pool",
        "suite",
        "rocksdb bench",
        "rocksdb matrix",
        "rocksdb frontier",
        "rocksdb caches",
        "rocksdb cache",
    ] {
        let out = flags.iter().find(|flag| flag.command == command && flag.name == "out");
        let out = out.unwrap_or_else(|| panic!("{command} has no --out"));
        assert_eq!((out.value.as_str(), out.short), ("DIR", Some('o')), "{command}");
    }
}

/// The first sentence of a help text, without its default.
fn meaning(help: &str) -> String {
    let help = help.split(" [default").next().unwrap_or(help);
    help.replace('|', "\\|").replace('\n', " ")
}

fn table(flags: Vec<Flag>) -> String {
    let mut table = String::from("\n| flag | takes | commands | meaning |\n|---|---|---|---|\n");
    let mut rows: Vec<(Flag, Vec<String>)> = Vec::new();
    for flag in flags {
        let command = flag.command.trim_start_matches("rocksdb ");
        let mine = format!("`{command}`{}", if flag.is_others { "*" } else { "" });
        match rows.last_mut() {
            Some((last, commands)) if last.name == flag.name && !flag.is_exception() && !last.is_exception() => {
                commands.push(mine);
                // `bench` describes its own part of a flag.
                if (last.is_others || last.command == "bench") && !flag.is_others {
                    *last = flag;
                }
            }
            _ => rows.push((flag, vec![mine])),
        }
    }
    for (flag, commands) in rows {
        let short = flag.short.map_or_else(String::new, |short| format!("`-{short}`, "));
        let _ = writeln!(
            table,
            "| {short}`--{}` | {} | {} | {} |",
            flag.name,
            flag.value.replace('|', "\\|"),
            commands.join(", "),
            meaning(&flag.help)
        );
    }
    table
}

#[test]
fn the_document_has_every_flag() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/flags.md");
    let document = std::fs::read_to_string(&path).expect("docs/flags.md");
    let (rules, found) = document.split_once(MARK).expect("the mark in docs/flags.md");
    let mut of_rocksdb = of_rocksdb();
    of_rocksdb.retain(|flag| flag.command != "rocksdb cache");
    let table = table(of_leafpress()) + ROCKSDB + &table(of_rocksdb);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{rules}{MARK}{table}")).expect("docs/flags.md is written");
    } else {
        assert!(
            found == table,
            "docs/flags.md does not match the commands; regenerate it with UPDATE_GOLDEN=1"
        );
    }
}

/// Counts the options whose help names a default, each of which is the one of `defaults`. One that is described in
/// words is not counted.
fn stated_defaults<O: Args + Clone + PartialEq + Debug>(defaults: &O) -> usize {
    let command = Given::<O>::augment_args(Command::new("command"));
    let has_stated_default = |arg: &&Arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let default = help
            .rsplit_once("[default: ")
            .and_then(|(_, rest)| rest.split_once([']', ';']));
        let Some((word, _)) = default.filter(|(word, _)| !word.contains(' ')) else {
            return false;
        };
        let flag = format!("--{}={word}", arg.get_long().expect("a flag"));
        let Ok(matches) = command.clone().try_get_matches_from(["command", &flag]) else {
            return false;
        };
        let given = Given::<O>::from_arg_matches(&matches).expect("the flags");
        let mut options = defaults.clone();
        given.set(&mut options);
        assert_eq!(options, *defaults, "{flag}");
        true
    };
    command.get_arguments().filter(has_stated_default).count()
}

#[test]
fn the_help_states_the_defaults() {
    let packages = Source::Sample("packages".into());
    let stated_defaults = [
        stated_defaults(&bench::Options::new(bench::Input::Builtin(bench::Builtin::Dummy))),
        stated_defaults(&cache::Options::new(Work::Paper(PaperObjects::default()))),
        stated_defaults(&device::Options::new("path")),
        stated_defaults(&EvalConfig::default()),
        stated_defaults(&model::Options::new(model::Method::Corrected)),
        stated_defaults(&PeersConfig::default()),
        stated_defaults(&pool::Options::new(packages)),
    ];
    assert_eq!(stated_defaults, [24, 3, 6, 26, 6, 11, 11]);
}
