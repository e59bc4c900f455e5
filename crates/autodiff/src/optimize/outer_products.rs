//! Outer products that wait.
//!
//! Where a parallel loop reads a matrix by `sum += w[[k, i]] * h[k]`, its reverse adds an outer product to the shadow of the
//! matrix, `d_w[[k, i]] += v * h[k]`, in every iteration of the loop around it, and all of the shadow goes through the processor
//! each time. Where that loop does nothing else with the shadow, the factors are kept, `v` by `i` and `h[k]` by `k`, and the
//! products of several iterations are added in one go.
//!
//! Input: a reversed program and its shadows; output: the same program, and the arrays that keep factors. An element is one
//! chain over the terms in the order in which they came, waiting or not, so this changes nothing in its bits. No product waits
//! where the loop ends, so the pieces in which a schedule runs it make no difference either.

mod find;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Affines, ArrayId, Binary, Block, Branch, Compare, Indices, Loop, LoopKind, Op, Par, Range, Role, Stmt,
    Type, ValueId,
};

use crate::writer::Writer;
use crate::writer::prune::prune;
use find::{Finding, Matrix, Product, computed_in};

/// So many iterations of the loop around them add their products at once: with more, the factors take the place in the
/// fastest memory that they are to save.
const GROUP: i64 = 8;

/// Lets products that loops of the block add to these shadows wait; gives the declarations of what keeps their factors.
pub(crate) fn defer_outer_products(w: &mut Writer, block: &mut Block, shadows: &BTreeSet<ArrayId>) -> Block {
    let affines = Affines::of(&w.program);
    let mut deferring = Deferring { affines, shadows, declared: Block::new(), arrays: 0 };
    deferring.program_level(w, block);
    deferring.declared
}

struct Deferring<'a> {
    affines: Affines,
    shadows: &'a BTreeSet<ArrayId>,
    declared: Block,
    /// How many arrays keep factors.
    arrays: usize,
}

/// Where the factors of a product go in this iteration of the loop around it.
struct Around {
    slot: ValueId,
    /// Are the products added now?
    full: ValueId,
    /// How many wait then.
    waiting: ValueId,
}

impl Deferring<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn program_level(&mut self, w: &mut Writer, block: &mut Block) {
        for stmt in block {
            match stmt {
                Stmt::Loop(l) => self.in_loop(w, l),
                Stmt::Par(_) => continue,
                _ => {}
            }
            stmt.blocks_mut().for_each(|inner| self.program_level(w, inner));
        }
    }

    /// The products of parallel loops that stand in the body of this loop.
    fn in_loop(&mut self, w: &mut Writer, l: &mut Loop) {
        let LoopKind::For { var, from, to } = l.kind else { return };
        if l.until.is_some() {
            return;
        }
        let finding = Finding::new(&w.program, &self.affines, self.shadows, l);
        let found: BTreeMap<usize, Vec<Product>> = l
            .body
            .iter()
            .enumerate()
            .filter_map(|(at, stmt)| match stmt {
                Stmt::Par(par) => Some((at, finding.products(par))).filter(|(_, found)| !found.is_empty()),
                _ => None,
            })
            .collect();
        if found.is_empty() {
            return;
        }
        w.begin();
        let group = w.index(GROUP);
        let done = w.sub(var, from);
        let slot = w.binary(Binary::Rem, done, group);
        let one = w.index(1);
        let (last, end) = (w.sub(group, one), w.sub(to, one));
        let no_room = w.compare(Compare::Eq, slot, last);
        let ends = w.compare(Compare::Eq, var, end);
        let full = w.value(Op::Binary(Binary::Or, no_room, ends), Type::Bool);
        let waiting = w.add(slot, one);
        let around = Around { slot, full, waiting };
        for (at, stmt) in std::mem::take(&mut l.body).into_iter().enumerate() {
            match (stmt, found.get(&at)) {
                (Stmt::Par(par), Some(products)) => self.defer(w, &around, par, products),
                (stmt, _) => w.push(stmt),
            }
        }
        l.body = w.end();
    }

    /// Writes a parallel loop whose products wait, and what adds them.
    fn defer(&mut self, w: &mut Writer, around: &Around, mut par: Par, products: &[Product]) {
        let inside = computed_in(&par);
        let range = par.ranges[0];
        let (mut kept, mut added) = (Block::new(), Block::new());
        let mut rows: BTreeMap<usize, Block> = BTreeMap::new();
        for product in products {
            let mut columns: BTreeMap<(ValueId, ValueId), ArrayId> = BTreeMap::new();
            for matrix in &product.matrices {
                let coordinates = Coordinates::new(w, &self.affines, (product, matrix), &inside);
                let mut factors = Vec::new();
                for term in &matrix.terms {
                    let row = self.array(w, matrix.array, matrix.along);
                    let stored = w.block(|w| keep(w, row, [around.slot, range.var], term.row));
                    rows.entry(product.at).or_default().extend(stored);
                    let column = columns.get(&(term.column, matrix.across)).copied();
                    let column = column.unwrap_or_else(|| {
                        let array = self.array(w, matrix.array, 1 - matrix.along);
                        let each = coordinates.each(w, |w, at, k| {
                            let value =
                                again(w, term.column, &inside, &mut HashMap::from([(product.var, k)]));
                            keep(w, array, [around.slot, at], value);
                        });
                        kept.push(each);
                        array
                    });
                    columns.insert((term.column, matrix.across), column);
                    factors.push(Factors { row, column, row_first: term.row_first });
                }
                added.push(add(w, (range, &coordinates), matrix, &factors, around.waiting));
            }
        }
        let body = std::mem::take(&mut par.body).into_iter().enumerate();
        let body = body.flat_map(|(at, stmt)| rows.remove(&at).unwrap_or_else(|| vec![stmt])).collect();
        par.body = prune(&w.program, body);
        w.push(Stmt::Par(par));
        // A loop without iterations reads nothing.
        let runs = w.compare(Compare::Lt, range.from, range.to);
        w.push(Stmt::If(Branch { condition: runs, then: kept, otherwise: Block::new() }));
        w.push(Stmt::If(Branch { condition: around.full, then: added, otherwise: Block::new() }));
    }

    /// An array that keeps a factor for each coordinate of a matrix in one dimension.
    fn array(&mut self, w: &mut Writer, matrix: ArrayId, dimension: usize) -> ArrayId {
        let decl = w.program.array(matrix).clone();
        w.begin();
        let group = w.index(GROUP);
        let extent = match &decl.role {
            Role::Temp(shape) => shape[dimension],
            _ => w.dim(matrix, dimension),
        };
        self.declared.extend(w.end());
        let array = w.array(format!("waiting{}", self.arrays), decl.ty, 2, Role::Temp(vec![group, extent]));
        w.program.undefined.insert(array);
        self.declared.push(Stmt::Temp(array));
        self.arrays += 1;
        array
    }
}

