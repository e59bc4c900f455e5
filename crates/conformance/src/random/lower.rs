//! Sketches as programs of the IR, through the builder.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Binary, Builder, Label, Literal, LocalId, Program, Type, Undo, ValueId};

use super::sketch::{ArrayOf, Extent, Line, Sketch, Term};

/// What a name stands for.
#[derive(Clone, Debug)]
enum Meaning {
    Value(ValueId),
    Local(LocalId),
    Array(ArrayId, Vec<Extent>),
}

struct Lowering<'s> {
    b: Builder,
    /// Scopes, innermost last.
    names: Vec<BTreeMap<String, Meaning>>,
    /// The sketches whose bodies are being lowered, innermost last.
    sketches: Vec<&'s Sketch>,
    /// The extents of the innermost sketch.
    extents: Vec<BTreeMap<Extent, ValueId>>,
}

/// The program of a sketch, or why it is not one.
pub fn lower(sketch: &Sketch) -> Result<Program, String> {
    let mut l = Lowering {
        b: Builder::new(&sketch.name),
        names: vec![BTreeMap::new()],
        sketches: vec![sketch],
        extents: vec![BTreeMap::new()],
    };
    for array in &sketch.arrays {
        let id = l.b.array(&array.name, array.ty, array.extents.len(), array.access);
        l.declare(&array.name, Meaning::Array(id, array.extents.clone()));
    }
    for scalar in &sketch.scalars {
        let id = l.b.scalar(&scalar.name, scalar.ty);
        l.declare(&scalar.name, Meaning::Value(id));
    }
    l.find_extents(&sketch.arrays)?;
    l.block(&sketch.body)?;
    l.b.finish().map_err(|e| e.to_string())
}

impl<'s> Lowering<'s> {
    fn declare(&mut self, name: &str, meaning: Meaning) {
        if let Some(scope) = self.names.last_mut() {
            scope.insert(name.to_string(), meaning);
        }
    }

    fn find(&self, name: &str) -> Result<Meaning, String> {
        let found = self.names.iter().rev().find_map(|scope| scope.get(name));
        found.cloned().ok_or_else(|| format!("`{name}` is not declared"))
    }

    fn array(&self, name: &str) -> Result<ArrayId, String> {
        match self.find(name)? {
            Meaning::Array(id, _) => Ok(id),
            _ => Err(format!("`{name}` is not an array")),
        }
    }

    /// Gives each extent of these arrays the dimension of the first array that has it.
    fn find_extents(&mut self, arrays: &[ArrayOf]) -> Result<(), String> {
        for array in arrays {
            for (k, extent) in array.extents.iter().enumerate() {
                let known = self.extents.last().is_some_and(|known| known.contains_key(extent));
                if !known && !matches!(extent, Extent::Fixed(_)) {
                    let id = self.array(&array.name)?;
                    let value = self.b.dim(id, k);
                    if let Some(known) = self.extents.last_mut() {
                        known.insert(*extent, value);
                    }
                }
            }
        }
        Ok(())
    }

    fn extent(&mut self, extent: Extent) -> Result<ValueId, String> {
        if let Extent::Fixed(n) = extent {
            return Ok(self.b.literal(Literal::index(n as i64)));
        }
        let known = self.extents.last().and_then(|known| known.get(&extent)).copied();
        known.ok_or_else(|| format!("no array has extent {extent:?}"))
    }

    fn term(&mut self, term: &Term) -> Result<ValueId, String> {
        Ok(match term {
            Term::Literal(l) => self.b.literal(*l),
            Term::Name(name) => match self.find(name)? {
                Meaning::Value(v) => v,
                Meaning::Local(l) => self.b.get(l),
                Meaning::Array(..) => return Err(format!("`{name}` is an array")),
            },
            Term::Extent(extent) => self.extent(*extent)?,
            Term::Load(array, index) => {
                let id = self.array(array)?;
                let index = self.terms(index)?;
                self.b.load(id, &index)
            }
            Term::Unary(op, a) => {
                let a = self.term(a)?;
                self.b.unary(*op, a)
            }
            Term::Binary(op, a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                self.b.binary(*op, a, b)
            }
            Term::Compare(op, a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                self.b.compare(*op, a, b)
            }
            Term::Select(c, a, b) => {
                let (c, a, b) = (self.term(c)?, self.term(a)?, self.term(b)?);
                self.b.select(c, a, b)
            }
            Term::Fma(a, b, c) => {
                let (a, b, c) = (self.term(a)?, self.term(b)?, self.term(c)?);
                self.b.fma(a, b, c)
            }
            Term::Cast(ty, a) => {
                let a = self.term(a)?;
                if self.b.ty(a) == *ty { a } else { self.b.cast(a, *ty) }
            }
            Term::Math(f, args) => {
                let args = self.terms(args)?;
                self.b.math(*f, &args)
            }
            Term::Rand(ty, seed, index) => {
                let (seed, index) = (self.term(seed)?, self.term(index)?);
                self.b.rand(*ty, seed, index)
            }
        })
    }

