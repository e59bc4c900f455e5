//! Lines that a program prints: `println!("residual {:8.3e}", r);` at the end of a branch that is never taken.

use super::lexer::{At, Token};
use super::{Parser, Result};
use crate::syntax::ids::ValueId;
use crate::syntax::program::{Format, Piece, Print, Stream};

/// A line whose branch is not known yet.
pub(super) struct Line {
    at: At,
    stream: Stream,
    pieces: Vec<Piece>,
}

impl Parser<'_> {
    pub(super) fn print_line(&mut self) -> Result<()> {
        let at = self.at();
        let stream = if self.is_word("println") { Stream::Out } else { Stream::Error };
        self.next += 2;
        self.expect("(")?;
        let Token::Text(format) = self.token().clone() else {
            return self.expected("a text in quotation marks");
        };
        let format_at = self.at();
        self.next += 1;
        let mut values = Vec::new();
        while !self.take_if(")") {
            self.expect(",")?;
            values.push(match self.is_tuple() {
                true => {
                    self.next += 1;
                    self.list(")", |p| p.expr())?
                }
                false => vec![self.expr()?],
            });
        }
        self.expect(";")?;
        let Some(pieces) = pieces(&format, values) else {
            return self.error(format_at, "expected a `{…}` for each value, like `{}` or `{:8.3e}`");
        };
        if self.prints.is_some() {
            return self.error(at, "a branch prints one line");
        }
        self.prints = Some(Line { at, stream, pieces });
        Ok(())
    }

    /// Do components in parentheses come next? An expression in parentheses has no comma, and is not empty.
    fn is_tuple(&self) -> bool {
        if !self.is("(") {
            return false;
        }
        let mut depth = 0;
        for (token, _) in &self.tokens[self.next..] {
            match token {
                Token::Symbol("(" | "[") => depth += 1,
                Token::Symbol(")" | "]") if depth == 1 => return false,
                Token::Symbol(")" | "]") => depth -= 1,
                Token::Symbol(",") if depth == 1 => return true,
                Token::Symbol(";") => return false,
                _ => {}
            }
        }
        false
    }

    /// Gives a line to the branch with this condition, which is the literal `false`.
    pub(super) fn printed(&mut self, condition: ValueId, line: Option<Line>) -> Result<()> {
        let never = self.program.literal(condition).is_some_and(|literal| literal.to_i64() == Some(0));
        match line {
            Some(line) if never => {
                self.program.prints.push(Print { condition, stream: line.stream, pieces: line.pieces });
                Ok(())
            }
            other => self.not_printed(other),
        }
    }

    /// Refuses a line here.
    pub(super) fn not_printed(&self, line: Option<Line>) -> Result<()> {
        match line {
            Some(line) => self.error(line.at, "a line is printed at the end of `if false { … }`"),
            None => Ok(()),
        }
    }
}

/// The pieces of a format and the values for its braces.
fn pieces(format: &str, values: Vec<Vec<ValueId>>) -> Option<Vec<Piece>> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), format);
    let mut values = values.into_iter();
    while let Some(at) = rest.find(['{', '}']) {
        text += &rest[..at];
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            text += &rest[..1];
            rest = after;
            continue;
        }
        let end = rest.find('}')?;
        let how = how(rest.strip_prefix('{')?.get(..end.checked_sub(1)?)?)?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Value(values.next()?, how));
        rest = &rest[end + 1..];
    }
    text += rest;
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    values.next().is_none().then_some(pieces)
}

/// What stands between braces: nothing, or `:8.3e`.
fn how(text: &str) -> Option<Format> {
    if text.is_empty() {
        return Some(Format::default());
    }
    let text = text.strip_prefix(':')?;
    let (text, scientific) = text.strip_suffix('e').map_or((text, false), |text| (text, true));
    let (width, precision) = match text.split_once('.') {
        Some((width, precision)) => (width, Some(precision.parse().ok()?)),
        None => (text, None),
    };
    let width = if width.is_empty() { 0 } else { width.parse().ok()? };
    Some(Format { width, precision, scientific })
}
