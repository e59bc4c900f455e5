//! What every derivative starts from: the program with calls in place, but for those of programs that bring their own derivatives, and program-level variables in arrays.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, ArrayDecl, ArrayId, Binary, Block, Call, Combine, Facts, Indices, Literal, LocalId, Op, Par,
    ParFacts, ParId, Program, Role, Safety, Sharing, Stmt, Store, Type, WriteId, depends_on_arguments_alone,
    verify, walk, walk_program_level,
};

use crate::analysis::extremes::extremes_alone;
use crate::analysis::store_forwarding::store_forwarding;
use crate::normalize::counted_loops::bound_counting_loops;
use crate::normalize::custom_calls::closed;
use crate::normalize::early::computed_again;
use crate::normalize::periodic_neighbours::periodic_neighbours;

/// The program in the form that transformations take.
pub(crate) fn prepare(source: &Program) -> Program {
    let mut program = source.clone();
    // What was proved of a loop as it is written need not be proved of it in another form.
    let facts = verify(source).ok();
    if facts.is_some() {
        proved(&mut program.body);
    }
    let body = std::mem::take(&mut program.body);
    let mut closed = Vec::new();
    program.body = inline(&mut program, body, &mut closed);
    temps_at_the_start(&mut program, closed);
    locals_in_arrays(&mut program);
    periodic_neighbours(&mut program);
    in_place(&mut program, facts.as_ref());
    extents(&mut program);
    program.number_writes();
    program
}

/// Extents of parameters as values: they bound loops whose own bounds are data.
fn extents(program: &mut Program) {
    let mut is_data = false;
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            is_data |= par.ranges.iter().any(|r| !depends_on_arguments_alone(program, r.to));
        }
    });
    for array in program.array_ids().filter(|_| is_data).collect::<Vec<_>>() {
        let decl = program.array(array);
        if let (Role::Param(_), rank) = (&decl.role, decl.rank) {
            for k in 0..rank {
                program.add_value(Op::Dim(array, k as u8), Type::Index, None);
            }
        }
    }
}

/// The depth of recursion is that of nesting in the source.
fn proved(block: &mut Block) {
    for stmt in block {
        match stmt {
            Stmt::Par(par) => par.safety = Safety::Proved,
            _ => stmt.blocks_mut().for_each(proved),
        }
    }
}

/// `a[i] += x` is `a[i] = a[i] + x` where the same iteration reads `a` afterwards: then what it reads is known. So is
/// `a[i].max_assign(x)` where the loop uses `a` in another way too and no other iteration has that element (law 13).
fn in_place(program: &mut Program, facts: Option<&Facts>) {
    let affines = Affines::of(program);
    let mut read: BTreeMap<ParId, BTreeSet<ArrayId>> = BTreeMap::new();
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            let mut arrays = store_forwarding(program, &affines, par).undecided(program);
            let own = facts.and_then(|facts| facts.pars.get(&par.id));
            arrays.extend(own.into_iter().flat_map(|own| own_extremes(program, par, own)));
            read.extend((!arrays.is_empty()).then_some((par.id, arrays)));
        }
    });
    let mut body = std::mem::take(&mut program.body);
    in_parallel_loops(program, &mut body, &read);
    program.body = body;
}

/// The arrays that a loop takes minima or maxima into and uses in another way too, none of it shared by iterations.
fn own_extremes(program: &Program, par: &Par, facts: &ParFacts) -> BTreeSet<ArrayId> {
    let (mut arrays, mut shared) = (BTreeSet::new(), BTreeSet::new());
    walk(&par.body, &mut |stmt| {
        if let Stmt::Update(how, s) = stmt {
            if matches!(how, Combine::Min | Combine::Max) {
                arrays.insert(s.array);
            }
            if facts.of(s) != Sharing::Own {
                shared.insert(s.array);
            }
        }
    });
    arrays.retain(|array| !shared.contains(array) && !extremes_alone(program, par, *array));
    arrays
}

/// The depth of recursion is that of nesting in the source.
fn in_parallel_loops(program: &mut Program, block: &mut Block, read: &BTreeMap<ParId, BTreeSet<ArrayId>>) {
    for stmt in block {
        match stmt {
            Stmt::Par(par) => {
                if let Some(arrays) = read.get(&par.id) {
                    updates_to_stores(program, &mut par.body, arrays);
                    bound_counting_loops(program, &mut par.body);
                }
            }
            _ => stmt.blocks_mut().for_each(|inner| in_parallel_loops(program, inner, read)),
        }
    }
}

fn updates_to_stores(program: &mut Program, block: &mut Block, arrays: &BTreeSet<ArrayId>) {
    let mut out = Block::new();
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|inner| updates_to_stores(program, inner, arrays));
        match stmt {
            Stmt::Update(how, s) if arrays.contains(&s.array) => {
                let ty = program.array(s.array).ty;
                let op = match how {
                    Combine::Add => Binary::Add,
                    Combine::Min => Binary::Min,
                    Combine::Max => Binary::Max,
                };
                let old = program.add_value(Op::Load(s.array, s.index), ty, s.site.clone());
                let value = program.add_value(Op::Binary(op, old, s.value), ty, None);
                out.extend([Stmt::Let(old), Stmt::Let(value), Stmt::Store(Store { value, ..s })]);
            }
            _ => out.push(stmt),
        }
    }
    *block = out;
}

