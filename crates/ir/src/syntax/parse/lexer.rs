//! Tokens of the printed form, each with its place.

use std::fmt;

use super::ParseError;
use crate::syntax::print::{begins_name, continues_name};

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub line: u32,
    pub column: u32,
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    /// A name between backquotes.
    Quoted(String),
    /// Digits after the point of a path: `pair.0`.
    Field(String),
    /// A number as it is written, with its suffix.
    Number(String),
    /// A text between quotation marks.
    Text(String),
    Symbol(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(text) | Token::Field(text) | Token::Number(text) => write!(f, "`{text}`"),
            Token::Quoted(text) => write!(f, "the name `{text}`"),
            Token::Text(text) => write!(f, "the text {text:?}"),
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// All symbols; of two that begin alike the longer one comes first.
const SYMBOLS: [&str; 38] = [
    "/*", "*/", "..", "<<", ">>", "<=", ">=", "==", "!=", "+=", "::", "#[", "(", ")", "[", "]", "{", "}",
    "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "!", ",", ";", ":", ".", "#", "?", "@", "$",
];

/// The symbol with this text.
pub(super) fn symbol(text: &str) -> &'static str {
    SYMBOLS.iter().find(|symbol| **symbol == text).copied().unwrap_or("")
}

/// All tokens of a text; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, At)>, ParseError> {
    let mut lexer = Lexer { rest: text, at: At { line: 1, column: 1 }, after_name: false };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let at = lexer.at;
        let token = lexer.token()?;
        lexer.after_name = matches!(token, Token::Name(_) | Token::Field(_));
        let ended = token == Token::End;
        tokens.push((token, at));
        if ended {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    at: At,
    /// Did a name come last? Then digits after a point are a field.
    after_name: bool,
}

impl<'t> Lexer<'t> {
    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in taken.chars() {
            match c {
                '\n' => self.at = At { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
        }
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            if space > 0 {
                self.after_name = false;
                self.advance(space);
            } else if self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else {
                return;
            }
        }
    }

    /// The bytes at the front whose characters are all like this.
    fn run(&self, like: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !like(c)).unwrap_or(self.rest.len())
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if begins_name(first) {
            return Ok(Token::Name(self.advance(self.run(continues_name)).to_string()));
        }
        if first.is_ascii_digit() {
            return Ok(Token::Number(self.number()));
        }
        if first == '"' || first == '`' {
            let text = self.quoted(first)?;
            return Ok(if first == '"' { Token::Text(text) } else { Token::Quoted(text) });
        }
        let field =
            self.rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            Some(_) if field && self.after_name => {
                // The point and its digits are two tokens of a path; the digits follow at once.
                self.advance(1);
                Ok(Token::Field(self.advance(self.run(|c| c.is_ascii_digit())).to_string()))
            }
            Some(symbol) => {
                self.advance(symbol.len());
                Ok(Token::Symbol(symbol))
            }
            None => self.error(format!("no program has the character `{first}` outside of texts and names")),
        }
    }

    /// `12`, `1.5`, `2e-7f32`, `3u32`. A point belongs to it if a digit follows: `0..n` and `2.min(n)` are other things.
    fn number(&mut self) -> String {
        let digit = |c: char| c.is_ascii_digit();
        let mut text = self.advance(self.run(digit)).to_string();
        let fraction = self.rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(digit));
        if fraction {
            text += self.advance(1);
            text += self.advance(self.run(digit));
        }
        let exponent = self.rest.strip_prefix('e').map(|rest| rest.trim_start_matches(['+', '-']));
        if exponent.is_some_and(|rest| rest.starts_with(digit)) {
            text += self.advance(1);
            text += self.advance(self.run(|c| c == '+' || c == '-'));
            text += self.advance(self.run(digit));
        }
        text += self.advance(self.run(|c| c.is_ascii_alphanumeric() || c == '_'));
        text
    }

    /// A text between two of `mark`, with the escapes that Rust prints.
    fn quoted(&mut self, mark: char) -> Result<String, ParseError> {
        let mut text = String::new();
        self.advance(1);
        loop {
            let Some(c) = self.rest.chars().next() else {
                return self.error(format!("expected `{mark}`, found the end of the text"));
            };
            self.advance(c.len_utf8());
            match c {
                '\\' => text.push(self.escape()?),
                c if c == mark => return Ok(text),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        let escaped = self.rest.chars().next();
        if let Some(hex) = self.rest.strip_prefix("u{")
            && let Some(end) = hex.find('}')
            && let Some(c) = u32::from_str_radix(&hex[..end], 16).ok().and_then(char::from_u32)
        {
            self.advance("u{}".len() + end);
            return Ok(c);
        }
        let plain = match escaped {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some(c @ ('\\' | '"' | '\'' | '`')) => c,
            _ => return self.error("expected one of `n t r 0 \\ \" ' u{…}` after `\\`".to_string()),
        };
        self.advance(1);
        Ok(plain)
    }

    fn error<T>(&self, message: String) -> Result<T, ParseError> {
        Err(ParseError { line: self.at.line, column: self.at.column, message })
    }
}
