//! Programs of stages, loops and regions, as a tree; as an Ebbtide program; and as a plain model of the contract.
//!
//! Every stage leaves its number on a trace, together with a local variable and an element of a temporary, so that
//! a trace is right only if control, locals and temporaries are.

use ebbtide_ir::*;
use ebbtide_runtime::{Arg, Array, Array0, Array1, Compiled, Device, Next, Result, Status, Yielded};

use crate::programs::B;

/// A statement of a staged program.
#[derive(Clone, Debug)]
pub enum Node {
    /// Executes a stage.
    Stage(usize),
    /// `x = 3 x + 1` on the local variable.
    Bump,
    /// `swap(p, q); p += 1`.
    Swap,
    /// Reads the data into a value.
    Let(usize),
    /// Puts such a value on the trace.
    Use(usize),
    /// `for _ in 0..n`.
    For(usize, Vec<Node>),
    /// `for` with a bound read from the data, which the program keeps in the value of this number.
    ForData(usize, Vec<Node>),
    /// `while` on a counter that the user holds.
    Counted(usize, i32, Vec<Node>),
    /// `while data { … }`.
    While(Vec<Node>),
    /// `loop { …; if !data { break; } }`.
    Loop(Vec<Node>),
    /// `if data { … } else { … }`.
    If(Vec<Node>, Vec<Node>),
    /// A labelled region.
    Region(Spot, Vec<Node>),
}

