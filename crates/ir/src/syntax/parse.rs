//! Reads the printed form of a program: text in, [`Program`] out.
//!
//! All that the printer prints can be read, and prints as it was: `print(parse(print(p))) == print(p)`. The program that is
//! read means what the printed one means. What the text does not have:
//!
//! - places in the source: all that is read has its place in the text instead, in the file `text`;
//! - numbers of values, arrays, local variables, loops and regions: they follow the order of the text. Regions of driven
//!   programs, and loops that are swept, have their numbers in the text;
//! - what no statement mentions: values that are not used and cannot fail, temporaries that are never declared;
//! - where a value that is printed inside an expression is computed: it is computed where it is used;
//! - functions of the host: custom operations and derivatives that a program brings are known by name, and come from
//!   [`Outside`].
//!
//! Nothing is verified: see [`verify`](crate::verify) and [`verify_source`](crate::verify_source). A `//` begins a comment. A
//! name that is declared again means the last declaration before it.

mod blocks;
mod calls;
mod expressions;
mod header;
mod lexer;
mod lines;
mod statements;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use self::lexer::{At, Token, tokens};
use super::ids::{ArrayId, LocalId, Site, ValueId};
use super::op::Op;
use super::program::{Block, Operation, Program, Rule, Stmt, walk};
use super::types::Type;

/// Why a text is no program: where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1, in characters.
    pub column: u32,
    /// What was expected.
    pub message: String,
}

/// What a text knows by name alone: functions of the host.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    operations: BTreeMap<String, Arc<Operation>>,
    rules: BTreeMap<&'static str, Rule>,
}

impl Outside {
    /// All that a program knows by name alone.
    pub fn of(program: &Program) -> Outside {
        let operations = program.operations.iter().map(|o| (o.name.clone(), Arc::clone(o))).collect();
        let mut rules = BTreeMap::new();
        walk(&program.body, &mut |stmt| {
            if let Stmt::Call(call) = stmt
                && let Some(ruled) = &call.ruled
            {
                rules.extend(
                    [ruled.rules.adjoint, ruled.rules.tangent].into_iter().flatten().map(|r| (r.name, r)),
                );
            }
        });
        Outside { operations, rules }
    }

    /// Adds a custom operation.
    pub fn operation(&mut self, operation: Arc<Operation>) {
        self.operations.insert(operation.name.clone(), operation);
    }

    /// Adds a derivative.
    pub fn rule(&mut self, rule: Rule) {
        self.rules.insert(rule.name, rule);
    }
}

/// Reads a program.
///
/// ```
/// let program = ebbtide_ir::parse(
///     "program scale(x: &mut Array1<f64>, a: f64) {
///         for i in par(0..x.len()) {
///             x[i] = a * x[i];
///         }
///     }",
/// )?;
/// ebbtide_ir::verify(&program)?;
/// let error = ebbtide_ir::parse("program scale(x: &mut Array1<f64>) { x[0] = ; }").unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 45: expected a value, found `;`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse(text: &str) -> Result<Program, ParseError> {
    parse_with(text, &Outside::default())
}

/// Reads a program that knows functions of the host.
pub fn parse_with(text: &str, outside: &Outside) -> Result<Program, ParseError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
        outside,
        file: Arc::from("text"),
        program: Program::default(),
        blocks: Vec::new(),
        names: HashMap::new(),
        alive: vec![BTreeSet::new()],
        shapes: BTreeMap::new(),
        swept: BTreeSet::new(),
        next_loop: 0,
        prints: None,
    };
    parser.number_swept_loops();
    parser.program()?;
    parser.program.number_writes();
    Ok(parser.program)
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

/// How deep expressions and blocks may nest, so that reading them needs little of the stack.
const DEPTH: usize = 200;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Array(ArrayId),
    Local(LocalId),
    Value(ValueId),
}

