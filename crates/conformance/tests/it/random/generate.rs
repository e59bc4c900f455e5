//! Random programs: valid by construction, as varied as the language.

mod values;

use ebbtide_ir::*;

/// A small generator of numbers (splitmix64), so that a seed means the same program for ever.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// What the present parallel loop does with an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    /// Read and written at the iteration's own element.
    Own,
    /// Combined into, in one way.
    Combine(Combine),
}

struct Scope {
    values: Vec<ValueId>,
    locals: Vec<LocalId>,
}

pub struct Generator {
    b: Builder,
    dice: Dice,
    arrays: Vec<ArrayId>,
    which: ValueId,
    /// The extents of all arrays: `n` and `m`.
    extents: [ValueId; 2],
    values: Vec<ValueId>,
    locals: Vec<LocalId>,
    /// The parallel loop being built: its variables, what it does with each array, its own elements.
    par: Option<Vec<ValueId>>,
    uses: Vec<Use>,
    own: Vec<Vec<ValueId>>,
    temps: usize,
    /// The one float type of the parallel loop being built, where it has one: such loops run in vectors.
    only: Option<Type>,
    /// How much may still be said in this program.
    fuel: usize,
}

const TYPES: [Type; 7] = [Type::F64, Type::F32, Type::I32, Type::I64, Type::U32, Type::Bool, Type::Index];

/// The array parameters of every random program: name, type, extents (0 is `n`, 1 is `m`).
pub const ARRAYS: [(&str, Type, &[usize]); 15] = [
    ("a", Type::F64, &[0]),
    ("b", Type::F64, &[0]),
    ("p", Type::F64, &[0, 1]),
    ("q", Type::F64, &[0, 1]),
    ("x", Type::F32, &[0]),
    ("y", Type::F32, &[0]),
    ("z", Type::F32, &[1, 0]),
    ("k", Type::I32, &[0]),
    ("l", Type::I64, &[0]),
    ("w", Type::U32, &[1]),
    ("h", Type::Bool, &[0]),
    ("s", Type::F64, &[]),
    ("e", Type::F32, &[]),
    ("o", Type::I32, &[]),
    ("g", Type::I64, &[1]),
];

/// Seeds of programs with nested loops.
pub const NESTED: u64 = 10_000;

/// The program `if which == 0 { … } else if which == 1 { … } …` of `count` random programs.
pub fn unit(seed: u64, count: usize) -> Program {
    let mut g = Generator::new("random", seed);
    let which = g.which;
    for k in 0..count {
        let number = g.index(k as i64);
        let chosen = g.b.compare(Compare::Eq, which, number);
        g.b.begin_if(chosen);
        g.dice = Dice::new(seed.wrapping_add(1 + k as u64));
        g.fuel = 20;
        let outer = g.begin();
        let statements = 1 + g.dice.below(3);
        for _ in 0..statements {
            g.program_statement(1);
        }
        g.end(outer);
        g.b.end_if();
    }
    g.b.finish().expect("random programs are valid")
}

/// A random program that ends with a sum over all its floats, in the array `loss` behind the others. From [`NESTED`] on
/// its loops and branches have others inside.
pub fn with_loss(seed: u64) -> Program {
    let mut g = Generator::new("random", seed);
    let loss = g.b.array("loss", Type::F64, 0, Access::Write);
    g.fuel = 16;
    let depth = if seed < NESTED { 1 } else { 3 };
    let outer = g.begin();
    for _ in 0..1 + g.dice.below(3) {
        g.program_statement(depth);
    }
    g.end(outer);
    let zero = g.index(0);
    for (k, (_, ty, dims)) in ARRAYS.iter().enumerate() {
        if !ty.is_float() || dims.is_empty() {
            continue;
        }
        let array = g.arrays[k];
        let ranges: Vec<(&str, ValueId, ValueId)> = dims.iter().map(|d| ("i", zero, g.extents[*d])).collect();
        let vars = g.b.begin_par(&ranges);
        let x = g.b.load(array, &vars);
        let x = if *ty == Type::F64 { x } else { g.b.cast(x, Type::F64) };
        // What has grown beyond measure counts as one.
        let squared = g.b.math(Function::Tanh, &[x]);
        let weight = g.b.literal(Literal::from(0.3 + 0.1 * k as f64));
        let part = g.b.binary(Binary::Mul, squared, weight);
        g.b.update(Combine::Add, loss, &[], part);
        g.b.end_par();
    }
    g.b.finish().expect("random programs are valid")
}

