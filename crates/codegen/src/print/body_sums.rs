//! Loops inside iterations that add sums to locals, in the order of law 8: 16 lanes in a leaf, a tree over the lanes, the
//! leaves in order.

use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{Binary, Combine, Type, Unary};

use crate::kernel::expr::Expr;
use crate::kernel::grid::{Node, visit};
use crate::kernel::machine::Family;
use crate::kernel::name::{Name, Ty};
use crate::kernel::stmt::{Check, Loop, LoopKind, Part, Stmt, Wide};
use crate::kernel::tiles::at_a_time;
use crate::print::c_types::neutral;
use crate::print::emitter::{Emitter, Pace, line};
use crate::print::operation::c_ty;
use crate::print::statements::Context;
use crate::transform::lower::Team;

/// A term of so many statements is soon computed.
const SHORT: usize = 48;

/// How many terms of each of so many chains a thread has at a time: the block has memory for them, and the thread registers.
fn terms_at_once(chains: usize, ty: &Ty) -> usize {
    let size = if let Ty::One(element) = ty { element.size() } else { 8 };
    match 64 / (chains * size) {
        0..=1 => 1,
        2..=3 => 2,
        _ => 4,
    }
}

/// A local to which a loop adds, as C knows it.
struct Sum {
    name: String,
    ty: String,
    /// What adds nothing.
    start: String,
    /// The names of what a leaf and the loop have added up.
    lanes: String,
    total: String,
}