struct Parser<'t> {
    tokens: Vec<(Token, At)>,
    next: usize,
    depth: usize,
    outside: &'t Outside,
    file: Arc<str>,
    program: Program,
    /// The blocks being read, innermost last.
    blocks: Vec<Block>,
    names: HashMap<String, Meaning>,
    /// The local variables that were declared in each open block.
    alive: Vec<BTreeSet<LocalId>>,
    /// The text of the shape of each temporary: it may be declared in several places, but in one way.
    shapes: BTreeMap<ArrayId, Vec<Token>>,
    /// Numbers of loops that the text gives.
    swept: BTreeSet<u32>,
    /// No loop without a number in the text has one that is greater or equal.
    next_loop: u32,
    /// The line that the open block prints, until its branch is known.
    prints: Option<lines::Line>,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        self.ahead(0)
    }

    /// The token after `count` others. The last one is [`Token::End`], which is never taken.
    fn ahead(&self, count: usize) -> &Token {
        static END: Token = Token::End;
        self.tokens.get(self.next + count).map_or(&END, |(token, _)| token)
    }

    fn at(&self) -> At {
        let last = self.tokens.last().map_or(At { line: 1, column: 1 }, |(_, at)| *at);
        self.tokens.get(self.next).map_or(last, |(_, at)| *at)
    }

    fn site(&self, at: At) -> Option<Site> {
        Some(Site { file: Arc::clone(&self.file), line: at.line, column: at.column })
    }

    fn take(&mut self) -> Token {
        let token = self.token().clone();
        self.next += 1;
        token
    }

    fn error<T>(&self, at: At, message: impl Into<String>) -> Result<T> {
        Err(ParseError { line: at.line, column: at.column, message: message.into() })
    }

    fn expected<T>(&self, what: impl fmt::Display) -> Result<T> {
        self.error(self.at(), format!("expected {what}, found {}", self.token()))
    }

    fn is(&self, symbol: &str) -> bool {
        *self.token() == Token::Symbol(lexer::symbol(symbol))
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Name(name) if name == word)
    }

    /// Takes this symbol if it comes next.
    fn take_if(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn take_word_if(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.take_if(symbol) { Ok(()) } else { self.expected(format!("`{symbol}`")) }
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word_if(word) { Ok(()) } else { self.expected(format!("`{word}`")) }
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return self.error(self.at(), format!("this is nested more than {DEPTH} levels deep"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Things with commas between them, up to the symbol `end`, which is taken too.
    fn list<T>(&mut self, end: &str, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while !self.take_if(end) {
            all.push(read(self)?);
            if !self.is(end) && !self.take_if(",") {
                return self.expected(format!("`,` or `{end}`"));
            }
        }
        Ok(all)
    }

    /// A name that is to be declared, or an error that says what for.
    fn new_name(&mut self, what: &str) -> Result<String> {
        match self.token() {
            Token::Name(name) if super::print::RESERVED.contains(&name.as_str()) => {
                self.expected(format!("the name of {what}"))
            }
            Token::Name(first) => {
                let mut name = first.clone();
                self.next += 1;
                while let Some((part, tokens)) = self.field() {
                    name = format!("{name}.{part}");
                    self.next += tokens;
                }
                Ok(name)
            }
            Token::Quoted(name) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => self.expected(format!("the name of {what}")),
        }
    }

    /// The field of a struct that comes next, as part of a name, and how many tokens it has.
    fn field(&self) -> Option<(&str, usize)> {
        match (self.token(), self.ahead(1)) {
            (Token::Field(part), _) => Some((part, 1)),
            (Token::Symbol("."), Token::Name(part)) => Some((part, 2)),
            _ => None,
        }
    }

    /// Names with `::` between them, or one between backquotes.
    fn path(&mut self, what: &str) -> Result<String> {
        let mut name = match self.token().clone() {
            Token::Name(name) => name,
            Token::Quoted(name) => {
                self.next += 1;
                return Ok(name);
            }
            _ => return self.expected(format!("the name of {what}")),
        };
        self.next += 1;
        while self.is("::") && matches!(self.ahead(1), Token::Name(_)) {
            self.next += 1;
            if let Token::Name(part) = self.take() {
                name = format!("{name}::{part}");
            }
        }
        Ok(name)
    }

    /// A number that counts something.
    fn count(&mut self, what: &str) -> Result<u64> {
        if let Token::Number(text) = self.token()
            && let Ok(number) = text.parse()
        {
            self.next += 1;
            return Ok(number);
        }
        self.expected(what)
    }

    /// A number in the tables of the program.
    fn small_count(&mut self, what: &str) -> Result<u32> {
        let at = self.at();
        match u32::try_from(self.count(what)?) {
            // The text of a program that has this many of anything is longer than its number.
            Ok(number) if (number as usize) < self.tokens.len() => Ok(number),
            _ => self.error(at, format!("expected {what} that is less than {}", self.tokens.len())),
        }
    }

    /// The array with a name that comes next.
    fn array(&mut self) -> Result<ArrayId> {
        let at = self.at();
        let name = self.new_name("an array")?;
        match self.names.get(&name) {
            Some(Meaning::Array(array)) => Ok(*array),
            Some(_) => self.error(at, format!("expected an array, and `{name}` is none")),
            None => self.error(at, format!("there is no array `{name}` here")),
        }
    }

    fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(stmt);
        }
    }

    /// Computes a value here.
    fn value(&mut self, op: Op, ty: Type, at: At) -> ValueId {
        let site = self.site(at);
        let v = self.program.add_value(op, ty, site);
        self.push(Stmt::Let(v));
        v
    }
}
