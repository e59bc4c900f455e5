//! The text form of a suspended schedule: one line, a kind and `key=value` fields.
//!
//! Reading allocates in proportion to the text and never trusts it.

use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use crate::Error;

/// The first word of every text, with the version of the format.
const MAGIC: &str = "ebbtide-schedule/1";

/// Writes the fields of a schedule.
pub(crate) struct Writer<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
}

impl<'a, 'f> Writer<'a, 'f> {
    pub fn start(out: &'a mut fmt::Formatter<'f>, kind: &str) -> Result<Writer<'a, 'f>, fmt::Error> {
        write!(out, "{MAGIC} {kind}")?;
        Ok(Writer { out })
    }

    pub fn field(&mut self, key: &str, value: impl Display) -> fmt::Result {
        write!(self.out, " {key}={value}")
    }

    /// A comma-separated list; `-` if it is empty.
    pub fn list<T: Display>(&mut self, key: &str, values: impl IntoIterator<Item = T>) -> fmt::Result {
        write!(self.out, " {key}=")?;
        let mut empty = true;
        for value in values {
            if !empty {
                self.out.write_char(',')?;
            }
            empty = false;
            write!(self.out, "{value}")?;
        }
        if empty { self.out.write_char('-') } else { Ok(()) }
    }
}

/// The fields of a text, taken in the order in which they were written.
pub(crate) struct Fields<'a> {
    words: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Fields<'a> {
    /// The kind of schedule and its fields.
    pub fn start(text: &'a str) -> Result<(&'a str, Fields<'a>), Error> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(MAGIC) {
            return Err(bad(format!("it does not start with `{MAGIC}`")));
        }
        let kind = words.next().ok_or_else(|| bad("it does not say which schedule it is"))?;
        Ok((kind, Fields { words }))
    }

    pub fn text(&mut self, key: &'static str) -> Result<&'a str, Error> {
        self.words
            .next()
            .and_then(|word| word.strip_prefix(key))
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| bad(format!("the field `{key}` is missing")))
    }

    pub fn number<T: FromStr>(&mut self, key: &'static str) -> Result<T, Error> {
        number(self.text(key)?, key)
    }

    pub fn list<T>(
        &mut self,
        key: &'static str,
        item: impl FnMut(&str) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        match self.text(key)? {
            "-" => Ok(Vec::new()),
            text => text.split(',').map(item).collect(),
        }
    }

    pub fn finish(mut self) -> Result<(), Error> {
        match self.words.next() {
            None => Ok(()),
            Some(_) => Err(bad("something follows the last field")),
        }
    }
}

pub(crate) fn number<T: FromStr>(text: &str, key: &str) -> Result<T, Error> {
    text.parse().map_err(|_| bad(format!("the field `{key}` does not hold what it should")))
}

pub(crate) fn bad(why: impl Into<String>) -> Error {
    Error::BadText { why: why.into() }
}