impl Emitter<'_> {
    /// Prints a loop with sums between two bounds that are known and in order; `look` is what it does now and then.
    pub fn summing_loop(&mut self, cx: Context, l: &Loop, (v, from): (Name, &str), look: &str) {
        let (sums, number) = (sums(l), l.number);
        if l.chained {
            return self.chains_of_team(cx, l, &sums, (v, from), look);
        }
        for sum in &sums {
            line!(self, "{} {} = {};", sum.ty, sum.total, sum.start);
        }
        let count = format!("end{number} - {from}");
        line!(self, "const i64 leaf{number} = {from} < end{number} ? eb_leaf_size({count}) : 0;");
        if !look.is_empty() {
            line!(self, "u32 leaves{number} = 0;");
        }
        if cx.team == Team::Lanes {
            return self.leaves_of_team(cx, l, &sums, (v, from), look);
        }
        line!(self, "for (i64 first{number} = {from}; first{number} < end{number};) {{");
        line!(
            self,
            "const i64 last{number} = end{number} - first{number} > leaf{number} ? first{number} + leaf{number} : end{number};"
        );
        if let Some(wide) = &l.wide {
            self.lanes_in_vectors(cx, l, wide, v);
            return self.end_of_leaves(&sums, number, ("last", look));
        }
        // What neither branches nor loops is taken by all lanes side by side.
        let plain = l.body.iter().all(|stmt| !matches!(stmt, Stmt::Loop(_) | Stmt::If { .. }));
        let in_vectors = l.sums.iter().any(|(_, ty)| matches!(ty, Ty::Vector(..)));
        match plain && (!in_vectors || at_a_time(l).is_some()) {
            true => self.lanes_side_by_side(cx, l, &sums, v),
            false => self.lane_by_lane(cx, l, &sums, v),
        }
        for sum in &sums {
            let Sum { lanes, total, .. } = sum;
            line!(self, "for (int width = {}; width; width /= 2)", LANES / 2);
            line!(self, "for (int k = 0; k < width; k++) {lanes}[k] = {lanes}[k] + {lanes}[k + width];");
            line!(self, "{total} = {total} + {lanes}[0];");
        }
        self.end_of_leaves(&sums, number, ("last", look));
    }

    /// Ends the loop over leaves, and adds what it came to.
    fn end_of_leaves(&mut self, sums: &[Sum], number: usize, (next, look): (&str, &str)) {
        // A look takes a while: one in so many leaves.
        line!(self, "first{number} = {next}{number};");
        if !look.is_empty() {
            line!(self, "if (first{number} < end{number} && leaves{number}++ % 16 == 15) {{ {look} }}");
        }
        line!(self, "}}");
        for Sum { name, total, .. } in sums {
            line!(self, "{name} = {name} + {total};");
        }
    }

    /// Prints leaves that a team takes at a time: each of its threads takes a lane of one. Who meets a fault tells the others, who
    /// would wait.
    fn leaves_of_team(&mut self, cx: Context, l: &Loop, sums: &[Sum], (v, from): (Name, &str), look: &str) {
        let (exit, number) = (self.fresh(), l.number);
        // The leaves that are left.
        line!(
            self,
            "i64 left{number} = end{number} - {from} <= leaf{number} ? 1 : (end{number} - {from} - 1) / leaf{number} + 1;"
        );
        line!(
            self,
            "for (i64 first{number} = {from}; first{number} < end{number}; left{number} -= 1 << team) {{"
        );
        // Where those begin that are taken after these; the leaf of this thread, which may be none.
        line!(
            self,
            "const i64 next{number} = left{number} <= 1 << team ? end{number} : first{number} + (leaf{number} << team);"
        );
        line!(
            self,
            "const int nth{number} = eb_leaf_of_team(team); const i64 own{number} = nth{number} < left{number} ? first{number} + nth{number} * leaf{number} : end{number};"
        );
        line!(
            self,
            "const i64 last{number} = nth{number} + 1 < left{number} ? own{number} + leaf{number} : end{number};"
        );
        for Sum { ty, lanes, start, .. } in sums {
            line!(self, "{ty} {lanes} = {start};");
        }
        line!(self, "b8 whole{number} = 0;");
        if cx.pace == Pace::Often && has_quick_terms(&l.body) {
            self.quick_lane_of_leaf(cx, l, sums, v);
        } else {
            self.lane_of_leaf(Context { exit, ..cx }, l, sums, v);
        }
        line!(self, "whole{number} = 1;");
        line!(self, "exit{exit}: if (eb_any_of_team(team, !whole{number})) goto exit{};", cx.exit);
        for (k, Sum { lanes, total, .. }) in sums.iter().enumerate() {
            line!(self, "{total} = eb_add_leaves(team, SUMS, {k}, left{number}, {lanes}, {total});");
        }
        self.end_of_leaves(sums, number, ("next", look));
    }

    /// Prints the terms that a thread of a team adds to the lane of a leaf that it has.
    fn lane_of_leaf(&mut self, cx: Context, l: &Loop, sums: &[Sum], v: Name) {
        let number = l.number;
        // Terms that are soon computed wait for what they load: more of them are on their way at a time.
        let branches = l.body.iter().any(|stmt| matches!(stmt, Stmt::Loop(_) | Stmt::If { .. }));
        let at_once = if branches || l.body.len() > SHORT { 4 } else { 8 };
        line!(
            self,
            "EB_AT_ONCE({at_once}) for (i64 {v} = own{number} + (threadIdx.x & 15); {v} < last{number}; {v} += {LANES}) {{"
        );
        self.term_of_lane(cx, l, sums);
        line!(self, "}}");
    }

    fn term_of_lane(&mut self, cx: Context, l: &Loop, sums: &[Sum]) {
        self.term(Context { team: Team::Alone, ..cx }, l, sums);
        for Sum { lanes, name, .. } in sums {
            line!(self, "{lanes} = {lanes} + {name};");
        }
    }

    /// The same, for terms with quotients or roots. The hardware has none that are right for all numbers: what is right for most branches
    /// off for the others, and behind each branch a thread waits before it begins the next term. So some terms are computed side by side
    /// without these branches, and again where a number was not one of most. A leaf that has such numbers may have more of them.
    fn quick_lane_of_leaf(&mut self, cx: Context, l: &Loop, sums: &[Sum], v: Name) {
        let number = l.number;
        let at_once = if l.body.len() > 2 * SHORT { 2 } else { 4 };
        line!(self, "b8 quick{number} = 1;");
        line!(self, "for (i64 at{number} = own{number} + (threadIdx.x & 15); at{number} < last{number};) {{");
        line!(self, "if (quick{number} && last{number} - at{number} > {}) {{", (at_once - 1) * LANES);
        for (k, Sum { ty, lanes, .. }) in sums.iter().enumerate() {
            line!(self, "const {ty} before{number}_{k} = {lanes};");
        }
        line!(self, "b8 odd = 0;");
        line!(self, "#pragma unroll");
        line!(self, "for (int u{number} = 0; u{number} < {at_once}; u{number}++) {{");
        line!(self, "const i64 {v} = at{number} + u{number} * {LANES};");
        self.term_of_lane(Context { pace: Pace::Quick, ..cx }, l, sums);
        line!(self, "}}");
        line!(self, "quick{number} = !odd;");
        line!(self, "if (quick{number}) {{ at{number} += {}; continue; }}", at_once * LANES);
        for (k, Sum { lanes, .. }) in sums.iter().enumerate() {
            line!(self, "{lanes} = before{number}_{k};");
        }
        line!(self, "}}");
        line!(
            self,
            "EB_LOOP for (int u{number} = 0; u{number} < {at_once} && at{number} < last{number}; u{number}++, at{number} += {LANES}) {{"
        );
        line!(self, "const i64 {v} = at{number};");
        self.term_of_lane(cx, l, sums);
        line!(self, "}} }}");
    }

    /// Prints chains that a team takes: each of its threads computes the terms of some iterations, and those that add them to a chain
    /// each do so in order. The caller closes the loop.
    fn chains_of_team(&mut self, cx: Context, l: &Loop, sums: &[Sum], (v, from): (Name, &str), look: &str) {
        let (number, chains) = (l.number, sums.len());
        let Some(Sum { ty, .. }) = sums.first() else { return };
        let at_once = terms_at_once(chains, &l.sums[0].1);
        line!(
            self,
            "const int width{number} = 16 << team, lane{number} = threadIdx.x & (width{number} - 1);"
        );
        line!(self, "{ty} chain{number} = {};", sums[0].name);
        for (k, Sum { name, .. }) in sums.iter().enumerate().skip(1) {
            line!(self, "if (lane{number} == {k}) chain{number} = {name};");
        }
        line!(self, "i64 group{number} = {from};");
        if !look.is_empty() {
            line!(self, "u32 groups{number} = 0;");
        }
        // Groups of which each thread has as many terms, which do not wait for one another, and what is left.
        line!(
            self,
            "for (; group{number} < end{number} && end{number} - group{number} >= {at_once} * width{number}; group{number} += {at_once} * width{number}) {{"
        );
        line!(self, "{ty} terms{number}[{chains}][{at_once}];");
        line!(self, "#pragma unroll");
        line!(self, "for (int u{number} = 0; u{number} < {at_once}; u{number}++) {{");
        line!(self, "const i64 {v} = group{number} + u{number} * width{number} + lane{number};");
        self.terms_of_chains(cx, l, sums, &format!("u{number}"));
        if !look.is_empty() {
            // To look takes a while, since the host may write what is looked at.
            line!(self, "if (++groups{number} % (EB_ITERATIONS / 64) == 0) {{ {look} }}");
        }
        line!(self, "}}");
        line!(self, "while (group{number} < end{number}) {{");
        line!(self, "{ty} terms{number}[{chains}][1];");
        for (k, Sum { start, .. }) in sums.iter().enumerate() {
            line!(self, "terms{number}[{k}][0] = {start};");
        }
        line!(self, "if (end{number} - group{number} > lane{number}) {{");
        line!(self, "const i64 {v} = group{number} + lane{number};");
        self.terms_of_chains(cx, l, sums, "0");
        line!(self, "if (end{number} - group{number} <= width{number}) break;");
        line!(self, "group{number} += width{number};");
        line!(self, "}}");
        for (k, Sum { name, .. }) in sums.iter().enumerate() {
            line!(self, "{name} = __shfl_sync(eb_of_warp(team), chain{number}, {k}, width{number});");
        }
    }

    /// Prints a term of each chain, the end of the block in which a thread computes them, and that the team adds what its threads have.
    fn terms_of_chains(&mut self, cx: Context, l: &Loop, sums: &[Sum], place: &str) {
        let number = l.number;
        self.term(Context { team: Team::Alone, ..cx }, l, sums);
        for (k, Sum { name, .. }) in sums.iter().enumerate() {
            line!(self, "terms{number}[{k}][{place}] = {name};");
        }
        line!(self, "}}");
        line!(self, "eb_add_to_chains(team, terms{number}, chain{number});");
    }

    /// Prints a leaf in groups of an iteration for each lane, which do not wait for one another.
    fn lanes_side_by_side(&mut self, cx: Context, l: &Loop, sums: &[Sum], v: Name) {
        let number = l.number;
        for Sum { ty, lanes, start, .. } in sums {
            line!(self, "{ty} {lanes}[{LANES}];");
            line!(self, "for (int k = 0; k < {LANES}; k++) {lanes}[k] = {start};");
        }
        line!(self, "i64 group{number} = first{number};");
        // Whole groups, whose number of iterations the compiler knows, and what is left.
        for whole in [true, false] {
            let (going, length) = match whole {
                true => (format!("last{number} - group{number} >= {LANES}"), LANES.to_string()),
                false => (format!("group{number} < last{number}"), format!("last{number} - group{number}")),
            };
            line!(self, "for (; {going}; group{number} += {LANES}) {{");
            if whole && at_a_time(l).is_some() {
                line!(self, "i64 {v} = group{number};");
                self.whole_tiles(cx, l, (v, &format!("group{number} + {LANES}")), |text, cx| {
                    text.term(cx, l, sums);
                    text.add_to_lanes(sums, &format!("{v} - group{number}"));
                });
                line!(self, "}}");
                continue;
            }
            if whole && self.family == Family::Cuda {
                line!(self, "#pragma unroll");
            }
            line!(self, "for (int lane{number} = 0; lane{number} < {length}; lane{number}++) {{");
            line!(self, "const i64 {v} = group{number} + lane{number};");
            self.term(cx, l, sums);
            self.add_to_lanes(sums, &format!("lane{number}"));
            line!(self, "}} }}");
        }
    }

    /// Adds the terms of an iteration to those of a lane.
    fn add_to_lanes(&mut self, sums: &[Sum], lane: &str) {
        for Sum { lanes, name, .. } in sums {
            line!(self, "{lanes}[{lane}] = {lanes}[{lane}] + {name};");
        }
    }

    /// Prints a leaf in groups of an iteration for each lane, in vectors of lanes, and what its lanes come to in a tree.
    fn lanes_in_vectors(&mut self, cx: Context, l: &Loop, wide: &Wide, v: Name) {
        let (number, lanes, count) = (l.number, wide.lanes, LANES / wide.lanes);
        let sums: Vec<Sum> = sums_of(l, |ty| match ty {
            Ty::One(element) => Ty::Vector(element, lanes),
            other => other,
        });
        for Sum { ty, lanes, start, .. } in &sums {
            line!(self, "{ty} {lanes}[{count}];");
            line!(self, "for (int k = 0; k < {count}; k++) {lanes}[k] = {start};");
        }
        line!(self, "i64 group{number} = first{number};");
        // Each of the vectors is a variable of its own: the compiler unrolls the loops over them.
        for (part, body) in [(Part::Whole, &wide.whole), (Part::Tail, &wide.tail)] {
            match part {
                Part::Whole => line!(
                    self,
                    "for (; last{number} - group{number} >= {LANES}; group{number} += {LANES}) {{"
                ),
                Part::Tail | Part::Mask => line!(self, "if (group{number} < last{number}) {{"),
            }
            line!(self, "#pragma GCC unroll {count}");
            line!(self, "for (int u{number} = 0; u{number} < {count}; u{number}++) {{");
            line!(self, "const i64 {v} = group{number} + u{number} * {lanes};");
            if part == Part::Tail {
                line!(self, "const i64 tail = eb_min(last{number} - {v}, {lanes}); if (tail > 0) {{");
            }
            for Sum { ty, name, start, .. } in &sums {
                line!(self, "{ty} {name} = {start};");
            }
            self.body(cx, body);
            for Sum { lanes, name, ty, .. } in &sums {
                let sum = format!("{lanes}[u{number}]");
                match part {
                    Part::Whole => line!(self, "{sum} = {sum} + {name};"),
                    Part::Tail | Part::Mask => line!(self, "{sum} = eb_add_part_{ty}({sum}, {name}, tail);"),
                }
            }
            line!(self, "{}", if part == Part::Tail { "} } }" } else { "} }" });
        }
        for Sum { lanes, total, ty, .. } in &sums {
            line!(self, "for (int width = {}; width; width /= 2)", count / 2);
            line!(self, "for (int k = 0; k < width; k++) {lanes}[k] = {lanes}[k] + {lanes}[k + width];");
            line!(self, "{total} = {total} + eb_tree_{ty}({lanes}[0]);");
        }
    }

    /// Prints a leaf one lane after the other.
    fn lane_by_lane(&mut self, cx: Context, l: &Loop, sums: &[Sum], v: Name) {
        let number = l.number;
        for Sum { ty, lanes, .. } in sums {
            line!(self, "{ty} {lanes}[{LANES}];");
        }
        line!(self, "for (int lane{number} = 0; lane{number} < {LANES}; lane{number}++) {{");
        for Sum { ty, lanes, start, .. } in sums {
            line!(self, "{ty} {lanes}_chain = {start};");
        }
        line!(self, "for (i64 {v} = first{number} + lane{number}; {v} < last{number}; {v} += {LANES}) {{");
        self.term(cx, l, sums);
        for Sum { lanes, name, .. } in sums {
            line!(self, "{lanes}_chain = {lanes}_chain + {name};");
        }
        line!(self, "}}");
        for Sum { lanes, .. } in sums {
            line!(self, "{lanes}[lane{number}] = {lanes}_chain;");
        }
        line!(self, "}}");
    }

    /// Prints an iteration, with variables of its own for its terms.
    fn term(&mut self, cx: Context, l: &Loop, sums: &[Sum]) {
        for Sum { ty, name, start, .. } in sums {
            line!(self, "{ty} {name} = {start};");
        }
        self.body(cx, &l.body);
    }
}