/// The coordinates of a matrix that a product goes through with its own loop, in ascending order.
struct Coordinates {
    from: ValueId,
    to: ValueId,
    /// The coordinate that the loop has at zero, and whether coordinates grow with it.
    zero: ValueId,
    grows: bool,
}

impl Coordinates {
    fn new(
        w: &mut Writer,
        affines: &Affines,
        (product, matrix): (&Product, &Matrix),
        inside: &BTreeSet<ValueId>,
    ) -> Coordinates {
        let nothing = w.index(0);
        let zero = again(w, matrix.across, inside, &mut HashMap::from([(product.var, nothing)]));
        let [from, to] = [product.from, product.to].map(|v| again(w, v, inside, &mut HashMap::new()));
        let grows = affines.form(matrix.across).coefficient(product.var) > 0;
        let [from, to] = match grows {
            true => [from, to].map(|k| w.add(zero, k)),
            false => {
                let one = w.index(1);
                let behind = w.add(zero, one);
                [to, from].map(|k| w.sub(behind, k))
            }
        };
        Coordinates { from, to, zero, grows }
    }

    /// A range over the coordinates.
    fn range(&self, w: &mut Writer) -> Range {
        Range { var: w.loop_var("k"), from: self.from, to: self.to }
    }

    /// A parallel loop over the coordinates, which is told what the variable of the product's own loop is at each.
    fn each(&self, w: &mut Writer, write: impl FnOnce(&mut Writer, ValueId, ValueId)) -> Stmt {
        let range = self.range(w);
        let body = w.block(|w| {
            let k = if self.grows { w.sub(range.var, self.zero) } else { w.sub(self.zero, range.var) };
            write(w, range.var, k);
        });
        Stmt::Par(Par::over(w.new_par(), vec![range], body))
    }
}

/// The arrays that keep the factors of a term, and whether that of the row is the first one.
struct Factors {
    row: ArrayId,
    column: ArrayId,
    row_first: bool,
}

/// A loop that adds all products that wait to a matrix, in the order in which they came.
fn add(
    w: &mut Writer,
    (range, coordinates): (Range, &Coordinates),
    matrix: &Matrix,
    factors: &[Factors],
    waiting: ValueId,
) -> Stmt {
    let own = Range { var: w.loop_var("i"), ..range };
    let across = coordinates.range(w);
    let ranges = if matrix.along == 0 { vec![own, across] } else { vec![across, own] };
    let body = w.block(|w| {
        let at = two(ranges[0].var, ranges[1].var);
        let old = w.load(matrix.array, at, None);
        let total = w.local("total", old);
        let (zero, step) = (w.index(0), w.loop_var("step"));
        let body = w.block(|w| {
            for Factors { row, column, row_first } in factors {
                let row = w.load(*row, two(step, own.var), None);
                let column = w.load(*column, two(step, across.var), None);
                let term = if *row_first { w.mul(row, column) } else { w.mul(column, row) };
                let so_far = w.get(total);
                let sum = w.add(so_far, term);
                w.push(Stmt::Set(total, sum));
            }
        });
        let kind = LoopKind::For { var: step, from: zero, to: waiting };
        let id = w.new_loop();
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        let sum = w.get(total);
        w.store(matrix.array, at, sum, None);
    });
    Stmt::Par(Par::over(w.new_par(), ranges, body))
}

/// Keeps a factor.
fn keep(w: &mut Writer, array: ArrayId, [slot, at]: [ValueId; 2], factor: ValueId) {
    w.store(array, two(slot, at), factor, None);
}

fn two(a: ValueId, b: ValueId) -> Indices {
    Indices::new(&[a, b]).unwrap_or_else(|| unreachable!("two coordinates are few enough"))
}

/// A value of an iteration computed once more outside of it, with what the map has in place of others. The depth of recursion
/// is that of one expression.
fn again(
    w: &mut Writer,
    v: ValueId,
    inside: &BTreeSet<ValueId>,
    map: &mut HashMap<ValueId, ValueId>,
) -> ValueId {
    if let Some(known) = map.get(&v) {
        return *known;
    }
    if !inside.contains(&v) {
        return v;
    }
    let decl = w.program.value(v).clone();
    for operand in decl.op.operands() {
        let known = again(w, operand, inside, map);
        map.insert(operand, known);
    }
    let op = decl.op.map(|o| map.get(&o).copied().unwrap_or(o));
    let new = w.program.add_value(op, decl.ty, decl.site);
    w.push(Stmt::Let(new));
    map.insert(v, new);
    new
}
