//! What a program says of itself: its tables fit together.
//!
//! Input: a program, whose fields anyone can set. Output: flaws. Devices size the memory of a launch by these tables and trust
//! that every identifier in the body is an entry of one: arrays of the caller are parameters, loops and regions are counted,
//! and a name for an older state of an array has that array's type and shape.

use std::collections::BTreeSet;

use crate::syntax::*;

/// What does not fit.
pub(crate) fn flaws(program: &Program) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let mut flaw = |law: &'static str, message: String| flaws.push(Flaw { law, message, site: None });
    let mut params = BTreeSet::new();
    for param in &program.params {
        let known = match param {
            Param::Array(a) => {
                params.insert(a.index());
                program.arrays.get(a.index()).is_some_and(|decl| matches!(decl.role, Role::Param(_)))
            }
            Param::Scalar(s) => s.index() < program.scalars.len(),
        };
        if !known {
            flaw("2", format!("{param:?} is no parameter that the program declares"));
        }
    }
    for (id, decl) in program.arrays.iter().enumerate() {
        match &decl.role {
            Role::Param(_) if !params.contains(&id) => {
                flaw("2", format!("array `{}` is the caller's, and no parameter", decl.name));
            }
            Role::Old(array) => {
                let like = program.arrays.get(array.index());
                let fits = like.is_some_and(|like| {
                    (like.ty, like.rank) == (decl.ty, decl.rank) && !matches!(like.role, Role::Old(_))
                });
                if !fits {
                    flaw("2", format!("`{}` is what no array of its type and rank held", decl.name));
                }
            }
            Role::Tape(top) => {
                let counts = program.arrays.get(top.index()).is_some_and(|top| {
                    (top.ty, top.rank) == (Type::I64, 0) && matches!(top.role, Role::Temp(_))
                });
                if !counts || decl.rank != 1 || !program.driven {
                    flaw("2", format!("`{}` is a tape, and nothing says how much it holds", decl.name));
                }
            }
            _ => {}
        }
        if decl.rank > Indices::MAX_RANK || !decl.ty.is_element() {
            flaw("2", format!("array `{}` has rank {} and elements `{}`", decl.name, decl.rank, decl.ty));
        }
    }
    for print in &program.prints {
        let shown = print.pieces.iter().flat_map(|piece| match piece {
            Piece::Text(_) => &[],
            Piece::Value(values, _) => &values[..],
        });
        if !shown.chain([&print.condition]).all(|v| v.index() < program.values.len()) {
            flaw("1", "a line prints a value that there is not".to_string());
        }
    }
    let mut writes = BTreeSet::new();
    walk(&program.body, &mut |stmt| {
        if let Some(id) = stmt.write()
            && (id == WriteId::UNNUMBERED || !writes.insert(id))
        {
            flaw(
                "1",
                "two writes share a number, or one has none: `number_writes` was forgotten".to_string(),
            );
        }
    });
    walk(&program.body, &mut |stmt| match stmt {
        Stmt::Loop(l) if l.id.index() >= program.loops as usize => {
            flaw("1", format!("there is no loop {}", l.id.index()));
        }
        Stmt::Region(region) if region.id.index() >= program.regions as usize => {
            flaw("1", format!("there is no region {}", region.id.index()));
        }
        Stmt::Push(Push { array, after: After::Anything(old) }) => {
            let old = program.arrays.get(old.index());
            if !old.is_some_and(|old| old.role == Role::Old(*array)) {
                flaw("2", format!("array {} is pushed under a name that is not its own", array.index()));
            }
        }
        _ => {}
    });
    flaws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Type;
    use crate::{Builder, Literal, verify};

    fn program() -> Program {
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let y = b.array("y", Type::F64, 2, Access::Write);
        let (zero, one) = (b.literal(Literal::index(0)), b.literal(Literal::from(1.0)));
        let n = b.dim(x, 0);
        b.begin_for("t", zero, n);
        b.fill(x, one);
        b.fill(y, one);
        b.end_loop(None);
        b.finish().expect("it is lawful")
    }

    /// Does something to a program.
    type Harm = fn(&mut Program);

    #[test]
    fn c59_tables_that_do_not_fit_together_are_build_errors() {
        let harms: [(&str, Harm); 13] = [
            ("a parameter less", |p| p.params.truncate(1)),
            ("a parameter twice", |p| p.params[1] = p.params[0]),
            ("a parameter that is no array", |p| p.params.push(Param::Array(ArrayId::from_index(9)))),
            ("a temporary as a parameter", |p| p.arrays[1].role = Role::Temp(Vec::new())),
            ("a tape without a number of elements", |p| {
                p.arrays.push(ArrayDecl { role: Role::Tape(ArrayId::from_index(0)), ..p.arrays[1].clone() });
            }),
            ("no loops", |p| p.loops = 0),
            ("a rank too many", |p| p.arrays[1].rank = 7),
            ("elements that are none", |p| p.arrays[0].ty = Type::Index),
            ("an old state of another type", |p| {
                let old = ArrayDecl { role: Role::Old(ArrayId::from_index(0)), ..p.arrays[1].clone() };
                p.arrays.push(old);
            }),
            ("a line with a value that there is not", |p| {
                let pieces = vec![Piece::Value(vec![ValueId::from_index(999)], Format::default())];
                let condition = ValueId::from_index(0);
                p.prints.push(Print { condition, stream: Stream::Out, pieces });
            }),
            ("a write twice", |p| {
                let copy = p.body.clone();
                p.body.extend(copy);
            }),
            ("a write without a number", |p| {
                let [x, y] = [0, 1].map(ArrayId::from_index);
                p.body.push(Stmt::Copy { from: x, to: y, id: WriteId::UNNUMBERED });
            }),
            ("a push under the name of another array", |p| {
                let [x, y] = [0, 1].map(ArrayId::from_index);
                p.body.push(Stmt::Push(Push { array: x, after: After::Anything(y) }));
            }),
        ];
        assert!(verify(&program()).is_ok());
        for (harm, inflict) in harms {
            let mut harmed = program();
            inflict(&mut harmed);
            assert!(verify(&harmed).is_err(), "{harm}");
        }
    }
}
