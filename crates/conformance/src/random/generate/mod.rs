//! Random sketches of the whole language: valid by construction as far as that is cheap, with values that stay tame.
//!
//! Input: a seed. Output: a sketch whose last array is `loss`, a bounded function of all its floats. The same seed gives
//! the same sketch for ever, unless the generator changes.

mod parallel;
mod physics;
mod recurrences;
mod statements;
mod terms;

use std::collections::BTreeSet;

use ebbtide_ir::{Access, Combine, Function, Literal, Type};

use super::sketch::{ArrayOf, Extent, Line, ScalarOf, Sketch, Term};
use parallel::Use;

/// A small generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.roll() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of a list.
    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// An index variable in scope, and what is known of it.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    /// `low <= name`.
    low: i64,
    /// `name < extent - room`, where that is known.
    within: Option<(Extent, i64)>,
}

/// What is in scope: names of values and local variables, by type.
#[derive(Clone, Debug, Default)]
struct Scope {
    variables: Vec<Variable>,
    values: Vec<(String, Type)>,
    locals: Vec<(String, Type)>,
    arrays: Vec<ArrayOf>,
}

struct Maker {
    dice: Dice,
    scope: Scope,
    /// The parallel loop being made: what it does with the arrays that it writes.
    uses: Option<Vec<(String, Use)>>,
    /// Local variables from outside the parallel loop being made, which it may not set.
    outer_locals: usize,
    /// Arrays that may not be read here.
    banned: BTreeSet<String>,
    /// Are all extents known to be positive here?
    nonempty: bool,
    callees: Vec<Sketch>,
    may_call: bool,
    /// Does the program yield? Then this many regions may still be made.
    regions: usize,
    names: usize,
    fuel: usize,
    /// Does the program have the shapes of small values, jumps and reductions?
    physical: bool,
    /// Does it have elements that data names beside own ones, and recurrences?
    recurrent: bool,
}

/// Arrays that sums go to: they may grow with the number of iterations, so what is read from them is bounded at once.
const WILD: [&str; 4] = ["s", "e", "f", "acc"];

fn declared(name: &str, ty: Type, extents: &[Extent], access: Access) -> ArrayOf {
    ArrayOf { name: name.to_string(), ty, extents: extents.to_vec(), access }
}

fn all_arrays() -> Vec<ArrayOf> {
    use Extent::{Fixed, M, N, Times};
    use Type::{Bool, F32, F64, I32, I64, U32};
    let written: [(&str, Type, &[Extent]); 28] = [
        ("a", F64, &[N]),
        ("b", F64, &[N]),
        ("c", F64, &[N]),
        ("d", F64, &[M]),
        ("p", F64, &[N, M]),
        ("q", F64, &[N, M]),
        ("r", F64, &[M, N]),
        ("h", F64, &[Times, N]),
        ("u3", F64, &[N, M, Fixed(2)]),
        ("u4", F64, &[M, Fixed(2), Fixed(2), N]),
        ("u5", F64, &[Fixed(5)]),
        ("s", F64, &[]),
        ("e", F64, &[]),
        ("acc", F64, &[N]),
        ("x", F32, &[N]),
        ("y", F32, &[N]),
        ("z", F32, &[M, N]),
        ("f", F32, &[]),
        ("m1", F64, &[M, M]),
        ("m2", F64, &[M, M]),
        ("m3", F64, &[M, M]),
        ("k", I32, &[N]),
        ("l", I64, &[M]),
        ("w", U32, &[N]),
        ("flags", Bool, &[N]),
        ("list", I32, &[N]),
        ("count", I32, &[]),
        ("o", I32, &[]),
    ];
    let mut arrays: Vec<ArrayOf> =
        written.iter().map(|(name, ty, extents)| declared(name, *ty, extents, Access::Write)).collect();
    arrays.push(declared("g", F64, &[], Access::Write));
    arrays.push(declared("perm", I32, &[N], Access::Read));
    arrays
}

fn all_scalars() -> Vec<ScalarOf> {
    let all = [
        ("real", Type::F64),
        ("single", Type::F32),
        ("whole", Type::I64),
        ("steps", Type::Index),
        ("few", Type::Index),
    ];
    all.iter().map(|(name, ty)| ScalarOf { name: name.to_string(), ty: *ty }).collect()
}

/// Does the sketch of this seed have a sum that is worth running beyond a leaf of a reduction?
pub fn is_long(seed: u64) -> bool {
    seed % 50 == 7
}

/// Does the sketch of this seed have the shapes of small values, jumps, reductions and parts of arrays?
pub fn is_physical(seed: u64) -> bool {
    seed >= PHYSICAL
}

/// The first seed of programs with the shapes of small values, jumps, reductions and parts of arrays: those below it stay what
/// they were before there were such.
pub const PHYSICAL: u64 = 1_000_000;

/// Does the sketch of this seed have elements that data names beside own ones, and recurrences at program level?
pub fn is_recurrent(seed: u64) -> bool {
    seed >= RECURRENT
}