impl Generator {
    /// With the parameters that every random program has.
    fn new(name: &str, seed: u64) -> Generator {
        let mut b = Builder::new(name);
        let arrays: Vec<ArrayId> =
            ARRAYS.iter().map(|(name, ty, dims)| b.array(name, *ty, dims.len(), Access::Write)).collect();
        let which = b.scalar("which", Type::Index);
        let scalars = [
            b.scalar("real", Type::F64),
            b.scalar("single", Type::F32),
            b.scalar("whole", Type::I64),
            b.scalar("few", Type::Index),
        ];
        let extents = [b.dim(arrays[2], 0), b.dim(arrays[2], 1)];
        Generator {
            b,
            dice: Dice::new(seed),
            arrays,
            which,
            extents,
            values: scalars.to_vec(),
            locals: Vec::new(),
            par: None,
            uses: Vec::new(),
            own: Vec::new(),
            temps: 0,
            only: None,
            fuel: 0,
        }
    }

    fn begin(&mut self) -> Scope {
        Scope { values: self.values.clone(), locals: self.locals.clone() }
    }

    fn end(&mut self, scope: Scope) {
        self.values = scope.values;
        self.locals = scope.locals;
    }

    fn index(&mut self, i: i64) -> ValueId {
        self.b.literal(Literal::index(i))
    }

    fn keep(&mut self, v: ValueId) -> ValueId {
        self.values.push(v);
        v
    }

    // ---- program level

    fn program_statement(&mut self, depth: usize) {
        match self.dice.below(if depth == 0 { 10 } else { 14 }) {
            0..=5 => self.parallel(),
            6 => {
                let (i, j) = self.dice.pick(&[(0, 1), (2, 3), (4, 5)]);
                self.b.swap(self.arrays[i], self.arrays[j]);
            }
            7 => match self.dice.below(3) {
                0 => {
                    let (i, j) = self.dice.pick(&[(0, 1), (1, 0), (3, 2), (5, 4)]);
                    self.b.copy(self.arrays[i], self.arrays[j]);
                }
                _ => {
                    let at = self.dice.below(ARRAYS.len());
                    let v = self.expression(ARRAYS[at].1, 1);
                    self.b.fill(self.arrays[at], v);
                }
            },
            8 => self.program_element(),
            9 => {
                let ty = self.dice.pick(&TYPES);
                let v = self.expression(ty, 2);
                match self.settable(ty) {
                    Some(local) if self.dice.one_in(2) => self.b.set(local, v),
                    _ => {
                        let local = self.b.local("t", v);
                        self.locals.push(local);
                    }
                }
            }
            10 | 11 => {
                let zero = self.index(0);
                let passes = self.dice.below(4) as i64;
                let passes = self.index(passes);
                let scope = self.begin();
                let t = self.b.begin_for("t", zero, passes);
                self.keep(t);
                self.program_statement(depth - 1);
                self.program_statement(depth - 1);
                let until = self.dice.one_in(4).then(|| self.condition(1));
                self.b.end_loop(until);
                self.end(scope);
            }
            12 => self.branch(|g| g.program_statement(depth - 1)),
            _ => self.counted_loop(|g| g.program_statement(depth - 1)),
        }
    }

    /// `while` or `loop` with a counter of its own.
    fn counted_loop(&mut self, body: impl Fn(&mut Self)) {
        let start = self.b.literal(Literal::from(0i32));
        let counter = self.b.local("count", start);
        let scope = self.begin();
        let (limit, endless) = (self.dice.below(4) as i32, self.dice.one_in(2));
        let varying = self.dice.one_in(2).then(|| self.expression(Type::I32, 1));
        let limit = self.b.literal(Literal::from(limit));
        let limit = match varying {
            // Data decides, within reason.
            Some(v) => {
                let three = self.b.literal(Literal::from(3i32));
                let few = self.b.binary(Binary::And, v, three);
                self.b.binary(Binary::Add, few, limit)
            }
            None => limit,
        };
        if endless {
            self.b.begin_loop();
        } else {
            self.b.begin_while();
            let now = self.b.get(counter);
            let goes_on = self.b.compare(Compare::Lt, now, limit);
            self.b.while_condition(goes_on);
        }
        body(self);
        let now = self.b.get(counter);
        let one = self.b.literal(Literal::from(1i32));
        let next = self.b.binary(Binary::Add, now, one);
        self.b.set(counter, next);
        let until = endless.then(|| self.b.compare(Compare::Ge, next, limit));
        self.b.end_loop(until);
        self.end(scope);
    }

