//! The report of a command: filled once, and rendered as text for a terminal, as a page, and as files.

use std::path::Path;

use maud::{Markup, html};
use plotters::style::RGBColor;
use serde::Serialize;

use super::html::{self, cell, lines, swatch};
use super::paragraph::wrapped;
use super::table::{Marked, of_figures, of_parts, starred, under_names};
use super::width::page_width;
use super::{Part, Written, json, verdict, write_all};
use crate::core::LabError;

/// Characters of the name of a group of rows, as text.
const MAX_NAME: usize = 24;

/// A report. Its charts are drawn when its page is.
pub struct Document<'r> {
    /// The title of the page.
    pub title: String,
    /// The conclusions, a sentence each.
    pub verdicts: Vec<String>,
    /// Caveats of the verdicts and figures.
    pub cautions: Vec<String>,
    /// Lines that describe the data and the measurement.
    pub head: Vec<String>,
    /// What failed, or was interrupted.
    pub troubles: Vec<String>,
    /// What is missing, and why.
    pub remarks: Vec<String>,
    /// How the figures were obtained, in a word: measured, or computed.
    pub how: &'static str,
    /// Settings of the measurement, with names; on the page.
    pub terms: Vec<(&'static str, String)>,
    /// Explanations of the figures, with markup; on the page.
    pub notes: Vec<&'static str>,
    parts: Vec<Block<'r>>,
    files: Vec<File<'r>>,
    /// Files that a report of another kind has.
    absent: Vec<&'static str>,
    own_page: Option<OfCommandLine<'r>>,
}

/// What makes a text of the command line.
type OfCommandLine<'r> = Box<dyn Fn(&str) -> Result<String, LabError> + 'r>;

/// A description, a name, and the text.
type File<'r> = (&'static str, String, OfCommandLine<'r>);

/// A part of a report between its head and its notes.
enum Block<'r> {
    Heading(String),
    /// A paragraph, and whether it explains figures.
    Paragraph(String, bool),
    Table(Table),
    /// What only the text has.
    Text(String),
    /// What only the page has.
    Page(Box<dyn Fn() -> Result<Markup, LabError> + 'r>),
}

