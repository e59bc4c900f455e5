//! The untyped builder: what every front end stands on.

mod blocks;
mod statements;
mod values;

use std::collections::BTreeMap;

use crate::syntax::*;

/// Builds a program statement by statement.
///
/// Methods never fail: what is wrong is remembered and reported by [`Builder::finish`], all at once, so that a
/// front end can be written without error handling at every operator.
///
/// ```
/// use ebbtide_ir::{Access, Binary, Builder, Literal, Type};
///
/// let mut b = Builder::new("double");
/// let x = b.array("x", Type::F64, 1, Access::Write);
/// let n = b.dim(x, 0);
/// let zero = b.literal(Literal::index(0));
/// let i = b.begin_par(&[("i", zero, n)])[0];
/// let v = b.load(x, &[i]);
/// let w = b.binary(Binary::Add, v, v);
/// b.store(x, &[i], w);
/// b.end_par();
/// let program = b.finish()?;
/// assert!(program.to_string().contains("x[i] = "));
/// # Ok::<(), ebbtide_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    program: Program,
    open: Vec<Open>,
    site: Option<Site>,
    ordering: Ordering,
    /// What was said about the next sequential loop, and about those begun.
    next_schedule: Option<ReverseHint>,
    schedules: BTreeMap<LoopId, ReverseHint>,
    /// The locals to which open loops add their terms.
    sums: BTreeMap<LoopId, Vec<LocalId>>,
    /// By array: what is taken of it in the parallel loop being built.
    taken: BTreeMap<ArrayId, ArrayId>,
    flaws: Vec<Flaw>,
}

/// A place in a program that is being built.
#[derive(Clone, Debug)]
pub struct Mark {
    open: usize,
    statements: usize,
    values: usize,
    locals: usize,
    loops: u32,
    others: [usize; 7],
}

/// A block being filled, and the statement that it will belong to.
#[derive(Debug)]
struct Open {
    block: Block,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    Root,
    Then(ValueId),
    Otherwise(ValueId, Block),
    Head(LoopId),
    Loop(LoopId, LoopKind),
    Par(ParId, Vec<Range>, Ordering, Option<Site>),
    Region(LabelId, Option<ArrayId>, Undo, Option<Site>),
    Call(String, Option<Ruled>),
}

impl Builder {
    /// A builder of an empty program.
    pub fn new(name: &str) -> Builder {
        Builder {
            program: Program { name: name.to_string(), ..Program::default() },
            open: vec![Open { block: Block::new(), owner: Owner::Root }],
            site: None,
            ordering: Ordering::Ordered,
            next_schedule: None,
            schedules: BTreeMap::new(),
            sums: BTreeMap::new(),
            taken: BTreeMap::new(),
            flaws: Vec::new(),
        }
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What follows stands here in the source.
    pub fn at(&mut self, site: Site) {
        self.site = Some(site);
    }

    /// Remembers something that is wrong, at the present place in the source.
    pub fn flaw(&mut self, law: &'static str, message: impl Into<String>) {
        self.flaws.push(Flaw { law, message: message.into(), site: self.site.clone() });
    }

    /// Declares the next parameter, an array.
    pub fn array(&mut self, name: &str, ty: Type, rank: usize, access: Access) -> ArrayId {
        let id = self.new_array(name, ty, rank, Role::Param(access));
        self.program.params.push(Param::Array(id));
        id
    }

    fn new_array(&mut self, name: &str, ty: Type, rank: usize, role: Role) -> ArrayId {
        if rank > Indices::MAX_RANK || !ty.is_element() {
            self.flaw(
                "2",
                format!("`{name}` cannot be an array of rank {rank} of `{ty}`: rank 0 to 6, dimensions of its elements counted, no `usize`"),
            );
        }
        self.program.arrays.push(ArrayDecl {
            name: name.to_string(),
            ty,
            rank: rank.min(Indices::MAX_RANK),
            role,
        });
        ArrayId(self.program.arrays.len() as u32 - 1)
    }

    /// Declares the next parameter, a scalar, and gives its value.
    pub fn scalar(&mut self, name: &str, ty: Type) -> ValueId {
        self.program.scalars.push(ScalarDecl { name: name.to_string(), ty });
        let id = ScalarId(self.program.scalars.len() as u32 - 1);
        self.program.params.push(Param::Scalar(id));
        let value = self.value(Op::Scalar(id), ty);
        self.name(value, name);
        value
    }

    /// A temporary array of zeros that comes to life here.
    pub fn temp(&mut self, name: &str, ty: Type, shape: &[ValueId]) -> ArrayId {
        let id = self.new_array(name, ty, shape.len(), Role::Temp(shape.to_vec()));
        self.push(Stmt::Temp(id));
        id
    }

    /// Gives a value the name that it has in the source.
    pub fn name(&mut self, value: ValueId, name: &str) {
        let decl = &mut self.program.values[value.index()];
        if decl.name.is_none() {
            decl.name = Some(name.to_string());
        }
    }

    /// How far the program is: what [`Builder::rewind`] goes back to.
    pub fn mark(&self) -> Mark {
        let p = &self.program;
        Mark {
            open: self.open.len(),
            statements: self.open.last().map_or(0, |open| open.block.len()),
            values: p.values.len(),
            locals: p.locals.len(),
            loops: p.loops,
            others: self.others(),
        }
    }

    /// What a rewind does not undo.
    fn others(&self) -> [usize; 7] {
        let p = &self.program;
        let (pars, regions) = (p.pars as usize, p.regions as usize);
        [
            p.arrays.len(),
            p.labels.len(),
            p.operations.len(),
            pars,
            regions,
            self.taken.len(),
            self.schedules.len(),
        ]
    }

    /// Forgets what was built since the mark, in the block that was open then; `false`, and nothing has changed, if that
    /// were more than values, variables and sequential loops.
    pub fn rewind(&mut self, mark: &Mark) -> bool {
        if self.open.len() != mark.open || self.others() != mark.others || self.next_schedule.is_some() {
            return false;
        }
        let p = &mut self.program;
        p.values.truncate(mark.values);
        p.locals.truncate(mark.locals);
        p.assertions.retain(|assertion| assertion.value.index() < mark.values);
        p.loops = mark.loops;
        if let Some(open) = self.open.last_mut() {
            open.block.truncate(mark.statements);
        }
        true
    }

    /// The program, verified; all that is wrong with it otherwise.
    pub fn finish(self) -> Result<Program, Error> {
        crate::verify_source(&self.close()?)
    }

    /// The program as it was built; all that is wrong with how.
    pub(crate) fn close(mut self) -> Result<Program, Error> {
        if self.open.len() != 1 {
            self.flaw("1", format!("{} blocks were begun and not ended", self.open.len() - 1));
        }
        self.open.truncate(1);
        if let Some(root) = self.open.pop() {
            self.program.body = root.block;
        }
        self.program.number_writes();
        if !self.flaws.is_empty() {
            return Err(Error::Invalid { program: self.program.name, flaws: self.flaws });
        }
        Ok(self.program)
    }
}
