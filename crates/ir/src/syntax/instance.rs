//! Putting a whole program into another one.

use std::sync::Arc;

use super::ids::*;
use super::op::*;
use super::program::*;

/// Where the tables of a program go in another one.
struct Places<'a> {
    source: &'a Program,
    arrays: Vec<ArrayId>,
    values: Vec<ValueId>,
    labels: Vec<LabelId>,
    locals: u32,
    loops: u32,
    pars: u32,
    regions: u32,
    operations: u32,
}

impl Program {
    /// Adds the declarations of `other` to this program and gives its body, with its parameters bound to arrays and
    /// values of this program, in order. `None` where there are not as many of the right kinds.
    pub fn instance(&mut self, other: &Program, bound: &[Bound]) -> Option<Block> {
        let mut arrays: Vec<Option<ArrayId>> = vec![None; other.arrays.len()];
        let mut scalars: Vec<Option<ValueId>> = vec![None; other.scalars.len()];
        if bound.len() != other.params.len() {
            return None;
        }
        for (param, bound) in other.params.iter().zip(bound) {
            match (param, bound) {
                (Param::Array(a), Bound::Array(id, _)) => arrays[a.index()] = Some(*id),
                (Param::Scalar(s), Bound::Scalar(v)) => scalars[s.index()] = Some(*v),
                _ => return None,
            }
        }
        let arrays: Vec<ArrayId> = other
            .arrays
            .iter()
            .zip(arrays)
            .map(|(decl, bound)| {
                bound.unwrap_or_else(|| {
                    self.arrays.push(decl.clone());
                    ArrayId(self.arrays.len() as u32 - 1)
                })
            })
            .collect();
        let first = self.values.len() as u32;
        let values = other.values.iter().enumerate().map(|(k, decl)| match decl.op {
            Op::Scalar(s) => scalars[s.index()].unwrap_or(ValueId(first + k as u32)),
            _ => ValueId(first + k as u32),
        });
        let labels = other.labels.iter().map(|label| {
            let known = self.labels.iter().position(|l| l == label).unwrap_or_else(|| {
                self.labels.push(label.clone());
                self.labels.len() - 1
            });
            LabelId(known as u32)
        });
        let places = Places {
            source: other,
            values: values.collect(),
            labels: labels.collect(),
            arrays,
            locals: self.locals.len() as u32,
            loops: self.loops,
            pars: self.pars,
            regions: self.regions,
            operations: self.operations.len() as u32,
        };
        for decl in &other.values {
            self.values.push(ValueDecl { op: places.op(decl.op), ..decl.clone() });
        }
        for (decl, id) in other.arrays.iter().zip(&places.arrays) {
            if let Role::Temp(shape) = &decl.role {
                self.arrays[id.index()].role = Role::Temp(shape.iter().map(|v| places.value(*v)).collect());
            }
        }
        self.locals.extend(other.locals.iter().cloned());
        self.operations.extend(other.operations.iter().map(Arc::clone));
        self.loops += other.loops;
        self.pars += other.pars;
        self.regions += other.regions;
        Some(places.block(&other.body))
    }
}

