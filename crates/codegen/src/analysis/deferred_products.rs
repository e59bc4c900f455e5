//! Products that wait: a loop that adds `aᵀ · b` of a few terms to a matrix in every iteration reads and writes all of the
//! matrix each time. Where it does nothing else with the matrix, each thread keeps the rows of `a` and `b` in memory of its
//! own and adds several products at once to its part of the matrix.
//!
//! An element is one chain over the terms in the order in which they came, waiting or not, so this changes nothing in its
//! bits. The rows are settled when there is no room for more, after the loop, and where the function is left.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    After, ArrayId, Assign, Block, Layout, LibraryCall, LibraryOp, LoopId, Op, Program, Stmt, Undone, walk,
};

/// By outermost loop: the matrices to which it adds products of transposed rows by rows, and with which it does nothing
/// else.
pub(crate) fn only_added_to(program: &Program, block: &Block) -> BTreeMap<LoopId, BTreeSet<ArrayId>> {
    let mut found = BTreeMap::new();
    search(program, block, &BTreeSet::new(), &mut found);
    found
}

/// The depth of recursion is that of nesting in the source.
fn search(
    program: &Program,
    block: &Block,
    outside: &BTreeSet<ArrayId>,
    found: &mut BTreeMap<LoopId, BTreeSet<ArrayId>>,
) {
    for stmt in block {
        let mut around = outside.clone();
        if let Stmt::Loop(l) = stmt {
            let mut here = only_added_to_in(program, stmt);
            here.retain(|c| !outside.contains(c));
            if !here.is_empty() {
                around.extend(&here);
                found.insert(l.id, here);
            }
        }
        if !matches!(stmt, Stmt::Par(_)) {
            stmt.blocks().for_each(|inner| search(program, inner, &around, found));
        }
    }
}

/// The matrices that a statement adds products to and does not touch otherwise.
fn only_added_to_in(program: &Program, stmt: &Stmt) -> BTreeSet<ArrayId> {
    let (mut added, mut touched) = (BTreeSet::new(), BTreeSet::new());
    let mut native = true;
    walk(std::slice::from_ref(stmt), &mut |stmt| match stmt {
        Stmt::Library(call) if adds_rows(call) => {
            added.extend(&call.writes);
            touched.extend(&call.reads);
        }
        Stmt::Library(call) => touched.extend(call.arrays()),
        Stmt::Let(v) => {
            if let Op::Load(array, _) = program.op(*v) {
                touched.insert(*array);
            }
        }
        Stmt::Store(s) | Stmt::Update(_, s) => drop(touched.insert(s.array)),
        Stmt::Claim(claim) => touched.extend([claim.array, claim.taken]),
        Stmt::Swap(a, b) | Stmt::Copy { from: a, to: b, .. } => touched.extend([*a, *b]),
        Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Pop(a) => drop(touched.insert(*a)),
        Stmt::Push(push) => {
            touched.insert(push.array);
            if let After::Anything(old) = push.after {
                touched.insert(old);
            }
        }
        Stmt::Region(region) => {
            touched.extend(region.flag);
            touched.extend(Undone::by(region).arrays);
        }
        Stmt::Declare(..) | Stmt::Set(..) | Stmt::If(_) | Stmt::Loop(_) | Stmt::Par(_) | Stmt::Call(_) => {}
        Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) => native = false,
    });
    added.retain(|c| native && !touched.contains(c));
    added
}