    fn terms(&mut self, terms: &[Term]) -> Result<Vec<ValueId>, String> {
        terms.iter().map(|t| self.term(t)).collect()
    }

    fn block(&mut self, block: &'s [Line]) -> Result<(), String> {
        self.names.push(BTreeMap::new());
        let result = block.iter().try_for_each(|line| self.line(line));
        self.names.pop();
        result
    }

    fn line(&mut self, line: &'s Line) -> Result<(), String> {
        match line {
            Line::Let(name, term) => {
                let v = self.term(term)?;
                self.declare(name, Meaning::Value(v));
            }
            Line::Mut(name, term) => {
                let v = self.term(term)?;
                let local = self.b.local(name, v);
                self.declare(name, Meaning::Local(local));
            }
            Line::Set(name, term) => {
                let v = self.term(term)?;
                match self.find(name)? {
                    Meaning::Local(local) => self.b.set(local, v),
                    _ => return Err(format!("`{name}` cannot be set")),
                }
            }
            Line::Store(array, index, term) => {
                let (v, index) = (self.term(term)?, self.terms(index)?);
                let id = self.array(array)?;
                self.b.store(id, &index, v);
            }
            Line::Update(how, array, index, term) => {
                let (v, index) = (self.term(term)?, self.terms(index)?);
                let id = self.array(array)?;
                self.b.update(*how, id, &index, v);
            }
            Line::Unique(array, index, term) => {
                let (v, index) = (self.term(term)?, self.terms(index)?);
                let id = self.array(array)?;
                self.b.store_unique(id, &index, v);
            }
            Line::If(condition, then, otherwise) => self.branch(condition, then, otherwise)?,
            Line::For { name, from, to, hint, body, until } => {
                let (from, to) = (self.term(from)?, self.term(to)?);
                if let Some(hint) = hint {
                    self.b.reverse(*hint);
                }
                let var = self.b.begin_for(name, from, to);
                self.looped(name, Some(var), body, until.as_ref())?;
            }
            Line::Sum { totals, ty, name, from, to, body, values } => {
                let range = (name.as_str(), self.term(from)?, self.term(to)?);
                self.sum(totals, *ty, range, body, values)?;
            }
            Line::While { condition, body } => {
                self.b.begin_while();
                let c = self.term(condition)?;
                self.b.while_condition(c);
                self.looped("", None, body, None)?;
            }
            Line::Loop { body, until } => {
                self.b.begin_loop();
                self.looped("", None, body, Some(until))?;
            }
            Line::Par { ranges, body } => self.par(ranges, body)?,
            Line::Region { label, flag, undo, body } => {
                let flag = self.array(flag)?;
                let undo = if *undo { Undo::Everything } else { Undo::Nothing };
                let label = Label { family: "At".to_string(), variant: label.clone() };
                self.b.begin_region(label, Some(flag), undo);
                self.block(body)?;
                self.b.end_region();
            }
            Line::Call(which, arrays, scalars) => self.call(*which, arrays, scalars)?,
            Line::Swap(a, b) => {
                let (a, b) = (self.array(a)?, self.array(b)?);
                self.b.swap(a, b);
            }
            Line::Fill(a, term) => {
                let v = self.term(term)?;
                let id = self.array(a)?;
                self.b.fill(id, v);
            }
            Line::Copy(from, to) => {
                let (from, to) = (self.array(from)?, self.array(to)?);
                self.b.copy(from, to);
            }
            Line::Matmul(a, b, c) => {
                let (a, b, c) = (self.array(a)?, self.array(b)?, self.array(c)?);
                self.b.matmul(a, b, c);
            }
            Line::Scan(x, out) => {
                let (x, out) = (self.array(x)?, self.array(out)?);
                self.b.scan(x, out);
            }
            Line::Compact(flags, out, count) => {
                let (flags, out, count) = (self.array(flags)?, self.array(out)?, self.array(count)?);
                self.b.compact(flags, out, count);
            }
            Line::Temp(temp) => self.temp(temp)?,
        }
        Ok(())
    }