impl Places<'_> {
    fn value(&self, v: ValueId) -> ValueId {
        self.values[v.index()]
    }

    fn array(&self, a: ArrayId) -> ArrayId {
        self.arrays[a.index()]
    }

    fn local(&self, l: LocalId) -> LocalId {
        LocalId(l.0 + self.locals)
    }

    fn op(&self, op: Op) -> Op {
        match op.map(|v| self.value(v)) {
            Op::Dim(a, k) => Op::Dim(self.array(a), k),
            Op::Load(a, index) => Op::Load(self.array(a), index),
            Op::Get(l) => Op::Get(self.local(l)),
            other => other,
        }
    }

    fn store(&self, s: &Store) -> Store {
        Store {
            array: self.array(s.array),
            index: s.index.map(|v| self.value(v)),
            value: self.value(s.value),
            site: s.site.clone(),
            id: s.id,
        }
    }

    fn bound(&self, bound: &Bound) -> Bound {
        match *bound {
            Bound::Array(a, access) => Bound::Array(self.array(a), access),
            Bound::Scalar(v) => Bound::Scalar(self.value(v)),
        }
    }

    /// The depth of recursion is the depth of nesting in the source.
    fn block(&self, block: &Block) -> Block {
        block.iter().filter_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> Option<Stmt> {
        Some(match stmt {
            // Scalar parameters are values of the program around.
            Stmt::Let(v) if matches!(self.source.op(*v), Op::Scalar(_)) => return None,
            Stmt::Let(v) => Stmt::Let(self.value(*v)),
            Stmt::Declare(l, v) => Stmt::Declare(self.local(*l), self.value(*v)),
            Stmt::Set(l, v) => Stmt::Set(self.local(*l), self.value(*v)),
            Stmt::Store(s) => Stmt::Store(self.store(s)),
            Stmt::Update(how, s) => Stmt::Update(*how, self.store(s)),
            Stmt::Claim(claim) => Stmt::Claim(Claim {
                array: self.array(claim.array),
                taken: self.array(claim.taken),
                index: claim.index.map(|v| self.value(v)),
                site: claim.site.clone(),
            }),
            Stmt::If(branch) => Stmt::If(Branch {
                condition: self.value(branch.condition),
                then: self.block(&branch.then),
                otherwise: self.block(&branch.otherwise),
            }),
            Stmt::Loop(l) => Stmt::Loop(self.sequential(l)),
            Stmt::Par(par) => Stmt::Par(Par {
                id: ParId(par.id.0 + self.pars),
                ranges: par
                    .ranges
                    .iter()
                    .map(|r| Range { var: self.value(r.var), from: self.value(r.from), to: self.value(r.to) })
                    .collect(),
                body: self.block(&par.body),
                ordering: par.ordering,
                requires: par
                    .requires
                    .iter()
                    .map(|r| Requirement {
                        condition: self.value(r.condition),
                        array: self.array(r.array),
                        ..r.clone()
                    })
                    .collect(),
                safety: par.safety,
                site: par.site.clone(),
            }),
            Stmt::Region(region) => Stmt::Region(Region {
                id: RegionId(region.id.0 + self.regions),
                label: self.labels[region.label.index()],
                flag: region.flag.map(|a| self.array(a)),
                undo: match &region.undo {
                    Undo::Arrays(arrays) => Undo::Arrays(arrays.iter().map(|a| self.array(*a)).collect()),
                    other => other.clone(),
                },
                body: self.block(&region.body),
                site: region.site.clone(),
            }),
            Stmt::Call(call) => Stmt::Call(Call {
                name: call.name.clone(),
                body: self.block(&call.body),
                ruled: call.ruled.as_ref().map(|ruled| Ruled {
                    arguments: ruled.arguments.iter().map(|b| self.bound(b)).collect(),
                    rules: ruled.rules,
                }),
            }),
            Stmt::Swap(a, b) => Stmt::Swap(self.array(*a), self.array(*b)),
            Stmt::Fill(a, v, id) => Stmt::Fill(self.array(*a), self.value(*v), *id),
            Stmt::Copy { from, to, id } => {
                Stmt::Copy { from: self.array(*from), to: self.array(*to), id: *id }
            }
            Stmt::Library(call) => Stmt::Library(LibraryCall {
                op: match call.op {
                    LibraryOp::Custom(id) => LibraryOp::Custom(OperationId(id.0 + self.operations)),
                    op => op,
                },
                reads: call.reads.iter().map(|a| self.array(*a)).collect(),
                writes: call.writes.iter().map(|a| self.array(*a)).collect(),
                arguments: call.arguments.iter().map(|b| self.bound(b)).collect(),
                site: call.site.clone(),
            }),
            Stmt::Temp(a) => Stmt::Temp(self.array(*a)),
            // Source programs have no tapes and no sweeps.
            Stmt::Push(_) | Stmt::Pop(_) | Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) => {
                return None;
            }
        })
    }

    fn sequential(&self, l: &Loop) -> Loop {
        Loop {
            id: LoopId(l.id.0 + self.loops),
            kind: match &l.kind {
                LoopKind::For { var, from, to } => {
                    LoopKind::For { var: self.value(*var), from: self.value(*from), to: self.value(*to) }
                }
                LoopKind::While { head, condition } => {
                    LoopKind::While { head: self.block(head), condition: self.value(*condition) }
                }
                LoopKind::Forever => LoopKind::Forever,
            },
            body: self.block(&l.body),
            sums: l.sums.iter().map(|local| self.local(*local)).collect(),
            until: l.until.map(|v| self.value(v)),
            schedule: l.schedule,
        }
    }
}
