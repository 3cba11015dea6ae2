use proptest::prelude::*;

use super::*;

fn read(format: &str, text: &str) -> Result<Records, LabError> {
    Records::from_parts("dump", vec![text.as_bytes().to_vec()], &format.parse().unwrap())
}

/// Keys and values in the order of the keys.
fn pairs(format: &str, text: &str) -> Vec<(String, String)> {
    let records = read(format, text).unwrap();
    let shown = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (0..records.keys.len())
        .map(|id| (shown(records.keys.get(id)), shown(records.values.get(id))))
        .collect()
}

fn refusal(format: &str, text: &str) -> String {
    read(format, text).unwrap_err().to_string()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

#[test]
fn json_documents_have_their_pointers_values_as_keys() {
    let text = "{\"user\":{\"id\":\"b\"},\"n\":1}\r\n\n  \n{\"user\":{\"id\":\"a \\u00e9\"}}\n{\"user\":{\"id\":7}}";
    assert_eq!(
        pairs("jsonl:/user/id", text),
        owned(&[
            ("7", "{\"user\":{\"id\":7}}"),
            ("a é", "{\"user\":{\"id\":\"a \\u00e9\"}}"),
            ("b", "{\"user\":{\"id\":\"b\"},\"n\":1}"),
        ])
    );
    assert_eq!(pairs("jsonl:/0", "[5,6]\n[-1.5]\n")[0].0, "-1.5");
    assert_eq!(pairs("jsonl:/a~1b", "{\"a/b\":\"x\"}")[0].0, "x");
    let census = read(
        "jsonl:/id",
        "{\"id\":null}\n{}\n{\"id\":[1]}\n{\"id\":\"\"}\n{\"id\":1}\n",
    )
    .unwrap()
    .census;
    assert_eq!((census.records, census.without_key), (1, 4));
}

#[test]
fn rows_have_their_columns_fields_as_keys() {
    let text = "name,id,note\r\nada,2,\"x, \"\"y\"\"\"\r\n\r\nbob,1,\"two\nlines\"\n";
    assert_eq!(
        pairs("csv:id", text),
        owned(&[("1", "bob,1,\"two\nlines\""), ("2", "ada,2,\"x, \"\"y\"\"\"")])
    );
    assert_eq!(
        pairs("csv:name", "\u{feff}name,id\nada,2")[0].0,
        "ada",
        "the byte order mark is not in the name"
    );
}

/// The rest of the file would be in the last row.
#[test]
fn reports_an_unterminated_quote_with_its_line() {
    for (text, line) in [
        ("id,txt\n1,\"never closed\n2,text\n3,text\n", 2),
        ("id,txt\n1,one\n2,two\n3,\"", 4),
        ("id,txt\n1,\"closed\nover lines\",\n".trim_end_matches(",\n"), 0),
        ("\"id,txt\n1,2\n", 1),
        ("id,txt\n1,\"a \"\" b\"\n2,\"x\ny\n", 3),
        ("id,txt\n1,5\" disk\n", 0),
    ] {
        match line {
            0 => drop(read("csv:id", text).unwrap()),
            _ => {
                let refusal = refusal("csv:id", text);
                assert!(
                    refusal.contains(&format!("line {line}: unterminated quoted field")),
                    "{text:?}: {refusal}"
                );
            }
        }
    }
}

#[test]
fn ignores_a_byte_order_mark_before_records() {
    for (format, text, pair) in [
        ("csv:id", "id,n\na,1\n", ("a", "a,1")),
        ("tsv", "a\t1\n", ("a", "1")),
        ("jsonl:/id", "{\"id\":\"a\"}\n", ("a", "{\"id\":\"a\"}")),
        ("stanzas:Id", "Id: a\nN: 1\n", ("a", "Id: a\nN: 1")),
    ] {
        for text in [text.to_owned(), format!("\u{feff}{text}")] {
            assert_eq!(pairs(format, &text), owned(&[pair]), "{format} {text:?}");
        }
    }
}

#[test]
fn stanzas_have_their_fields_values_as_keys() {
    let text = "# of a comment\n\nPackage: zsh\nDescription: a shell\n with more\n # no comment\n\n \t\npackage:  ash \
                \r\nSize: 3\r\n\nSize: 4\n";
    assert_eq!(
        pairs("stanzas:Package", text),
        owned(&[
            ("ash", "package:  ash \r\nSize: 3"),
            ("zsh", "Package: zsh\nDescription: a shell\n with more\n # no comment"),
        ])
    );
    assert_eq!(read("stanzas:Package", text).unwrap().census.without_key, 1);
    assert_eq!(
        pairs("stanzas:a", "A: 1\nA: 2\n")[0].0,
        "1",
        "the first field of a name counts"
    );
}

#[test]
fn lines_have_a_tab_between_key_and_value() {
    assert_eq!(
        pairs("tsv", "b\tone\ttwo\n\na\t\r\n \n"),
        owned(&[("a", ""), ("b", "one\ttwo")])
    );
    assert_eq!(read("tsv", "\tvalue\nk\tv").unwrap().census.without_key, 1);
}

#[test]
fn of_records_with_one_key_the_last_counts() {
    let records = read("tsv", "k\t1\na\t1\nk\t2\na\t2\nk\t3\n").unwrap();
    assert_eq!((records.census.records, records.census.duplicates), (2, 3));
    assert_eq!(
        (records.values.get(0), records.values.get(1)),
        (b"2".as_slice(), b"3".as_slice())
    );
    let words = records.census.left_out().unwrap();
    assert_eq!(words, "skipped: 3 with a duplicate key (the last one counts)");
}

#[test]
fn keys_that_no_tree_takes_are_left_out_and_counted() {
    let text = format!(
        "{}\tv\n{}\tv\n",
        "k".repeat(MAX_KEY_BYTES),
        "k".repeat(MAX_KEY_BYTES + 1)
    );
    let census = read("tsv", &text).unwrap().census;
    assert_eq!((census.records, census.long_keys), (1, 1));
    assert_eq!(census.left_out().unwrap(), "skipped: 1 with a key over 1024 bytes");
    assert_eq!(Census::default().left_out(), None);
}

#[test]
fn reports_malformed_records_with_their_line() {
    for (format, text, line, words) in [
        (
            "jsonl:/id",
            "{\"id\":1}\n\n{\"id\":",
            3,
            "not valid JSON (one document per line expected): EOF while parsing a value",
        ),
        ("jsonl:/id", "[\n{\"id\":1}\n]", 1, "EOF while parsing"),
        ("jsonl:/id", "{\"id\":1} {\"id\":2}", 1, "trailing characters"),
        (
            "csv:id",
            "id,b\n1,2\n3\n",
            3,
            "1 fields in a row; the first line names 2 columns",
        ),
        ("csv:key", "id,b\n1,2\n", 1, "no column is named `key`; columns: id b"),
        ("stanzas:Package", "Package: a\n\n more\n", 3, "begins with a blank"),
        (
            "stanzas:Package",
            "Package: a\nwhat is this\n",
            2,
            "neither `Field: value`",
        ),
        ("stanzas:Package", "Package: a\n: b\n", 2, "neither `Field: value`"),
        ("tsv", "a\tb\nc d\n", 2, "no tab"),
    ] {
        let refusal = refusal(format, text);
        assert!(refusal.starts_with(&format!("data dump: line {line}: ")), "{refusal}");
        assert!(
            refusal.contains(words) && refusal.ends_with(&format!("(--records {format})")),
            "{refusal}"
        );
        assert!(!refusal.contains('\n'), "{refusal}");
    }
    let parts = vec![b"a\tb\n".to_vec(), b"a\n".to_vec()];
    let refusal = Records::from_parts("dump", parts, &RecordFormat::Tsv)
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("data dump: file 2 of 2, line 1: no tab"),
        "{refusal}"
    );
}

