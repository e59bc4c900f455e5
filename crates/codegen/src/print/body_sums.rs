//! Loops inside iterations that add sums to locals, in the order of law 8: 16 lanes in a leaf, a tree over the lanes, the
//! leaves in order.

use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{Combine, Loop, Stmt, ValueId};

use crate::kernel::machine::Family;
use crate::print::body::{Body, Form, Team};
use crate::print::emitter::{Emitter, line};
use crate::print::grid::neutral;
use crate::print::operation::vector_type;

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
    pub fn summing_loop(
        &mut self,
        body: &Body,
        l: &Loop,
        (var, from): (ValueId, &str),
        (number, look): (usize, &str),
        mask: Option<&str>,
    ) {
        let sums = self.sums(body, l, number);
        let v = format!("v{}", var.index());
        for sum in &sums {
            line!(self, "{} {} = {};", sum.ty, sum.total, sum.start);
        }
        let count = format!("end{number} - {from}");
        line!(self, "const i64 leaf{number} = {from} < end{number} ? eb_leaf_size({count}) : 0;");
        if !look.is_empty() {
            line!(self, "u32 leaves{number} = 0;");
        }
        line!(self, "for (i64 first{number} = {from}; first{number} < end{number};) {{");
        line!(
            self,
            "const i64 last{number} = end{number} - first{number} > leaf{number} ? first{number} + leaf{number} : end{number};"
        );
        // What neither branches nor loops is taken by all lanes side by side.
        let plain = l.body.iter().all(|stmt| !matches!(stmt, Stmt::Loop(_) | Stmt::If(_)));
        match body.form {
            _ if body.team == Team::Lanes => {
                return self.lane_of_team(body, l, &sums, (&v, number, look), mask);
            }
            Form::Careful | Form::Single(_) if plain => {
                self.lanes_side_by_side(body, l, &sums, (&v, number), mask);
            }
            _ => self.lane_by_lane(body, l, &sums, (&v, number), mask),
        }
        for sum in &sums {
            let Sum { lanes, total, .. } = sum;
            line!(self, "for (int width = {}; width; width /= 2)", LANES / 2);
            line!(self, "for (int k = 0; k < width; k++) {lanes}[k] = {lanes}[k] + {lanes}[k + width];");
            line!(self, "{total} = {total} + {lanes}[0];");
        }
        self.end_of_leaf(&sums, number, look);
    }

    /// Ends the loop over leaves, and adds what it came to.
    fn end_of_leaf(&mut self, sums: &[Sum], number: usize, look: &str) {
        // A look takes a while: one in so many leaves.
        line!(self, "first{number} = last{number};");
        if !look.is_empty() {
            line!(self, "if (first{number} < end{number} && leaves{number}++ % 16 == 15) {{ {look} }}");
        }
        line!(self, "}}");
        for Sum { name, total, .. } in sums {
            line!(self, "{name} = {name} + {total};");
        }
    }

    /// Prints a leaf of which each thread of a team takes a lane. Who meets a fault tells the others, who would wait.
    fn lane_of_team(
        &mut self,
        body: &Body,
        l: &Loop,
        sums: &[Sum],
        (v, number, look): (&str, usize, &str),
        mask: Option<&str>,
    ) {
        let exit = self.fresh();
        for Sum { ty, lanes, start, .. } in sums {
            line!(self, "{ty} {lanes} = {start};");
        }
        line!(self, "b8 whole{number} = 0;");
        line!(
            self,
            "EB_AT_ONCE(4) for (i64 {v} = first{number} + lane; {v} < last{number}; {v} += {LANES}) {{"
        );
        let alone = Body { exit, team: Team::Alone, ..*body };
        self.term(&alone, l, sums, mask);
        for Sum { lanes, name, .. } in sums {
            line!(self, "{lanes} = {lanes} + {name};");
        }
        line!(self, "}}");
        line!(self, "whole{number} = 1;");
        line!(self, "exit{exit}: if (__any_sync(team, !whole{number})) goto exit{};", body.exit);
        for Sum { lanes, total, .. } in sums {
            line!(
                self,
                "for (int way = {}; way; way /= 2) {lanes} = {lanes} + __shfl_down_sync(team, {lanes}, way, {LANES});",
                LANES / 2
            );
            line!(self, "{total} = {total} + __shfl_sync(team, {lanes}, 0, {LANES});");
        }
        self.end_of_leaf(sums, number, look);
    }

    /// The sums of a loop, one by one for vectors that are jammed.
    fn sums(&mut self, body: &Body, l: &Loop, number: usize) -> Vec<Sum> {
        let mut sums = Vec::new();
        for (k, local) in l.sums.iter().enumerate() {
            let ty = self.program.locals[local.index()].ty;
            let varies = self.local_varies(body, local);
            let (lanes, copies) = match body.form {
                Form::Vector { lanes, jam, .. } if varies => (lanes, jam),
                _ => (1, 1),
            };
            for copy in 0..copies {
                self.choose_copy(body, copy);
                let start = neutral(Combine::Add, ty);
                let vector = vector_type(ty, lanes);
                sums.push(Sum {
                    name: self.local(*local),
                    start: if lanes == 1 { start } else { format!("op_float_{vector}({start})") },
                    ty: vector,
                    lanes: format!("lanes{number}_{k}_{copy}"),
                    total: format!("total{number}_{k}_{copy}"),
                });
            }
        }
        sums
    }

    /// Prints a leaf in groups of an iteration for each lane, which do not wait for one another.
    fn lanes_side_by_side(
        &mut self,
        body: &Body,
        l: &Loop,
        sums: &[Sum],
        (v, number): (&str, usize),
        mask: Option<&str>,
    ) {
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
            if whole && self.family == Family::Cuda {
                line!(self, "#pragma unroll");
            }
            line!(self, "for (int lane{number} = 0; lane{number} < {length}; lane{number}++) {{");
            line!(self, "const i64 {v} = group{number} + lane{number};");
            self.term(body, l, sums, mask);
            for Sum { lanes, name, .. } in sums {
                line!(self, "{lanes}[lane{number}] = {lanes}[lane{number}] + {name};");
            }
            line!(self, "}} }}");
        }
    }

    /// Prints a leaf one lane after the other.
    fn lane_by_lane(
        &mut self,
        body: &Body,
        l: &Loop,
        sums: &[Sum],
        (v, number): (&str, usize),
        mask: Option<&str>,
    ) {
        for Sum { ty, lanes, .. } in sums {
            line!(self, "{ty} {lanes}[{LANES}];");
        }
        line!(self, "for (int lane{number} = 0; lane{number} < {LANES}; lane{number}++) {{");
        for Sum { ty, lanes, start, .. } in sums {
            line!(self, "{ty} {lanes}_chain = {start};");
        }
        line!(self, "for (i64 {v} = first{number} + lane{number}; {v} < last{number}; {v} += {LANES}) {{");
        self.term(body, l, sums, mask);
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
    fn term(&mut self, body: &Body, l: &Loop, sums: &[Sum], mask: Option<&str>) {
        for Sum { ty, name, start, .. } in sums {
            line!(self, "{ty} {name} = {start};");
        }
        self.body(body, &l.body, mask);
    }
}