/// The first seed of programs with elements that data names beside own ones, and recurrences at program level.
pub const RECURRENT: u64 = 2_000_000;

/// The sketch of a seed.
pub fn generate(seed: u64) -> Sketch {
    let mut dice = Dice::new(seed);
    let yields = dice.one_in(8);
    let physical = is_physical(seed);
    let known =
        || all_arrays().into_iter().chain(if physical { physics::small_arrays() } else { Vec::new() });
    let mut maker = Maker {
        dice,
        scope: Scope { arrays: known().collect(), ..Scope::default() },
        uses: None,
        outer_locals: 0,
        banned: BTreeSet::new(),
        nonempty: false,
        callees: Vec::new(),
        may_call: true,
        regions: usize::from(yields),
        names: 0,
        fuel: 26,
        physical,
        recurrent: is_recurrent(seed),
    };
    maker.scope.values = all_scalars().iter().map(|s| (s.name.clone(), s.ty)).collect();
    maker.restrict();
    let mut body = Vec::new();
    if is_long(seed) {
        body.extend(maker.inner_sum());
    }
    for _ in 0..2 + maker.dice.below(4) {
        let depth = maker.dice.pick(&[1, 2, 2, 3]);
        body.extend(maker.statement(depth));
    }
    if maker.regions > 0 {
        body.extend(maker.region());
    }
    let mut sketch = Sketch {
        name: format!("random_{seed}"),
        arrays: known().collect(),
        scalars: all_scalars(),
        body,
        callees: std::mem::take(&mut maker.callees),
    };
    sketch.arrays.push(declared("loss", Type::F64, &[], Access::Write));
    maker.drop_unused(&mut sketch);
    sketch
}

impl Maker {
    /// Few arrays make programs in which they meet more often.
    fn restrict(&mut self) {
        let kept = 2 + self.dice.below(7);
        let always: &[&str] =
            if self.physical { &["g", "o", "perm", "a", "arrow", "mm"] } else { &["g", "o", "perm", "a"] };
        let mut others: Vec<ArrayOf> =
            self.scope.arrays.iter().filter(|a| !always.contains(&a.name.as_str())).cloned().collect();
        let mut arrays: Vec<ArrayOf> =
            self.scope.arrays.iter().filter(|a| always.contains(&a.name.as_str())).cloned().collect();
        for _ in 0..kept.min(others.len()) {
            let at = self.dice.below(others.len());
            arrays.push(others.swap_remove(at));
        }
        self.scope.arrays = arrays;
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Runs `make` in a scope of its own.
    fn scoped<R>(&mut self, make: impl FnOnce(&mut Maker) -> R) -> R {
        let (scope, nonempty) = (self.scope.clone(), self.nonempty);
        let result = make(self);
        self.scope = scope;
        self.nonempty = nonempty;
        result
    }

    /// Drops parameters that nothing uses, lends read-only what nothing writes, and adds the sum over all floats.
    fn drop_unused(&mut self, sketch: &mut Sketch) {
        let used = super::shrink::names(sketch);
        let written = super::shrink::written(sketch);
        let extents = super::shrink::extents(sketch);
        let is_used = |a: &ArrayOf| used.contains(&a.name) || ["loss", "a"].contains(&a.name.as_str());
        let mut kept: Vec<ArrayOf> = sketch.arrays.iter().filter(|a| is_used(a)).cloned().collect();
        for extent in extents {
            if !kept.iter().any(|a| a.extents.contains(&extent)) {
                let missing = sketch.arrays.iter().find(|a| a.extents.contains(&extent) && a.ty.is_float());
                kept.extend(missing.cloned());
            }
        }
        for array in &mut kept {
            if !written.contains(&array.name) && array.name != "loss" && self.dice.one_in(2) {
                array.access = Access::Read;
            }
        }
        sketch.body.extend(kept.iter().enumerate().filter_map(|(at, array)| loss_line(at, array)));
        sketch.arrays = kept;
        // What the loss is made of uses no scalars.
        sketch.scalars.retain(|s| used.contains(&s.name));
    }
}

/// Adds a bounded function of all elements to the loss.
fn loss_line(at: usize, array: &ArrayOf) -> Option<Line> {
    if !array.ty.is_float() || array.name == "loss" {
        return None;
    }
    let names: Vec<String> = (0..array.extents.len()).map(|d| format!("v{d}")).collect();
    let index: Vec<Term> = names.iter().map(|n| Term::name(n)).collect();
    let element = Term::Load(array.name.clone(), index).cast(Type::F64);
    let weight = Term::Literal(Literal::from(0.3 + 0.1 * at as f64));
    let bounded = Term::binary(ebbtide_ir::Binary::Mul, weight, Term::Math(Function::Tanh, vec![element]));
    let update = Line::Update(Combine::Add, "loss".to_string(), Vec::new(), bounded);
    if names.is_empty() {
        return Some(update);
    }
    let ranges = names.into_iter().zip(&array.extents).map(|(n, e)| (n, Term::index(0), Term::Extent(*e)));
    Some(Line::Par { ranges: ranges.collect(), body: vec![update] })
}