#[test]
fn a_dump_without_a_record_is_an_error() {
    assert_eq!(refusal("tsv", ""), "data dump: it is empty");
    for (format, text, words) in [
        ("tsv", "\n\n", "it contains no record with a key (--records tsv)"),
        ("jsonl:/id", "{}\n", "no record with a key (skipped: 1 without a key)"),
        ("csv:id", "id,name\n", "no record with a key"),
        ("csv:id", "\n", "no record with a key"),
        ("stanzas:A", "# nothing\n", "no record with a key"),
    ] {
        let refusal = refusal(format, text);
        assert!(refusal.contains(words), "{refusal}");
    }
    let refusal = Records::load(&Source::Synthetic(0.5), &RecordFormat::Tsv)
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("records: synthetic:0.5 has no records"),
        "{refusal}"
    );
}

#[test]
fn formats_round_trip_and_wrong_ones_are_reported() {
    for name in [
        "jsonl:/id",
        "jsonl:/a~1b/0",
        "csv:first name",
        "csv:a:b",
        "stanzas:Package",
        "tsv",
    ] {
        assert_eq!(name.parse::<RecordFormat>().unwrap().to_string(), name);
    }
    for name in [
        "",
        "json",
        "jsonl",
        "jsonl:id",
        "jsonl:",
        "jsonl:/a~2",
        "jsonl:/a~",
        "csv",
        "csv:",
        "stanzas:",
        "stanzas:a b",
        "tsv:1",
    ] {
        let refusal = name.parse::<RecordFormat>().unwrap_err().to_string();
        assert!(
            refusal.starts_with("records: ") && refusal.contains(&format!("`{name}`")),
            "{refusal}"
        );
    }
}