    fn branch(&mut self, mut body: impl FnMut(&mut Self)) {
        let condition = self.condition(2);
        self.b.begin_if(condition);
        let scope = self.begin();
        body(self);
        self.end(scope);
        if self.dice.one_in(2) {
            self.b.begin_else();
            let scope = self.begin();
            body(self);
            self.end(scope);
        }
        self.b.end_if();
    }

    fn program_element(&mut self) {
        let at = self.dice.below(ARRAYS.len());
        let index = self.anywhere(at);
        let v = self.expression(ARRAYS[at].1, 2);
        if ARRAYS[at].1 != Type::Bool && self.dice.one_in(2) {
            let how = self.dice.pick(&[Combine::Add, Combine::Min, Combine::Max]);
            self.b.update(how, self.arrays[at], &index, v);
        } else {
            self.b.store(self.arrays[at], &index, v);
        }
    }

    // ---- parallel loops

    fn parallel(&mut self) {
        if self.dice.one_in(6) && self.temps < 3 {
            self.temporary();
        }
        let dims: &[usize] = self.dice.pick(&[&[0][..], &[0], &[1], &[0, 1], &[0, 1], &[1, 0], &[1, 0, 2]]);
        let mut ranges = Vec::new();
        for d in dims {
            let whole = *d == 2;
            let extent = if whole { self.index(3) } else { self.extents[*d] };
            let (from, to) = match self.dice.below(if whole { 1 } else { 6 }) {
                0..=2 => (self.index(0), extent),
                3 => {
                    let (from, less) = (self.dice.below(3) as i64, self.dice.below(3) as i64);
                    let less = self.index(less);
                    (self.index(from), self.b.binary(Binary::Sub, extent, less))
                }
                4 => {
                    let few = self.values[3];
                    (self.index(0), self.b.binary(Binary::Min, few, extent))
                }
                _ => {
                    let two = self.index(2);
                    (self.index(1), self.b.binary(Binary::Div, extent, two))
                }
            };
            ranges.push((["i", "j", "c"][*d], from, to));
        }
        let scope = self.begin();
        self.only = match self.dice.below(5) {
            0 | 1 => Some(Type::F64),
            2 => Some(Type::F32),
            _ => None,
        };
        self.prepare_uses(dims, &ranges);
        let vars = self.b.begin_par(&ranges);
        self.values.extend(&vars);
        self.own_elements(dims, &ranges, &vars);
        self.par = Some(vars);
        let statements = 1 + self.dice.below(4);
        for _ in 0..statements {
            self.body_statement(2);
        }
        self.write_something();
        self.b.end_par();
        self.par = None;
        self.only = None;
        self.end(scope);
    }

    fn temporary(&mut self) {
        // A temporary that one loop fills and another reads.
        self.temps += 1;
        let zero = self.index(0);
        let n = self.extents[0];
        let temp = self.b.temp("temp", Type::F64, &[n]);
        let i = self.b.begin_par(&[("i", zero, n)])[0];
        let v = self.b.load(self.arrays[0], &[i]);
        let v = self.b.binary(Binary::Mul, v, v);
        self.b.store(temp, &[i], v);
        self.b.end_par();
        let i = self.b.begin_par(&[("i", zero, n)])[0];
        let one = self.index(1);
        let next = self.b.binary(Binary::Add, i, one);
        let next = self.b.binary(Binary::Rem, next, n);
        let v = self.b.load(temp, &[next]);
        self.b.update(Combine::Add, self.arrays[1], &[i], v);
        self.b.end_par();
    }

    /// Decides what the loop does with each array: own elements need a dimension for each variable.
    fn prepare_uses(&mut self, dims: &[usize], _ranges: &[(&str, ValueId, ValueId)]) {
        self.uses.clear();
        for (_, ty, extents) in &ARRAYS {
            let can_own = dims.len() <= extents.len() && dims.iter().all(|d| extents.contains(d));
            let other = self.only.is_some_and(|only| only != *ty);
            let choice = match self.dice.below(if self.only.is_some() { 4 } else { 5 }) {
                _ if other => Use::Read,
                0 | 1 if can_own => Use::Own,
                2 if *ty != Type::Bool => {
                    Use::Combine(self.dice.pick(&[Combine::Add, Combine::Add, Combine::Min, Combine::Max]))
                }
                _ => Use::Read,
            };
            self.uses.push(choice);
        }
    }