/// What a region is like.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Its label.
    pub label: usize,
    /// Does it set the flag?
    pub fires: Fires,
    /// What does it undo?
    pub undo: Undoes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fires {
    /// Sets the flag from the table, at its end.
    FromTable,
    /// Leaves the flag as the host set it.
    Never,
    /// Has no flag.
    NoFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undoes {
    Nothing,
    /// Counts, trace and its length.
    Trace,
    Everything,
}

/// A region that takes its flag from the table and undoes nothing.
pub fn region(label: usize, body: Vec<Node>) -> Node {
    Node::Region(Spot { label, fires: Fires::FromTable, undo: Undoes::Nothing }, body)
}

pub fn label(k: usize) -> Label {
    Label { family: "Stage".to_string(), variant: format!("S{k}") }
}

pub const STAGES: usize = 16;
pub const LETS: usize = 16;
const COUNTERS: usize = 4;

/// The arrays of a staged program.
struct Arrays {
    t: ArrayId,
    trace: ArrayId,
    len: ArrayId,
    field: ArrayId,
    flag: ArrayId,
    fire: ArrayId,
    visits: ArrayId,
    data: ArrayId,
    cursor: ArrayId,
    counters: ArrayId,
    p: ArrayId,
    q: ArrayId,
    scratch: ArrayId,
    x: LocalId,
}

struct Staged {
    b: B,
    a: Arrays,
    lets: Vec<Option<ValueId>>,
}

/// The program of a tree.
pub fn program(nodes: &[Node]) -> Program {
    let mut b = B::new("staged");
    let w = Access::Write;
    let t = b.0.array("t", Type::I32, 1, w);
    let trace = b.0.array("trace", Type::I32, 1, w);
    let len = b.0.array("len", Type::I32, 0, w);
    let field = b.0.array("field", Type::I32, 1, w);
    let flag = b.0.array("flag", Type::I32, 0, w);
    let fire = b.0.array("fire", Type::I32, 1, Access::Read);
    let visits = b.0.array("visits", Type::I32, 0, w);
    let data = b.0.array("data", Type::I32, 1, Access::Read);
    let cursor = b.0.array("cursor", Type::I32, 0, w);
    let counters = b.0.array("counters", Type::I32, 1, w);
    let p = b.0.array("p", Type::I32, 0, w);
    let q = b.0.array("q", Type::I32, 0, w);
    let two = b.index(2);
    let scratch = b.0.temp("scratch", Type::I32, &[two]);
    let one = b.0.literal(Literal::from(1i32));
    let x = b.0.local("x", one);
    let a = Arrays { t, trace, len, field, flag, fire, visits, data, cursor, counters, p, q, scratch, x };
    let mut staged = Staged { b, a, lets: vec![None; LETS] };
    staged.block(nodes);
    staged.b.0.finish().unwrap()
}

impl Staged {
    fn int(&mut self, k: i32) -> ValueId {
        self.b.0.literal(Literal::from(k))
    }

    fn bump(&mut self, array: ArrayId, index: &[ValueId]) {
        let one = self.int(1);
        self.b.0.update(Combine::Add, array, index, one);
    }

    /// The table's element at the cursor, or its last one.
    fn at(&mut self, table: ArrayId, cursor: ArrayId) -> ValueId {
        let at = self.b.0.load(cursor, &[]);
        let at = self.b.0.cast(at, Type::Index);
        let (one, n) = (self.b.index(1), self.b.0.dim(table, 0));
        let last = self.b.sub(n, one);
        let at = self.b.0.binary(Binary::Min, at, last);
        self.b.0.load(table, &[at])
    }

    fn is_set(&mut self, v: ValueId) -> ValueId {
        let zero = self.int(0);
        self.b.0.compare(Compare::Ne, v, zero)
    }

    fn push(&mut self, v: ValueId) {
        let at = self.b.0.load(self.a.len, &[]);
        let at = self.b.0.cast(at, Type::Index);
        self.b.0.store(self.a.trace, &[at], v);
        self.bump(self.a.len, &[]);
    }

    fn stage(&mut self, k: usize) {
        let at = self.b.index(k as i64);
        self.bump(self.a.t, &[at]);
        let zero = self.b.index(0);
        self.bump(self.a.scratch, &[zero]);
        let (x, s) = (self.b.0.get(self.a.x), self.b.0.load(self.a.scratch, &[zero]));
        let (sixty_four, many, k_value) = (self.int(64), self.int(4096), self.int(k as i32));
        let (x, s) = (self.b.mul(x, sixty_four), self.b.mul(s, many));
        let v = self.b.add(k_value, x);
        let v = self.b.add(v, s);
        self.push(v);
        if k % 8 == 3 {
            let n = self.b.0.dim(self.a.field, 0);
            let i = self.b.0.begin_par(&[("i", zero, n)])[0];
            self.b.0.update(Combine::Add, self.a.field, &[i], k_value);
            self.b.0.end_par();
        }
    }

    fn block(&mut self, nodes: &[Node]) {
        nodes.iter().for_each(|node| self.node(node));
    }

    fn node(&mut self, node: &Node) {
        let zero = self.b.index(0);
        match node {
            Node::Stage(k) => self.stage(*k),
            Node::Bump => {
                let (x, three, one) = (self.b.0.get(self.a.x), self.int(3), self.int(1));
                let y = self.b.mul(x, three);
                let y = self.b.add(y, one);
                self.b.0.set(self.a.x, y);
            }
            Node::Swap => {
                self.b.0.swap(self.a.p, self.a.q);
                self.bump(self.a.p, &[]);
            }
            Node::Let(id) => {
                let v = self.at(self.a.data, self.a.cursor);
                self.b.0.name(v, &format!("let{id}"));
                self.lets[*id] = Some(v);
                self.bump(self.a.cursor, &[]);
            }
            Node::Use(id) => {
                let v = self.lets[*id].expect("a value is used after it was made");
                self.push(v);
            }
            Node::For(n, body) => {
                let n = self.b.index(*n as i64);
                self.b.0.begin_for("i", zero, n);
                self.block(body);
                self.b.0.end_loop(None);
            }
            Node::ForData(id, body) => {
                self.node(&Node::Let(*id));
                let n = self.b.0.cast(self.lets[*id].expect("just made"), Type::Index);
                self.b.0.begin_for("j", zero, n);
                self.block(body);
                self.b.0.end_loop(None);
            }
            Node::Counted(k, n, body) => {
                let (at, none, n) = (self.b.index(*k as i64), self.int(0), self.int(*n));
                self.b.0.store(self.a.counters, &[at], none);
                self.b.0.begin_while();
                let c = self.b.0.load(self.a.counters, &[at]);
                let more = self.b.0.compare(Compare::Lt, c, n);
                self.b.0.while_condition(more);
                self.block(body);
                self.bump(self.a.counters, &[at]);
                self.b.0.end_loop(None);
            }
            Node::While(body) => {
                self.b.0.begin_while();
                let v = self.at(self.a.data, self.a.cursor);
                let more = self.is_set(v);
                self.b.0.while_condition(more);
                self.bump(self.a.cursor, &[]);
                self.block(body);
                self.b.0.end_loop(None);
            }
            Node::Loop(body) => {
                self.b.0.begin_loop();
                self.block(body);
                self.bump(self.a.cursor, &[]);
                let v = self.at(self.a.data, self.a.cursor);
                let none = self.int(0);
                let end = self.b.0.compare(Compare::Eq, v, none);
                self.b.0.end_loop(Some(end));
            }
            Node::If(then, otherwise) => {
                let v = self.at(self.a.data, self.a.cursor);
                let c = self.is_set(v);
                self.bump(self.a.cursor, &[]);
                self.b.0.begin_if(c);
                self.block(then);
                self.b.0.begin_else();
                self.block(otherwise);
                self.b.0.end_if();
            }
            Node::Region(spot, body) => {
                let undo = match spot.undo {
                    Undoes::Nothing => Undo::Nothing,
                    Undoes::Trace => Undo::Arrays(vec![self.a.t, self.a.trace, self.a.len]),
                    Undoes::Everything => Undo::Everything,
                };
                let flag = (spot.fires != Fires::NoFlag).then_some(self.a.flag);
                self.b.0.begin_region(label(spot.label), flag, undo);
                self.block(body);
                if spot.fires == Fires::FromTable {
                    let v = self.at(self.a.fire, self.a.visits);
                    self.b.0.store(self.a.flag, &[], v);
                    self.bump(self.a.visits, &[]);
                }
                self.b.0.end_region();
            }
        }
    }
}

/// What the host holds.
pub struct World {
    pub t: Array1<i32>,
    pub trace: Array1<i32>,
    pub len: Array0<i32>,
    pub field: Array1<i32>,
    pub flag: Array0<i32>,
    pub fire: Array1<i32>,
    pub visits: Array0<i32>,
    pub data: Array1<i32>,
    pub cursor: Array0<i32>,
    pub counters: Array1<i32>,
    pub p: Array0<i32>,
    pub q: Array0<i32>,
}

impl World {
    /// A world whose regions fire as `fire` says and whose conditions read `data`; both go on with their last.
    pub fn new(device: &Device, capacity: usize, fire: &[i32], data: &[i32]) -> World {
        World {
            t: device.zeros([STAGES]).unwrap(),
            trace: device.zeros([capacity]).unwrap(),
            len: device.scalar(0).unwrap(),
            field: device.zeros([40]).unwrap(),
            flag: device.scalar(0).unwrap(),
            fire: device.array(fire).unwrap(),
            visits: device.scalar(0).unwrap(),
            data: device.array(data).unwrap(),
            cursor: device.scalar(0).unwrap(),
            counters: device.zeros([COUNTERS]).unwrap(),
            p: device.scalar(0).unwrap(),
            q: device.scalar(1000).unwrap(),
        }
    }

    pub fn args(&mut self) -> Vec<Arg<'_>> {
        vec![
            Arg::Write(self.t.any_mut()),
            Arg::Write(self.trace.any_mut()),
            Arg::Write(self.len.any_mut()),
            Arg::Write(self.field.any_mut()),
            Arg::Write(self.flag.any_mut()),
            Arg::Read(self.fire.any()),
            Arg::Write(self.visits.any_mut()),
            Arg::Read(self.data.any()),
            Arg::Write(self.cursor.any_mut()),
            Arg::Write(self.counters.any_mut()),
            Arg::Write(self.p.any_mut()),
            Arg::Write(self.q.any_mut()),
        ]
    }

    pub fn seen(&self) -> Seen {
        let len = self.len.value() as usize;
        Seen {
            t: self.t.to_vec(),
            trace: self.trace.as_slice()[..len].to_vec(),
            field: self.field.as_slice()[7],
            cursor: self.cursor.value(),
            swapped: [self.p.value(), self.q.value()],
        }
    }

    /// Sets a scalar.
    pub fn set<T: ebbtide_runtime::Element>(array: &mut Array<T, 0>, value: T) {
        array.fill(value).unwrap();
    }
}