#[test]
fn some_of_the_records_are_spread_evenly() {
    let text: String = (0..100).map(|id| format!("{id:03}\tvalue {id}\n")).collect();
    let records = read("tsv", &text).unwrap();
    assert_eq!(records.clone().take(1000).keys.len(), 100);
    let some = records.take(4);
    let seen: Vec<_> = (0..4).map(|id| (some.keys.get(id), some.values.get(id))).collect();
    let expected = [
        ("000", "value 0"),
        ("025", "value 25"),
        ("050", "value 50"),
        ("075", "value 75"),
    ];
    assert_eq!(seen, expected.map(|(key, value)| (key.as_bytes(), value.as_bytes())));
}

proptest! {
    /// Whatever a dump holds, no parser panics, and what is found lies in the dump.
    #[test]
    fn no_dump_is_too_strange(bytes in prop::collection::vec(prop::sample::select(b"ak:/#,\"\t\r\n \
                                                                                    {}[]1\xc3".to_vec()), 0..200)) {
        for format in ["jsonl:/a", "csv:a", "stanzas:a", "tsv"] {
            if let Ok(records) = Records::from_parts("x", vec![bytes.clone()], &format.parse().unwrap()) {
                prop_assert_eq!(records.keys.len(), records.values.count());
                prop_assert!((0..records.keys.len()).all(|id| records.values.get(id).len() <= bytes.len()));
            }
        }
    }

    /// A written dump reads back equal, in every format.
    #[test]
    fn dumps_read_back_as_they_were_written(
        records in prop::collection::btree_map("[a-z][a-z0-9.,\" -]{0,20}[a-z]", "[a-zA-Z0-9,\"\\\\:# -]{0,60}", 1..30)
    ) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let json = |(key, value): (&String, &String)| serde_json::json!({"id": key, "text": value}).to_string();
        let dumps: [(&str, Vec<String>); 4] = [
            ("jsonl:/id", records.iter().map(json).collect()),
            ("csv:id", records.iter().map(|(key, value)| format!("{},{}", quoted(value), quoted(key))).collect()),
            ("stanzas:Id", records.iter().map(|(key, value)| format!("Text: {value}\nId: {key}")).collect()),
            ("tsv", records.values().cloned().collect()),
        ];
        for (format, values) in dumps {
            let dump = match format {
                "csv:id" => format!("text,id\n{}\n", values.join("\n")),
                "stanzas:Id" => values.join("\n\n"),
                "tsv" => records.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect(),
                _ => values.join("\n"),
            };
            let seen = pairs(format, &dump);
            prop_assert!(seen.iter().map(|(key, _)| key).eq(records.keys()), "{}", format);
            prop_assert!(seen.iter().map(|(_, value)| value).eq(values.iter()), "{}:\n{}", format, dump);
        }
    }
}