impl<'r> Document<'r> {
    /// Creates an empty report.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            verdicts: Vec::new(),
            cautions: Vec::new(),
            head: Vec::new(),
            troubles: Vec::new(),
            remarks: Vec::new(),
            how: "measured",
            terms: Vec::new(),
            notes: Vec::new(),
            parts: Vec::new(),
            files: Vec::new(),
            absent: Vec::new(),
            own_page: None,
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, heading: impl Into<String>) {
        self.parts.push(Block::Heading(heading.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.parts.push(Block::Paragraph(text.into(), false));
    }

    /// Adds a paragraph that explains figures.
    pub fn caption(&mut self, text: impl Into<String>) {
        self.parts.push(Block::Paragraph(text.into(), true));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.parts.push(Block::Table(table));
    }

    /// Adds text that is not on the page.
    pub fn text_only(&mut self, text: impl Into<String>) {
        self.parts.push(Block::Text(text.into()));
    }

    /// Adds what is only on the page, such as charts.
    pub fn page_only(&mut self, part: impl Fn() -> Result<Markup, LabError> + 'r) {
        self.parts.push(Block::Page(Box::new(part)));
    }

    /// Adds a table for programs, with a description and the name of its file.
    pub fn tsv(&mut self, what: &'static str, name: impl Into<String>, text: impl Fn() -> String + 'r) {
        self.files.push((what, name.into(), Box::new(move |_| Ok(text()))));
    }

    /// Adds `results.json`.
    pub fn results(&mut self, results: impl Serialize + 'r) {
        let text = move |command_line: &str| json(command_line, &results);
        self.files.push(("json", "results.json".into(), Box::new(text)));
    }

    /// Removes a file from where the report is written: one of an earlier report would pass for this one's.
    pub fn absent(&mut self, name: &'static str) {
        self.absent.push(name);
    }

    /// Takes this as the page, from the command line, instead of what the report consists of.
    pub fn own_page(&mut self, page: impl Fn(&str) -> Result<String, LabError> + 'r) {
        self.own_page = Some(Box::new(page));
    }

    /// Renders the report as text.
    pub fn text(&self) -> String {
        let mut text = verdict::text(&self.verdicts) + &verdict::cautions(&self.cautions);
        text.extend(self.head.iter().map(|line| of_line(line)));
        let (mut is_first, mut is_headed) = (true, text.is_empty());
        for part in self.parts.iter().filter(|part| part.is_text()) {
            let is_apart = is_first || matches!(part, Block::Heading(_) | Block::Table(_));
            if is_apart && !is_headed && !text.ends_with("\n\n") {
                text.push('\n');
            }
            (is_first, is_headed) = (false, matches!(part, Block::Heading(_)));
            match part {
                Block::Heading(heading) => text += &of_line(heading),
                Block::Paragraph(paragraph, _) => text += &wrapped(paragraph, "", ""),
                Block::Table(table) => text += &table.text(),
                Block::Text(more) => text += more,
                Block::Page(_) => {}
            }
        }
        let last = self.remarks.iter().chain(&self.troubles);
        text.extend(last.map(|line| of_line(line)));
        text
    }

    /// Renders the report as a page: one file, readable without a network.
    ///
    /// # Errors
    /// [`LabError::Chart`] when a chart cannot be drawn.
    pub fn page(&self, command_line: &str) -> Result<String, LabError> {
        if let Some(page) = &self.own_page {
            return page(command_line);
        }
        let parts = self.parts.iter().map(Block::html).collect::<Result<Vec<_>, _>>()?;
        let body = html! {
            h1 { (self.title) }
            (verdict::html(&self.verdicts))
            @if !self.head.is_empty() { p { (lines(&self.head.join("\n"))) } }
            @for trouble in &self.troubles { p.bad { (trouble) } }
            @if !self.remarks.is_empty() { p.faint { (lines(&self.remarks.join("\n"))) } }
            (html::cautions(&self.cautions))
            (html::all(&parts))
            h2 { "How it was " (self.how) }
            @if !command_line.is_empty() { pre { (command_line) } }
            p { "leafpress " (env!("CARGO_PKG_VERSION")) }
            @if !self.terms.is_empty() { (html::terms(&self.terms)) }
            @if !self.notes.is_empty() { (html::notes(&self.notes)) }
        };
        Ok(html::document(&self.title, &body))
    }

    /// Writes the report's tables and results, and `report.html`, into `directory`, which exists.
    ///
    /// # Errors
    /// [`LabError::Io`] when a file cannot be written, [`LabError::Chart`] when a chart cannot be drawn.
    pub fn write(&self, command_line: &str, directory: &Path) -> Result<Written, LabError> {
        let files = self.files.iter();
        let files = files.map(|(what, name, text)| Ok((*what, name.as_str(), text(command_line)?)));
        let mut files = files.collect::<Result<Vec<_>, LabError>>()?;
        files.push(("report", "report.html", self.page(command_line)?));
        for old in self.absent.iter().map(|name| directory.join(name)) {
            match std::fs::remove_file(&old) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(LabError::io(old, e)),
                _ => {}
            }
        }
        write_all(directory, files)
    }
}

/// A line of text. Spaces in one that is short enough stay: it may have names of files in it.
fn of_line(line: &str) -> String {
    match line.chars().count() <= page_width() {
        true => format!("{line}\n"),
        false => wrapped(line, "", "  "),
    }
}

impl Block<'_> {
    fn is_text(&self) -> bool {
        match self {
            Self::Table(table) => !table.is_page_only,
            Self::Page(_) => false,
            _ => true,
        }
    }

    fn html(&self) -> Result<Markup, LabError> {
        Ok(match self {
            Self::Heading(heading) => html! { h2 { (heading) } },
            Self::Paragraph(text, is_faint) => html! { p class=[is_faint.then_some("faint")] { (text) } },
            Self::Table(table) => table.html(),
            Self::Text(_) => Markup::default(),
            Self::Page(part) => part()?,
        })
    }
}

/// The end of a long name, which is the part that differs.
fn short(name: &str) -> String {
    let end: Vec<char> = name.chars().collect();
    match end.len() {
        ..=MAX_NAME => name.to_owned(),
        length => format!("...{}", end[length - MAX_NAME + 3..].iter().collect::<String>()),
    }
}