/// What can be compared after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub t: Vec<i32>,
    pub trace: Vec<i32>,
    pub field: i32,
    pub cursor: i32,
    pub swapped: [i32; 2],
}

/// The labels of regions that undo everything, the count of visits included.
pub fn undo_everything(nodes: &[Node]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut work: Vec<&Node> = nodes.iter().collect();
    while let Some(node) = work.pop() {
        match node {
            Node::Region(spot, _) if spot.undo == Undoes::Everything => found.push(spot.label),
            Node::For(_, b)
            | Node::ForData(_, b)
            | Node::Counted(_, _, b)
            | Node::While(b)
            | Node::Loop(b) => work.extend(b),
            Node::If(a, b) => work.extend(a.iter().chain(b)),
            _ => {}
        }
    }
    found
}

/// Runs a program to its end; `host` decides at each yield, after the flag was cleared. The decisions come back.
pub fn drive(
    compiled: &Compiled,
    nodes: &[Node],
    world: &mut World,
    host: impl FnMut(&Yielded) -> Next,
) -> Result<Vec<(Label, i64, Next)>> {
    drive_by(compiled, nodes, world, host, |at, args| compiled.resume(at, args))
}

/// As [`drive`], where another program may go on.
pub fn drive_by(
    compiled: &Compiled,
    nodes: &[Node],
    world: &mut World,
    mut host: impl FnMut(&Yielded) -> Next,
    mut resume: impl FnMut(&Yielded, Vec<Arg<'_>>) -> Result<Status>,
) -> Result<Vec<(Label, i64, Next)>> {
    let mut yields = Vec::new();
    let undone: Vec<Label> = undo_everything(nodes).into_iter().map(label).collect();
    let mut status = compiled.launch(world.args())?;
    while let Status::Yielded(at) = status {
        World::set(&mut world.flag, 0);
        if undone.contains(at.label_name()) {
            let visits = world.visits.value();
            World::set(&mut world.visits, visits + 1);
        }
        let next = host(&at);
        yields.push((at.label_name().clone(), at.reason(), next.clone()));
        status = match next {
            Next::Resume => resume(&at, world.args())?,
            Next::To(label) => resume(&at.to(&label)?, world.args())?,
            Next::Leave => return Ok(yields),
        };
    }
    Ok(yields)
}