    fn branch(&mut self, condition: &'s Term, then: &'s [Line], otherwise: &'s [Line]) -> Result<(), String> {
        let c = self.term(condition)?;
        self.b.begin_if(c);
        self.block(then)?;
        if !otherwise.is_empty() {
            self.b.begin_else();
            self.block(otherwise)?;
        }
        self.b.end_if();
        Ok(())
    }

    /// Sums over a range: what the body declares is seen by the values that are summed, the totals by what follows.
    fn sum(
        &mut self,
        totals: &'s [String],
        ty: Type,
        (name, from, to): (&'s str, ValueId, ValueId),
        body: &'s [Line],
        values: &'s [Term],
    ) -> Result<(), String> {
        let zero = self.b.literal(Literal::of(ty, 0.0));
        let locals: Vec<LocalId> = totals.iter().map(|total| self.b.local(total, zero)).collect();
        let j = self.b.begin_sum(name, from, to, locals.clone());
        self.names.push(BTreeMap::new());
        self.declare(name, Meaning::Value(j));
        for line in body {
            self.line(line)?;
        }
        let values = self.terms(values)?;
        for (local, value) in locals.iter().zip(values) {
            let before = self.b.get(*local);
            let longer = self.b.binary(Binary::Add, before, value);
            self.b.set(*local, longer);
        }
        self.names.pop();
        self.b.end_loop(None);
        for (total, local) in totals.iter().zip(locals) {
            self.declare(total, Meaning::Local(local));
        }
        Ok(())
    }

    fn par(&mut self, ranges: &'s [(String, Term, Term)], body: &'s [Line]) -> Result<(), String> {
        let mut bounds = Vec::new();
        for (name, from, to) in ranges {
            bounds.push((name.as_str(), self.term(from)?, self.term(to)?));
        }
        let vars = self.b.begin_par(&bounds);
        self.names.push(BTreeMap::new());
        for ((name, ..), var) in ranges.iter().zip(vars) {
            self.declare(name, Meaning::Value(var));
        }
        self.block(body)?;
        self.names.pop();
        self.b.end_par();
        Ok(())
    }

    fn temp(&mut self, temp: &'s ArrayOf) -> Result<(), String> {
        let mut shape = Vec::new();
        for extent in &temp.extents {
            shape.push(self.extent(*extent)?);
        }
        let id = self.b.temp(&temp.name, temp.ty, &shape);
        self.declare(&temp.name, Meaning::Array(id, temp.extents.clone()));
        Ok(())
    }

    /// The body of a loop that is begun, and its end. The condition of `break` sees what the body declares.
    fn looped(
        &mut self,
        name: &str,
        var: Option<ValueId>,
        body: &'s [Line],
        until: Option<&'s Term>,
    ) -> Result<(), String> {
        self.names.push(BTreeMap::new());
        if let Some(var) = var {
            self.declare(name, Meaning::Value(var));
        }
        body.iter().try_for_each(|line| self.line(line))?;
        let until = until.map(|until| self.term(until)).transpose()?;
        self.names.pop();
        self.b.end_loop(until);
        Ok(())
    }

    fn call(&mut self, which: usize, arrays: &[String], scalars: &[Term]) -> Result<(), String> {
        let callee = self.sketches.last().and_then(|sketch| sketch.callees.get(which));
        let callee = callee.ok_or_else(|| format!("there is no callee {which}"))?;
        if arrays.len() != callee.arrays.len() || scalars.len() != callee.scalars.len() {
            return Err(format!("`{}` takes other arguments", callee.name));
        }
        let mut inside = BTreeMap::new();
        for (name, array) in arrays.iter().zip(&callee.arrays) {
            match self.find(name)? {
                Meaning::Array(id, extents)
                    if extents == array.extents && self.b.program().array(id).ty == array.ty =>
                {
                    inside.insert(array.name.clone(), Meaning::Array(id, extents));
                }
                _ => return Err(format!("`{name}` does not fit `{}`", array.name)),
            }
        }
        for (term, scalar) in scalars.iter().zip(&callee.scalars) {
            let v = self.term(term)?;
            if self.b.ty(v) != scalar.ty {
                return Err(format!("`{}` has another type", scalar.name));
            }
            inside.insert(scalar.name.clone(), Meaning::Value(v));
        }
        self.b.begin_call(&callee.name);
        let outer = std::mem::replace(&mut self.names, vec![inside]);
        self.sketches.push(callee);
        self.extents.push(BTreeMap::new());
        let result = self.find_extents(&callee.arrays).and_then(|()| self.block(&callee.body));
        self.extents.pop();
        self.sketches.pop();
        self.names = outer;
        self.b.end_call();
        result
    }
}