/// A table for people, as text and on a page.
#[derive(Default)]
pub struct Table {
    /// The title; none where it is empty.
    pub title: String,
    /// The colour of what the table is about.
    pub hue: Option<RGBColor>,
    /// The headings of the columns; a line break is one.
    pub headings: Vec<String>,
    /// The rows, of as many cells as there are headings.
    pub rows: Vec<Vec<Marked>>,
    /// The text does not have it.
    pub is_page_only: bool,
    /// As text, the best of each column has a star.
    pub is_marked: bool,
    /// The first column names groups of rows: each name has a row of its own.
    pub is_grouped: bool,
    /// Groups of the text; all of them are on the page.
    pub max_groups: Option<usize>,
    /// Leading columns that identify a row; without those of groups.
    pub words: usize,
    /// The colours of what the rows are about; none, or one for each row.
    pub hues: Vec<RGBColor>,
    /// The tables of the text; none stands for all columns.
    pub parts: Vec<(String, Vec<usize>)>,
}

impl Table {
    /// Creates a table of which no cell is marked.
    pub fn new<H: Into<String>>(
        headings: impl IntoIterator<Item = H>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let mut table = Self {
            is_marked: false,
            ..Self::marked(headings, Vec::new())
        };
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Adds a row of which no cell is marked.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|text| Marked { text, best: false });
        self.rows.push(cells.collect());
    }

    /// Creates a table in which the best of each column can be seen.
    pub fn marked<H: Into<String>>(headings: impl IntoIterator<Item = H>, rows: Vec<Vec<Marked>>) -> Self {
        Self {
            headings: headings.into_iter().map(Into::into).collect(),
            rows,
            is_marked: true,
            words: 1,
            ..Self::default()
        }
    }

    /// Sets the columns of each table of the text, counted without that of groups. Other columns are only on the page.
    pub fn parts(mut self, parts: &[Part<'_>]) -> Self {
        let owned = |(name, columns): &Part<'_>| ((*name).to_owned(), columns.to_vec());
        self.parts = parts.iter().map(owned).collect();
        self
    }

    fn headings(&self) -> &[String] {
        &self.headings[usize::from(self.is_grouped)..]
    }

    fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| match self.is_marked {
            true => starred(row.clone(), self.words + usize::from(self.is_grouped)),
            false => row.iter().map(|cell| cell.text.clone()).collect(),
        });
        let (rows, more) = match self.is_grouped {
            true => self.groups(rows),
            false => (rows.collect(), String::new()),
        };
        let table = if self.parts.is_empty() {
            of_figures(self.headings(), rows, self.words)
        } else {
            let parts = self
                .parts
                .iter()
                .map(|(name, columns)| (name.as_str(), columns.as_slice()));
            of_parts(self.headings(), rows, self.words, &parts.collect::<Vec<_>>())
        };
        let title = match self.title.is_empty() {
            true => String::new(),
            false => of_line(&self.title),
        };
        format!("{title}{table}\n{more}")
    }

    /// The rows of the first groups, each group under its name, and how many there are more.
    fn groups(&self, rows: impl Iterator<Item = Vec<String>>) -> (Vec<Vec<String>>, String) {
        let rows: Vec<Vec<String>> = rows.collect();
        let mut names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        names.dedup();
        let shown = self.max_groups.unwrap_or(usize::MAX).min(names.len());
        let of_shown = |row: &&Vec<String>| names[..shown].contains(&row[0].as_str());
        let shortened = |row: &Vec<String>| [&[short(&row[0])], &row[1..]].concat();
        let more = match names.len() - shown {
            0 => String::new(),
            more => format!("and {more} more\n"),
        };
        (under_names(rows.iter().filter(of_shown).map(shortened)), more)
    }

    fn html(&self) -> Markup {
        let columns = self.headings().len();
        let mut last = "";
        let rows = self.rows.iter().enumerate().map(|(at, row)| {
            let (group, cells) = row.split_at(usize::from(self.is_grouped));
            let group = group.first().map(|cell| cell.text.as_str());
            let group = group.filter(|name| !name.is_empty() && *name != last);
            last = group.unwrap_or(last);
            html! {
                @if let Some(name) = group { tr { th.faint scope="rowgroup" colspan=(columns) { (name) } } }
                tr {
                    @for (place, one) in cells.iter().enumerate() {
                        @if place == 0 {
                            th scope="row" { @if let Some(hue) = self.hues.get(at) { (swatch(*hue)) } (one.text) }
                        } @else { (cell(&one.text, one.best)) }
                    }
                }
            }
        });
        let rows: Vec<Markup> = rows.collect();
        html! {
            @if !self.title.is_empty() { h3 { @if let Some(hue) = self.hue { (swatch(hue)) } (self.title) } }
            (html::scrolled(html! {
                table {
                    thead { tr { @for heading in self.headings() { th scope="col" { (lines(heading)) } } } }
                    tbody { (html::all(&rows)) }
                }
            }))
        }
    }
}
