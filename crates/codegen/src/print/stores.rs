//! Stores, updates and claims of one iteration, or of several side by side.

use ebbtide_ir::{Claim, Combine, Store, evaluate};

use crate::analysis::vectors::{Stride, is_sum, stride};
use crate::kernel::machine::Family;
use crate::print::body::{Body, Form, Part, Team};
use crate::print::c_types::c_literal;
use crate::print::emitter::{Checks, Emitter, Lanes, line};
use crate::print::operation::vector_type;
use crate::transform::sink_stores::Late;

impl Emitter<'_> {
    pub fn body_store(&mut self, body: &Body, how: Option<Combine>, s: &Store, mask: Option<&str>) {
        let ty = self.program.array(s.array).ty;
        if how.is_some()
            && let Some(at) = body.reductions.iter().position(|r| std::ptr::eq(*r, s))
        {
            return self.reduce(body, how.unwrap_or(Combine::Add), s, at, mask);
        }
        if let Some(held) = self.held(s.array, s.index) {
            let value = self.known(body, s.value);
            let value = how.map_or(value.clone(), |how| self.combine(how, ty, 1, &held, &value));
            let value = mask.map_or(value.clone(), |mask| format!("{mask} ? {value} : {held}"));
            return line!(self, "{held} = {value};");
        }
        let offset = self.offset(body, s.array, s.index, &s.site);
        let name = format!("a{}", s.array.index());
        let Form::Vector { lanes, part, .. } = body.form else {
            let condition = match (self.ok.take(), mask) {
                (Some(ok), _) => Some(format!("{ok} && !oops")),
                (None, mask) => mask.map(str::to_string),
            };
            if body.team == Team::Lanes {
                return self.store_by_leader(body, (how, s), &format!("{name}[{offset}]"), condition);
            }
            let value = self.known(body, s.value);
            if let Some((n, at)) = self.staged.get(&std::ptr::from_ref(s)) {
                let (n, at) = (*n, at.clone());
                let condition = condition.map_or(String::new(), |c| format!("if ({c}) "));
                return line!(self, "{condition}{{ keys{n}{at} = (nx)({offset}); terms{n}{at} = {value}; }}");
            }
            if let Some(how) = how.filter(|_| self.atomics.contains(&s.array)) {
                let how = match how {
                    Combine::Add => "add",
                    Combine::Min => "min",
                    Combine::Max => "max",
                };
                let condition = condition.map_or(String::new(), |c| format!("if ({c}) "));
                return line!(self, "{condition}eb_atomic_{how}(&{name}[{offset}], {value});");
            }
            let element = self.near(s.array, s.index).unwrap_or_else(|| format!("{name}[{offset}]"));
            let Some(now) =
                self.store_late(Late { array: s.array, number: self.side(), element, condition, how, value })
            else {
                return;
            };
            let value = match how {
                Some(how) => self.combine(how, ty, 1, &now.element, &now.value),
                None => now.value,
            };
            let condition = now.condition.map_or(String::new(), |c| format!("if ({c}) "));
            return line!(self, "{condition}{} = {value};", now.element);
        };
        let Form::Vector { interior, .. } = body.form else { return };
        let vector = vector_type(ty, lanes);
        let (_, mut value) = self.operand(body, s.value, ty, true);
        let stride = match stride(self.program, interior, s.index) {
            Stride::Next => None,
            Stride::Apart(stride) => Some(stride.to_string()),
            Stride::Unknown if is_sum(self.program, interior, s.index) => {
                Some(self.row_stride(interior, s.array, s.index))
            }
            // The lanes meet in one element, or go where data tells them.
            Stride::Same | Stride::Unknown => {
                self.failed = true;
                None
            }
        };
        let at = format!("{name} + {offset}");
        let (load, store) = match (stride, part) {
            (None, Part::Whole) => (format!("eb_load_{vector}({at})"), format!("eb_store_{vector}({at}, ")),
            (None, Part::Tail) => {
                (format!("eb_load_part_{vector}({at}, tail)"), format!("eb_store_part_{vector}({at}, tail, "))
            }
            (Some(stride), part) => {
                let count = if part == Part::Tail { "tail".to_string() } else { lanes.to_string() };
                let place = format!("({at}, {stride}, {count}");
                (format!("eb_gather_{vector}{place})"), format!("eb_put_{vector}{place}, "))
            }
        };
        if let Some(how) = how {
            value = self.combine(how, ty, lanes, &load, &value);
        }
        if let Some(mask) = mask {
            value = format!("op_select_{vector}({mask}, {value}, {load})");
        }
        line!(self, "{store}{value});");
    }

    /// The first thread of a team stores what all have computed, between what they read before and after.
    fn store_by_leader(
        &mut self,
        body: &Body,
        (how, s): (Option<Combine>, &Store),
        element: &str,
        condition: Option<String>,
    ) {
        let value = self.known(body, s.value);
        let ty = self.program.array(s.array).ty;
        let value = how.map_or(value.clone(), |how| self.combine(how, ty, 1, element, &value));
        let condition = condition.map_or(String::new(), |condition| format!(" && {condition}"));
        line!(self, "__syncwarp(team); if (lane == 0{condition}) {element} = {value}; __syncwarp(team);");
    }

    /// Elements are taken one by one, from all threads.
    pub fn claim(&mut self, body: &Body, claim: &Claim) {
        self.failed |= matches!(body.form, Form::Vector { .. });
        let offset = self.offset(body, claim.array, claim.index, &claim.site);
        let access = self.access(Some(claim.array), &claim.site);
        let taken = format!("a{} + {offset}", claim.taken.index());
        let take = match self.family {
            Family::C => format!("__atomic_exchange_n({taken}, 1, __ATOMIC_RELAXED)"),
            Family::Cuda => format!("eb_take({taken})"),
        };
        line!(
            self,
            "if ({take}) {{ eb_fault(f, EB_TAKEN, {access}, 0, {offset}, 0); goto exit{}; }}",
            body.exit
        );
    }

    fn reduce(&mut self, body: &Body, how: Combine, s: &Store, at: usize, mask: Option<&str>) {
        let ty = self.program.array(s.array).ty;
        // The element itself is checked and combined into once, after the loop.
        match (self.checks, mask) {
            (Checks::Proved, Some(mask)) => line!(self, "if ({mask}) seen{at} = 1;"),
            _ => line!(self, "seen{at} = 1;"),
        }
        match body.form {
            Form::Vector { lanes, vector, .. } => {
                let (_, mut value) = self.operand(body, s.value, ty, true);
                if let Some(mask) = mask {
                    let neutral = c_literal(ebbtide_ir::Literal::from_bits(ty, evaluate::neutral(how, ty)));
                    let t = vector_type(ty, lanes);
                    value = format!("op_select_{t}({mask}, {value}, op_float_{t}({neutral}))");
                }
                let name = format!("r{at}_{vector}");
                let combined = self.combine(how, ty, lanes, &name, &value);
                line!(self, "{name} = {combined};");
            }
            _ => {
                let value = self.known(body, s.value);
                let sum = match self.lanes {
                    Lanes::InTable => format!("r{at}.lane[lane]"),
                    Lanes::InThreads => format!("r{at}"),
                };
                let combined = self.combine(how, ty, 1, &sum, &value);
                match mask {
                    Some(mask) => line!(self, "if ({mask}) {sum} = {combined};"),
                    None => line!(self, "{sum} = {combined};"),
                }
            }
        }
    }

    // ---- control
}
