//! The same program with other numbers for its values, as if they had been made in another order.

use ebbtide_ir::*;

/// The program with value `v` at place `places[v]` of a longer table. What is free there are constants that nothing uses.
pub fn renumbered(program: &Program, places: &[usize]) -> Program {
    let of = |v: ValueId| ValueId::from_index(places[v.index()]);
    let mut new = program.clone();
    let count = places.iter().max().map_or(0, |most| most + 1);
    let unused = ValueDecl { op: Op::Literal(Literal::from(7.0)), ty: Type::F64, name: None, site: None };
    new.values = vec![unused; count];
    for (decl, place) in program.values.iter().zip(places) {
        new.values[*place] = ValueDecl { op: decl.op.map(of), ..decl.clone() };
    }
    for array in &mut new.arrays {
        if let Role::Temp(shape) = &mut array.role {
            shape.iter_mut().for_each(|v| *v = of(*v));
        }
    }
    new.assertions.iter_mut().for_each(|assertion| assertion.value = of(assertion.value));
    for print in &mut new.prints {
        print.condition = of(print.condition);
        for piece in &mut print.pieces {
            if let Piece::Value(values, _) = piece {
                values.iter_mut().for_each(|v| *v = of(*v));
            }
        }
    }
    block(&mut new.body, &of);
    new
}

fn bound(bound: &mut Bound, of: &dyn Fn(ValueId) -> ValueId) {
    if let Bound::Scalar(v) = bound {
        *v = of(*v);
    }
}

/// The depth of recursion is that of nesting in the source.
fn block(stmts: &mut Block, of: &dyn Fn(ValueId) -> ValueId) {
    for stmt in stmts {
        statement(stmt, of);
        stmt.blocks_mut().for_each(|inner| block(inner, of));
    }
}

/// A statement without its blocks.
fn statement(stmt: &mut Stmt, of: &dyn Fn(ValueId) -> ValueId) {
    match stmt {
        Stmt::Let(v) | Stmt::Declare(_, v) | Stmt::Set(_, v) | Stmt::Fill(_, v, _) => *v = of(*v),
        Stmt::Store(s) | Stmt::Update(_, s) => {
            s.index = s.index.map(of);
            s.value = of(s.value);
        }
        Stmt::Claim(claim) => claim.index = claim.index.map(of),
        Stmt::If(branch) => branch.condition = of(branch.condition),
        Stmt::Loop(l) => {
            match &mut l.kind {
                LoopKind::For { var, from, to } => [var, from, to].into_iter().for_each(|v| *v = of(*v)),
                LoopKind::While { condition, .. } => *condition = of(*condition),
                LoopKind::Forever => {}
            }
            l.until = l.until.map(of);
        }
        Stmt::Par(par) => {
            for Range { var, from, to } in &mut par.ranges {
                [var, from, to].into_iter().for_each(|v| *v = of(*v));
            }
            par.requires.iter_mut().for_each(|requirement| requirement.condition = of(requirement.condition));
        }
        Stmt::Call(call) => {
            let arguments = call.ruled.iter_mut().flat_map(|ruled| &mut ruled.arguments);
            arguments.for_each(|argument| bound(argument, of));
        }
        Stmt::Library(call) => call.arguments.iter_mut().for_each(|argument| bound(argument, of)),
        Stmt::Forward(f) => {
            [&mut f.from, &mut f.to].into_iter().for_each(|v| *v = of(*v));
            if let Length::Known(from, to) = &mut f.length {
                [from, to].into_iter().for_each(|v| *v = of(*v));
            }
        }
        Stmt::Region(_)
        | Stmt::Swap(..)
        | Stmt::Copy { .. }
        | Stmt::Temp(_)
        | Stmt::Push(_)
        | Stmt::Pop(_) => {}
        Stmt::Backward(_) | Stmt::Host(..) => {}
    }
}