    /// The index of each array's own element.
    fn own_elements(&mut self, dims: &[usize], ranges: &[(&str, ValueId, ValueId)], vars: &[ValueId]) {
        self.own = vec![Vec::new(); ARRAYS.len()];
        for (at, (_, _, extents)) in ARRAYS.iter().enumerate() {
            if self.uses[at] != Use::Own {
                continue;
            }
            let mut index = Vec::new();
            for d in *extents {
                let Some(k) = dims.iter().position(|dim| dim == d) else {
                    // A dimension of its own: any index that is the same for all.
                    let v = self.somewhere(*d, 0);
                    index.push(v);
                    continue;
                };
                let whole = ranges[k].2 == self.extents[*d]
                    && self.b.program().literal(ranges[k].1) == Some(Literal::index(0));
                let n = self.extents[*d];
                let v = match self.dice.below(8) {
                    0 if whole => {
                        let shift = self.dice.below(4) as i64;
                        let shift = self.index(shift);
                        let sum = self.b.binary(Binary::Add, vars[k], shift);
                        self.b.binary(Binary::Rem, sum, n)
                    }
                    1 => {
                        let one = self.index(1);
                        let last = self.b.binary(Binary::Sub, n, one);
                        self.b.binary(Binary::Sub, last, vars[k])
                    }
                    _ => vars[k],
                };
                index.push(v);
            }
            self.own[at] = index;
        }
    }

    fn body_statement(&mut self, depth: usize) {
        if self.fuel == 0 {
            return self.write_something();
        }
        self.fuel -= 1;
        match self.dice.below(if depth == 0 { 6 } else { 11 - usize::from(self.only.is_some()) }) {
            0..=2 => self.write_something(),
            3 | 4 => {
                let ty = self.any_type();
                let v = self.expression(ty, 3);
                self.keep(v);
            }
            5 => {
                let ty = self.any_type();
                let v = self.expression(ty, 2);
                let local = self.b.local("t", v);
                self.locals.push(local);
                // Locals are there to be changed, later and perhaps in a branch.
                if self.dice.one_in(2) {
                    self.branch(|g| {
                        let v = g.expression(ty, 2);
                        g.b.set(local, v);
                    });
                }
            }
            6..=8 => self.branch(|g| {
                g.body_statement(depth - 1);
                g.body_statement(depth - 1);
            }),
            9 => {
                let zero = self.index(0);
                let to = match self.dice.below(3) {
                    0 if self.only.is_none() => {
                        let three = self.index(3);
                        let some = self.expression(Type::Index, 1);
                        self.b.binary(Binary::And, some, three)
                    }
                    _ => {
                        let passes = self.dice.below(4) as i64;
                        self.index(passes)
                    }
                };
                let scope = self.begin();
                let c = self.b.begin_for("c", zero, to);
                self.keep(c);
                self.body_statement(depth - 1);
                self.body_statement(depth - 1);
                let until = (self.only.is_none() && self.dice.one_in(4)).then(|| self.condition(1));
                self.b.end_loop(until);
                self.end(scope);
            }
            _ => self.counted_loop(|g| g.body_statement(depth - 1)),
        }
    }

    fn write_something(&mut self) {
        let writable: Vec<usize> = (0..ARRAYS.len()).filter(|at| self.uses[*at] != Use::Read).collect();
        if writable.is_empty() {
            return;
        }
        let at = self.dice.pick(&writable);
        let ty = ARRAYS[at].1;
        match self.uses[at] {
            Use::Own => {
                let (index, v) = (self.own[at].clone(), self.expression(ty, 3));
                if ty != Type::Bool && self.dice.one_in(3) {
                    let how = self.dice.pick(&[Combine::Add, Combine::Min, Combine::Max]);
                    self.b.update(how, self.arrays[at], &index, v);
                } else {
                    self.b.store(self.arrays[at], &index, v);
                }
            }
            Use::Combine(how) => {
                let v = self.expression(ty, 3);
                let index = if self.dice.one_in(2) {
                    // The same for all iterations, if literals and extents are.
                    ARRAYS[at].2.iter().map(|d| self.somewhere(*d, 0)).collect()
                } else {
                    self.anywhere(at)
                };
                self.b.update(how, self.arrays[at], &index, v);
            }
            Use::Read => {}
        }
    }
}