/// Are there quotients or roots in the terms of a body that only loads and computes, so that it can be run again?
fn has_quick_terms(body: &[Stmt]) -> bool {
    /// The depth of recursion is that of nesting in the source.
    fn look(body: &[Stmt], found: &mut bool, plain: &mut bool) {
        for stmt in body {
            *plain &= match stmt {
                Stmt::Load { element, .. } => element.check == Check::Proved,
                Stmt::Let { .. } | Stmt::Declare { .. } | Stmt::Assign { .. } | Stmt::If { .. } => true,
                Stmt::Loop(l) => matches!(l.kind, LoopKind::Counted { .. }) && !l.polls,
                _ => false,
            };
            for e in stmt.clone().exprs_mut() {
                e.visit_mut(&mut |e| {
                    *found |= matches!(
                        e,
                        Expr::Binary(Binary::Div, Ty::One(Type::F32), ..)
                            | Expr::Unary(Unary::Sqrt | Unary::Norm, Ty::One(Type::F32), ..)
                    );
                });
            }
            stmt.blocks().into_iter().for_each(|block| look(block, found, plain));
        }
    }
    let (mut found, mut plain) = (false, true);
    look(body, &mut found, &mut plain);
    found && plain
}

/// The most sums that a loop in the iterations of a tree has.
pub(crate) fn most_sums(nodes: &[Node]) -> usize {
    /// The depth of recursion is that of nesting in the source.
    fn of(body: &[Stmt]) -> usize {
        let most = |stmt: &Stmt| {
            let own = if let Stmt::Loop(l) = stmt { l.sums.len() } else { 0 };
            stmt.blocks().into_iter().map(|body| of(body)).fold(own, usize::max)
        };
        body.iter().map(most).max().unwrap_or(0)
    }
    let mut most = 0;
    visit(nodes, &mut |node| {
        if let Node::Iterations(it) = node {
            most = most.max(of(&it.body));
        }
    });
    most
}

/// The sums of a loop.
fn sums(l: &Loop) -> Vec<Sum> {
    sums_of(l, |ty| ty)
}

/// The sums of a loop, in other types.
fn sums_of(l: &Loop, in_type: impl Fn(Ty) -> Ty) -> Vec<Sum> {
    let sum = |(k, (name, ty)): (usize, &(Name, Ty))| {
        let ty = in_type(*ty);
        let (Ty::One(element) | Ty::Vector(element, _)) = ty else { return None };
        let (start, t) = (neutral(Combine::Add, element), c_ty(ty));
        Some(Sum {
            name: name.to_string(),
            start: if matches!(ty, Ty::Vector(..)) { format!("op_float_{t}({start})") } else { start },
            ty: t,
            lanes: format!("lanes{}_{k}", l.number),
            total: format!("total{}_{k}", l.number),
        })
    };
    l.sums.iter().enumerate().filter_map(sum).collect()
}
