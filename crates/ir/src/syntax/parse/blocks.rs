//! Statements with blocks: branches, loops, regions, and the halves of a reversed loop.

use super::lexer::{At, Token};
use super::{Meaning, Parser, Result};
use crate::syntax::error::Touched;
use crate::syntax::ids::{ArrayId, LabelId, LocalId, LoopId, ParId, RegionId, ValueId};
use crate::syntax::op::{Combine, Op};
use crate::syntax::program::*;
use crate::syntax::types::Type;

/// What stands before a loop: `#[…]`.
#[derive(Default)]
pub(super) struct Attributes {
    relaxed: bool,
    safety: Option<Safety>,
    requires: Vec<Requirement>,
    schedule: Option<ReverseHint>,
    sums: Vec<LocalId>,
}

impl Parser<'_> {
    /// Remembers the numbers of loops that stand in the text, so that no other loop gets one of them.
    pub(super) fn number_swept_loops(&mut self) {
        for three in self.tokens.windows(3) {
            if let [(Token::Name(half), _), (Token::Name(word), _), (Token::Number(number), _)] = three
                && (half == "forward" || half == "backward")
                && word == "loop"
                && let Ok(number) = number.parse()
            {
                self.swept.insert(number);
            }
        }
    }

    fn new_loop(&mut self) -> LoopId {
        while self.swept.contains(&self.next_loop) {
            self.next_loop += 1;
        }
        self.next_loop += 1;
        self.program.loops = self.program.loops.max(self.next_loop);
        LoopId(self.next_loop - 1)
    }

    /// The number of a loop that is swept.
    fn swept_loop(&mut self) -> Result<LoopId> {
        self.next += 1;
        self.expect_word("loop")?;
        let id = self.small_count("the number of a loop")?;
        self.program.loops = self.program.loops.max(id + 1);
        Ok(LoopId(id))
    }

    /// A statement that begins with `#[`.
    pub(super) fn attributed(&mut self) -> Result<()> {
        let mut attributes = Attributes::default();
        while self.take_if("#[") {
            let at = self.at();
            let Token::Name(name) = self.take() else {
                return self.error(at, "expected the name of an attribute");
            };
            match name.as_str() {
                "checkpoint" => return self.region(),
                "relaxed" => attributes.relaxed = true,
                "proved" => attributes.safety = Some(Safety::Proved),
                "unproved" => attributes.safety = Some(Safety::Unknown),
                "requires" => attributes.requires.push(self.requirement(Asked::OnEntry)?),
                "holds" => attributes.requires.push(self.requirement(Asked::Before)?),
                "sum" => {
                    self.expect("(")?;
                    attributes.sums = self.list(")", |p| p.known_local())?;
                }
                "reverse" => attributes.schedule = Some(self.hint()?),
                other => return self.error(at, format!("there is no attribute `{other}`")),
            }
            self.expect("]")?;
        }
        match self.is_word("forward") {
            true => self.forward(attributes.schedule),
            false => self.looped(attributes),
        }
    }

    /// `(condition, array, written, read)`.
    fn requirement(&mut self, asked: Asked) -> Result<Requirement> {
        self.expect("(")?;
        let condition = self.expr()?;
        self.expect(",")?;
        let array = self.array()?;
        self.expect(",")?;
        let first = self.touched()?;
        self.expect(",")?;
        let second = self.touched()?;
        self.expect(")")?;
        Ok(Requirement { condition, asked, array, accesses: [(first, None), (second, None)] })
    }

    fn touched(&mut self) -> Result<Touched> {
        let all = [
            ("read", Touched::Read),
            ("written", Touched::Written),
            ("added", Touched::Combined(Combine::Add)),
            ("min", Touched::Combined(Combine::Min)),
            ("max", Touched::Combined(Combine::Max)),
            ("claimed", Touched::Claimed),
        ];
        for (word, touched) in all {
            if self.take_word_if(word) {
                return Ok(touched);
            }
        }
        self.expected("`read`, `written`, `added`, `min`, `max` or `claimed`")
    }

    /// `(store_all)`, `(revolve = 10)`.
    fn hint(&mut self) -> Result<ReverseHint> {
        self.expect("(")?;
        let at = self.at();
        let Token::Name(name) = self.take() else { return self.error(at, "expected the name of a schedule") };
        let hint = if name == "store_all" {
            ReverseHint::StoreAll
        } else {
            let make = match name.as_str() {
                "periodic" => ReverseHint::Periodic,
                "revolve" => ReverseHint::Revolve,
                "online" => ReverseHint::Online,
                "mixed" => ReverseHint::Mixed,
                other => return self.error(at, format!("there is no schedule `{other}`")),
            };
            self.expect("=")?;
            make(self.count("a number")?)
        };
        self.expect(")")?;
        Ok(hint)
    }

    /// `if`; gives the condition if all that it does is to leave the loop.
    pub(super) fn branch(&mut self) -> Result<Option<(ValueId, At)>> {
        let at = self.at();
        self.expect_word("if")?;
        let condition = self.expr()?;
        if self.is("{") && *self.ahead(1) == Token::Name("break".to_string()) {
            self.next += 2;
            self.expect(";")?;
            self.expect("}")?;
            return Ok(Some((condition, at)));
        }
        let then = self.braces()?;
        self.printed(condition, then.line)?;
        if let Some((_, at)) = then.until {
            return self.error(at, "a `break` stands at the end of a loop, not here");
        }
        let otherwise = if self.take_word_if("else") { self.plain_braces()? } else { Block::new() };
        self.push(Stmt::If(Branch { condition, then: then.block, otherwise }));
        Ok(None)
    }

    /// `for`, `while` or `loop`.
    pub(super) fn looped(&mut self, attributes: Attributes) -> Result<()> {
        let at = self.at();
        let kind = if self.take_word_if("for") {
            let vars = match self.take_if("(") {
                true => self.list(")", |p| p.new_name("a loop variable"))?,
                false => vec![self.new_name("a loop variable")?],
            };
            self.expect_word("in")?;
            if self.is_word("par") && *self.ahead(1) == Token::Symbol("(") {
                return self.parallel(&vars, attributes, at);
            }
            let [name] = vars.as_slice() else {
                return self.error(at, "a sequential loop has one variable");
            };
            let (from, to) = self.range()?;
            LoopKind::For { var: self.loop_var(name, at), from, to }
        } else if self.take_word_if("while") {
            let (head, condition) = self.in_block(|p| p.head())?;
            LoopKind::While { head, condition }
        } else if self.take_word_if("loop") {
            LoopKind::Forever
        } else {
            return self.expected("a loop");
        };
        if attributes.relaxed || attributes.safety.is_some() || !attributes.requires.is_empty() {
            return self.error(at, "expected a parallel loop after this attribute");
        }
        let id = self.new_loop();
        let inner = self.braces()?;
        self.not_printed(inner.line)?;
        let until = inner.until.map(|(until, _)| until);
        self.push(Stmt::Loop(Loop {
            id,
            kind,
            body: inner.block,
            sums: attributes.sums,
            until,
            schedule: attributes.schedule,
        }));
        Ok(())
    }

    /// The condition of a `while`, or statements and a condition between braces.
    fn head(&mut self) -> Result<ValueId> {
        if !self.take_if("{") {
            return self.expr();
        }
        while !self.ends_with_value() {
            if self.is("}") || *self.token() == Token::End {
                return self.expected("the condition of the loop");
            }
            if let Some((_, at)) = self.statement()? {
                return self.error(at, "a `break` stands at the end of a loop, not here");
            }
        }
        let condition = self.expr()?;
        self.expect("}")?;
        Ok(condition)
    }

    /// Does a value come next, and then the end of the block?
    fn ends_with_value(&self) -> bool {
        let first =
            self.tokens[self.next.min(self.tokens.len())..].iter().map(|(token, _)| token).enumerate();
        for (k, token) in first {
            match token {
                Token::Symbol(";" | "{") | Token::End => return false,
                Token::Symbol("}") => return k > 0,
                _ => {}
            }
        }
        false
    }

    /// `from..to`.
    fn range(&mut self) -> Result<(ValueId, ValueId)> {
        let from = self.expr()?;
        self.expect("..")?;
        Ok((from, self.expr()?))
    }

    fn loop_var(&mut self, name: &str, at: At) -> ValueId {
        let site = self.site(at);
        let var = self.program.add_value(Op::LoopVar, Type::Index, site);
        self.program.values[var.index()].name = Some(name.to_string());
        self.names.insert(name.to_string(), Meaning::Value(var));
        var
    }

    fn parallel(&mut self, vars: &[String], attributes: Attributes, at: At) -> Result<()> {
        self.next += 2;
        let bounds = self.list(")", |p| p.range())?;
        if bounds.len() != vars.len() {
            return self.error(at, format!("{} loop variables have {} ranges", vars.len(), bounds.len()));
        }
        let ranges: Vec<Range> = vars
            .iter()
            .zip(bounds)
            .map(|(name, (from, to))| Range { var: self.loop_var(name, at), from, to })
            .collect();
        if attributes.schedule.is_some() || !attributes.sums.is_empty() {
            return self.error(at, "expected a sequential loop after this attribute");
        }
        let proved = self.program.driven || !attributes.requires.is_empty();
        let usual = if proved { Safety::Proved } else { Safety::Unknown };
        let id = ParId(self.program.pars);
        self.program.pars += 1;
        let body = self.plain_braces()?;
        let ordering = if attributes.relaxed { Ordering::Relaxed } else { Ordering::Ordered };
        let (requires, safety, site) =
            (attributes.requires, attributes.safety.unwrap_or(usual), self.site(at));
        self.push(Stmt::Par(Par { id, ranges, body, ordering, requires, safety, site }));
        Ok(())
    }

    /// `#[checkpoint(Stage::Solve, yield_on = flag, undo = [w], region = 0)] { … }`, from its parenthesis on.
    fn region(&mut self) -> Result<()> {
        let at = self.at();
        self.expect("(")?;
        let label = self.label()?;
        let (mut flag, mut undo, mut id) = (None, Undo::Nothing, None);
        while self.take_if(",") {
            if self.take_word_if("yield_on") {
                self.expect("=")?;
                flag = Some(self.array()?);
            } else if self.take_word_if("region") {
                self.expect("=")?;
                id = Some(self.small_count("the number of a region")?);
            } else {
                self.expect_word("undo")?;
                undo = Undo::Everything;
                if self.take_if("=") {
                    undo = Undo::Arrays(self.arrays()?);
                }
            }
        }
        self.expect(")")?;
        self.expect("]")?;
        let id = RegionId(id.unwrap_or(self.program.regions));
        self.program.regions = self.program.regions.max(id.0 + 1);
        let body = self.plain_braces()?;
        let site = self.site(at);
        self.push(Stmt::Region(Region { id, label, flag, undo, body, site }));
        Ok(())
    }

    /// `[a, b]`.
    fn arrays(&mut self) -> Result<Vec<ArrayId>> {
        self.expect("[")?;
        self.list("]", |p| p.array())
    }

    /// `Stage::Solve` or a number.
    fn label(&mut self) -> Result<LabelId> {
        let at = self.at();
        let negative = self.take_if("-");
        let label = if let Token::Number(digits) = self.token() {
            let number = if negative { format!("-{digits}") } else { digits.clone() };
            match number.parse::<i32>() {
                Ok(number) => {
                    self.next += 1;
                    Label::from(number)
                }
                Err(_) => return self.error(at, "expected a label: its number is no `i32`"),
            }
        } else {
            let quoted = matches!(self.token(), Token::Quoted(_));
            let path = self.path("a label")?;
            match (self.token(), self.ahead(1), path.rsplit_once("::")) {
                // The family, the variant, or both stand between backquotes.
                (Token::Symbol("::"), Token::Quoted(variant) | Token::Name(variant), _) => {
                    let variant = variant.clone();
                    self.next += 2;
                    Label { family: path, variant }
                }
                (_, _, Some((family, variant))) if !quoted => {
                    Label { family: family.to_string(), variant: variant.to_string() }
                }
                _ => return self.error(at, "expected a label: a family and a variant, like `Stage::Solve`"),
            }
        };
        let known = self.program.labels.iter().position(|l| *l == label);
        Ok(LabelId::from_index(known.unwrap_or_else(|| {
            self.program.labels.push(label);
            self.program.labels.len() - 1
        })))
    }

    pub(super) fn forward(&mut self, schedule: Option<ReverseHint>) -> Result<()> {
        let at = self.at();
        let id = self.swept_loop()?;
        self.expect_word("over")?;
        let known = match self.is_word("unknown") && *self.ahead(1) == Token::Name("carrying".to_string()) {
            true => {
                self.next += 1;
                None
            }
            false => Some(self.range()?),
        };
        self.expect_word("carrying")?;
        let carried = self.arrays()?;
        let kept = if self.take_word_if("keeping") { self.arrays()? } else { Vec::new() };
        self.expect_word("in")?;
        self.expect_word("pieces")?;
        let name = self.new_name("the first iteration")?;
        let from = self.loop_var(&name, at);
        self.expect("..")?;
        let name = self.new_name("the iteration after the last one")?;
        let to = self.loop_var(&name, at);
        let length = match known {
            Some((from, to)) => Length::Known(from, to),
            None => {
                self.expect_word("until")?;
                let (at, name) = (self.at(), self.new_name("a variable")?);
                let reached = self.declare_local(name, Type::Index, at)?;
                self.expect(",")?;
                let (at, name) = (self.at(), self.new_name("a variable")?);
                Length::Unknown { reached, ended: self.declare_local(name, Type::Bool, at)? }
            }
        };
        self.expect("{")?;
        let advance = self.part("advance")?;
        let record = self.part("record")?;
        self.expect("}")?;
        self.push(Stmt::Forward(Forward { id, length, from, to, carried, kept, advance, record, schedule }));
        Ok(())
    }

    /// `advance:` and its statements.
    fn part(&mut self, name: &str) -> Result<Block> {
        self.expect_word(name)?;
        self.expect(":")?;
        let outer = self.prints.take();
        let (block, until) = self.in_block(|p| p.statements())?;
        let line = std::mem::replace(&mut self.prints, outer);
        self.not_printed(line)?;
        match until {
            Some((_, at)) => self.error(at, "a `break` stands at the end of a loop, not here"),
            None => Ok(block),
        }
    }

    pub(super) fn backward(&mut self) -> Result<()> {
        let id = self.swept_loop()?;
        let reverse = self.plain_braces()?;
        self.push(Stmt::Backward(Backward { id, reverse }));
        Ok(())
    }

    /// `undo what the host changed at region 0;`
    pub(super) fn host(&mut self) -> Result<()> {
        let (again, words): (Again, &[&str]) = if self.is_word("take") {
            (Again::Shapes, &["take", "back", "the", "shapes", "that", "the", "host", "changed"])
        } else if self.is_word("change") {
            (Again::Change, &["change", "what", "the", "host", "changed"])
        } else {
            (Again::Undo, &["undo", "what", "the", "host", "changed"])
        };
        for word in words.iter().chain(&["at", "region"]) {
            self.expect_word(word)?;
        }
        let region = self.small_count("the number of a region")?;
        self.program.regions = self.program.regions.max(region + 1);
        self.push(Stmt::Host(RegionId(region), again));
        self.expect(";")
    }
}