/// Does the operation add a product whose terms are whole rows of both factors?
fn adds_rows(call: &LibraryCall) -> bool {
    let (left, right, into) = (Layout::Transposed, Layout::Plain, Assign::Add);
    call.op == LibraryOp::Matmul { left, right, into }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{
        Access, ArrayId, Assign, Binary, Builder, Label, Layout, LibraryOp, Literal, Type, Undo, ValueId,
    };
    use expect_test::expect;

    use super::only_added_to;

    /// A program under construction, with factors `a` and `b` and matrices `c` and `d`.
    struct Given {
        b: Builder,
        factors: [ArrayId; 2],
        c: ArrayId,
        d: ArrayId,
        flag: ArrayId,
        bounds: [ValueId; 2],
    }

    impl Given {
        fn matmul(&mut self, left: Layout, right: Layout, into: Assign, c: ArrayId) {
            self.b.library(LibraryOp::Matmul { left, right, into }, &self.factors, &[c]);
        }

        /// `c += aᵀ · b`.
        fn add(&mut self, c: ArrayId) {
            self.matmul(Layout::Transposed, Layout::Plain, Assign::Add, c);
        }

        fn begin(&mut self, name: &str) {
            self.b.begin_for(name, self.bounds[0], self.bounds[1]);
        }

        fn region(&mut self, undo: Undo) {
            let label = Label { family: "Stage".to_string(), variant: "Here".to_string() };
            self.b.begin_region(label, Some(self.flag), undo);
            self.add(self.c);
            self.b.end_region();
        }
    }

    /// A line of what waits for what in the program that `write` writes.
    fn line(name: &str, write: impl Fn(&mut Given)) -> String {
        let mut b = Builder::new("waiting");
        let [x, y, c, d] = ["a", "b", "c", "d"].map(|name| b.array(name, Type::F64, 2, Access::Write));
        let flag = b.array("flag", Type::I32, 0, Access::Write);
        let bounds = [b.literal(Literal::index(0)), b.scalar("steps", Type::Index)];
        let mut given = Given { b, factors: [x, y], c, d, flag, bounds };
        write(&mut given);
        let program = given.b.finish().unwrap();
        let found = only_added_to(&program, &program.body);
        let found = found.iter().map(|(l, arrays)| {
            let names: Vec<&str> = arrays.iter().map(|a| program.array(*a).name.as_str()).collect();
            format!(" loop {}: {}", l.index(), names.join(" "))
        });
        let found: Vec<String> = found.collect();
        format!("{name}:{}\n", if found.is_empty() { " none".to_string() } else { found.join(",") })
    }

    /// The program `for t { write }`.
    fn in_loop(name: &str, write: impl Fn(&mut Given)) -> String {
        line(name, |g| {
            g.begin("t");
            write(g);
            g.b.end_loop(None);
        })
    }

    #[test]
    fn products_wait_where_a_loop_does_nothing_else_with_the_matrix() {
        let zero = |g: &mut Given| g.bounds[0];
        let real = |g: &mut Given| g.b.literal(Literal::from(1.0));
        let lines = [
            in_loop("added to", |g| g.add(g.c)),
            in_loop("added to twice", |g| {
                g.add(g.c);
                g.add(g.c);
            }),
            in_loop("two matrices", |g| {
                g.add(g.c);
                g.add(g.d);
            }),
            in_loop("its extents are read", |g| {
                let n = g.b.dim(g.c, 0);
                g.b.binary(Binary::Add, n, n);
                g.add(g.c);
            }),
            in_loop("in an inner loop", |g| {
                g.begin("s");
                g.add(g.c);
                g.b.end_loop(None);
            }),
            in_loop("read after the inner loop", |g| {
                g.begin("s");
                g.add(g.c);
                g.b.end_loop(None);
                g.b.copy(g.c, g.d);
            }),
            in_loop("a region yields", |g| g.region(Undo::Nothing)),
            in_loop("a region undoes it", |g| g.region(Undo::Everything)),
            line("a region that undoes it is around the loop", |g| {
                let label = Label { family: "Stage".to_string(), variant: "Here".to_string() };
                g.b.begin_region(label, Some(g.flag), Undo::Everything);
                g.begin("t");
                g.add(g.c);
                g.b.end_loop(None);
                g.b.end_region();
            }),
            line("no loop", |g| g.add(g.c)),
            in_loop("replaced", |g| {
                g.matmul(Layout::Transposed, Layout::Plain, Assign::Replace, g.c);
            }),
            in_loop("its terms are no rows", |g| {
                g.matmul(Layout::Plain, Layout::Plain, Assign::Add, g.c);
            }),
            in_loop("added to in another way too", |g| {
                g.add(g.c);
                g.matmul(Layout::Plain, Layout::Plain, Assign::Add, g.c);
            }),
            in_loop("a factor of another product", |g| {
                g.add(g.c);
                g.b.matmul(g.c, g.factors[0], g.d);
            }),
            in_loop("an element is read", |g| {
                g.add(g.c);
                let zero = zero(g);
                g.b.load(g.c, &[zero, zero]);
            }),
            in_loop("an element is written in a parallel loop", |g| {
                g.add(g.c);
                let (zero, one) = (zero(g), real(g));
                let i = g.b.begin_par(&[("i", zero, g.bounds[1])])[0];
                g.b.store(g.c, &[i, i], one);
                g.b.end_par();
            }),
            in_loop("exchanged", |g| {
                g.add(g.c);
                g.b.swap(g.c, g.d);
            }),
            in_loop("filled", |g| {
                let one = real(g);
                g.b.fill(g.c, one);
                g.add(g.c);
            }),
            in_loop("made in the loop", |g| {
                let [n, m] = [0, 1].map(|k| g.b.dim(g.c, k));
                let made = g.b.temp("made", Type::F64, &[n, m]);
                g.add(made);
            }),
        ];
        expect![[r#"
            added to: loop 0: c
            added to twice: loop 0: c
            two matrices: loop 0: c d
            its extents are read: loop 0: c
            in an inner loop: loop 0: c
            read after the inner loop: loop 1: c
            a region yields: loop 0: c
            a region undoes it: none
            a region that undoes it is around the loop: loop 0: c
            no loop: none
            replaced: none
            its terms are no rows: none
            added to in another way too: none
            a factor of another product: none
            an element is read: none
            an element is written in a parallel loop: none
            exchanged: none
            filled: none
            made in the loop: none
        "#]]
        .assert_eq(&lines.concat());
    }
}