/// A temporary that is declared in a loop or a branch lives for the whole launch, and is filled with zeros where it
/// was declared: then the reverse half can name it, and its contents go on the tape like those of any array.
fn temps_at_the_start(program: &mut Program, mut inner: Vec<ArrayId>) {
    let mut body = std::mem::take(&mut program.body);
    for stmt in &mut body {
        stmt.blocks_mut().for_each(|block| temps_to_fills(program, block, &mut inner));
    }
    let mut start = Block::new();
    for array in inner {
        let Role::Temp(shape) = program.array(array).role.clone() else { continue };
        let shape = shape.into_iter().map(|v| computed_again(program, &mut start, v)).collect();
        program.arrays[array.index()].role = Role::Temp(shape);
        start.push(Stmt::Temp(array));
    }
    start.extend(body);
    program.body = start;
}

fn temps_to_fills(program: &mut Program, block: &mut Block, inner: &mut Vec<ArrayId>) {
    let mut out = Block::new();
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|b| temps_to_fills(program, b, inner));
        if let Stmt::Temp(array) = stmt {
            inner.push(array);
            let ty = program.array(array).ty;
            let zero = program.add_value(Op::Literal(Literal::of(ty, 0.0)), ty, None);
            out.extend([Stmt::Let(zero), Stmt::Fill(array, zero, WriteId::UNNUMBERED)]);
        } else {
            out.push(stmt);
        }
    }
    *block = out;
}

/// The bodies of called programs in place of the calls, and of regions that cannot yield in place of these. `temps`
/// gets the temporaries of programs that bring their own derivatives.
fn inline(program: &mut Program, block: Block, temps: &mut Vec<ArrayId>) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        match stmt {
            Stmt::Call(Call { name, mut body, ruled: Some(ruled) }) => {
                temps_to_fills(program, &mut body, temps);
                out.push(closed(program, name, body, ruled));
            }
            Stmt::Call(call) => out.extend(inline(program, call.body, temps)),
            Stmt::Region(region) if region.flag.is_none() => {
                out.extend(inline(program, region.body, temps));
            }
            _ => {
                stmt.blocks_mut().for_each(|b| *b = inline(program, std::mem::take(b), temps));
                out.push(stmt);
            }
        }
    }
    out
}

/// A mutable variable at program level becomes an array of rank 0: then it has a shadow and a tape, and slots carry
/// it, like any other.
fn locals_in_arrays(program: &mut Program) {
    let mut arrays: BTreeMap<LocalId, ArrayId> = BTreeMap::new();
    let mut locals: BTreeSet<LocalId> = BTreeSet::new();
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Declare(local, _) = stmt {
            locals.insert(*local);
        }
    });
    for local in locals {
        let decl = program.locals[local.index()].clone();
        let ty = if decl.ty == Type::Index { Type::I64 } else { decl.ty };
        program.arrays.push(ArrayDecl { name: decl.name, ty, rank: 0, role: Role::Temp(Vec::new()) });
        arrays.insert(local, ArrayId::from_index(program.arrays.len() - 1));
    }
    let Some(index) = Indices::new(&[]) else { return };
    let body = std::mem::take(&mut program.body);
    let body = rewrite(program, body, &arrays, index);
    // They exist for the whole launch: what is declared again in a loop is only written again.
    program.body = arrays.values().map(|a| Stmt::Temp(*a)).chain(body).collect();
}

fn rewrite(
    program: &mut Program,
    block: Block,
    arrays: &BTreeMap<LocalId, ArrayId>,
    index: Indices,
) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        if let Stmt::Par(par) = &mut stmt {
            // All iterations read the same: before the loop, so that it is the same for whoever looks at the loop.
            let mut read = Block::new();
            take_reads(program, &mut par.body, arrays, &mut read);
            out.extend(rewrite(program, read, arrays, index));
        }
        stmt.blocks_mut().for_each(|b| *b = rewrite(program, std::mem::take(b), arrays, index));
        match stmt {
            Stmt::Declare(local, value) | Stmt::Set(local, value) => match arrays.get(&local) {
                Some(array) => {
                    let mut value = value;
                    if program.ty(value) == Type::Index {
                        value = program.add_value(Op::Cast(value), Type::I64, None);
                        out.push(Stmt::Let(value));
                    }
                    let (site, id) = (None, WriteId::UNNUMBERED);
                    out.push(Stmt::Store(Store { array: *array, index, value, site, id }));
                }
                None => out.push(stmt),
            },
            Stmt::Let(v) => {
                if let Op::Get(local) = *program.op(v)
                    && let Some(array) = arrays.get(&local)
                {
                    let load = Op::Load(*array, index);
                    program.values[v.index()].op = if program.ty(v) == Type::Index {
                        let loaded = program.add_value(load, Type::I64, None);
                        out.push(Stmt::Let(loaded));
                        Op::Cast(loaded)
                    } else {
                        load
                    };
                }
                out.push(stmt);
            }
            _ => out.push(stmt),
        }
    }
    out
}

/// Takes the reads of these variables out of a block. The depth of recursion is that of nesting in the source.
fn take_reads(program: &Program, block: &mut Block, arrays: &BTreeMap<LocalId, ArrayId>, read: &mut Block) {
    for mut stmt in std::mem::take(block) {
        stmt.blocks_mut().for_each(|inner| take_reads(program, inner, arrays, read));
        match stmt {
            Stmt::Let(v) if matches!(program.op(v), Op::Get(local) if arrays.contains_key(local)) => {
                read.push(stmt);
            }
            _ => block.push(stmt),
        }
    }
}
