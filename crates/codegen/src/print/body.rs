//! The body of a parallel loop, in its careful form or in its interior form.

use ebbtide_ir::{ArrayId, Binary, Block, Indices, Op, Site, Stmt, Store, Type, ValueId};

use crate::analysis::interior::Interior;
use crate::analysis::vectors::{Stride, stride};
use crate::kernel::machine::Family;
use crate::print::c_types::c_type;
use crate::print::emitter::{Checks, Emitter, line};
use crate::print::operation::{mask_type, vector_type};

/// How a body is printed.
#[derive(Clone, Copy)]
pub(crate) enum Form<'i> {
    /// One iteration, every index checked.
    Careful,
    /// One iteration of the interior.
    Single(&'i Interior),
    /// As many iterations of the interior as a vector has lanes.
    Vector {
        interior: &'i Interior,
        /// The one float type of the data.
        element: Type,
        lanes: usize,
        /// Are only the first `tail` lanes iterations of the loop?
        part: Part,
        /// Which of the vectors that make up the 16 lanes of a leaf this is.
        vector: usize,
        /// How many vectors of iterations run side by side.
        jam: usize,
    },
}

/// Does a vector hold iterations in all its lanes?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Tail,
}

/// Who runs an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Team {
    /// One thread.
    Alone,
    /// Sixteen threads of a grid, alike but for sums, of which each takes a lane; the first of them stores.
    Lanes,
}

/// What the statements of one body need to know.
pub(crate) struct Body<'i> {
    pub form: Form<'i>,
    /// The reductions, in source order.
    pub reductions: &'i [&'i Store],
    /// Where to go after a fault.
    pub exit: usize,
    pub team: Team,
}

impl<'i> Body<'i> {
    pub fn interior(&self) -> Option<&'i Interior> {
        match self.form {
            Form::Careful => None,
            Form::Single(interior) | Form::Vector { interior, .. } => Some(interior),
        }
    }
}

impl Emitter<'_> {
    /// Prints the statements of a block; `mask` names the lanes that take part, where not all do.
    pub fn body(&mut self, body: &Body, block: &Block, mask: Option<&str>) {
        self.know_exact(body);
        for stmt in block {
            for number in 0..self.copies(body, stmt) {
                self.choose_copy(body, number);
                self.body_statement(body, stmt, mask);
            }
        }
    }

    /// How often a statement is printed: what is the same for all vectors side by side once.
    fn copies(&self, body: &Body, stmt: &Stmt) -> usize {
        let Form::Vector { interior, jam, .. } = body.form else { return 1 };
        let once = match stmt {
            Stmt::Let(v) => interior.varying.uniform(*v),
            Stmt::Declare(local, _) | Stmt::Set(local, _) => !interior.varying.locals.contains(local),
            Stmt::Loop(_) | Stmt::If(_) => true,
            _ => false,
        };
        if once { 1 } else { jam }
    }

    fn body_statement(&mut self, body: &Body, stmt: &Stmt, mask: Option<&str>) {
        match stmt {
            Stmt::Let(v) if self.moved.contains(v) => {}
            Stmt::Let(v) => self.body_value(body, *v, mask),
            Stmt::Declare(local, v) => {
                let (ty, value) = self.operand(
                    body,
                    *v,
                    self.program.locals[local.index()].ty,
                    self.local_varies(body, local),
                );
                line!(self, "{ty} {} = {value};", self.local(*local));
            }
            Stmt::Set(local, v) => {
                let ty = self.program.locals[local.index()].ty;
                let varies = self.local_varies(body, local);
                let (_, value) = self.operand(body, *v, ty, varies);
                let name = self.local(*local);
                let value = match mask {
                    Some(mask) if varies => self.choose(body, ty, mask, &value, &name),
                    Some(mask) if self.checks == Checks::Proved => format!("{mask} ? {value} : {name}"),
                    _ => value,
                };
                line!(self, "{name} = {value};");
            }
            Stmt::Store(s) => self.body_store(body, None, s, mask),
            Stmt::Update(how, s) => self.body_store(body, Some(*how), s, mask),
            Stmt::Claim(claim) => self.claim(body, claim),
            Stmt::If(branch) => self.body_branch(body, branch, mask),
            Stmt::Loop(l) => self.at_once(|text| text.inner_loop(body, l, mask)),
            _ => {}
        }
    }

    /// Speaks of one of the vectors that run side by side.
    pub fn choose_copy(&mut self, body: &Body, number: usize) {
        if let (Some(jam), Form::Vector { .. }) = (&mut self.jam, body.form) {
            jam.number = number;
        }
    }

    pub fn local_varies(&self, body: &Body, local: &ebbtide_ir::LocalId) -> bool {
        matches!(body.form, Form::Vector { interior, .. } if interior.varying.locals.contains(local))
    }

    /// Does the value differ between lanes, so that it is held in a vector?
    pub fn is_vector(&self, body: &Body, v: ValueId) -> bool {
        matches!(body.form, Form::Vector { interior, .. } if !interior.varying.uniform(v))
    }

    /// A value as an operand of a vector operation, or of a scalar one.
    pub fn operand(&self, body: &Body, v: ValueId, ty: Type, wanted_in_vector: bool) -> (String, String) {
        let Form::Vector { element, lanes, .. } = body.form else {
            return (c_type(ty).to_string(), self.known(body, v));
        };
        if !wanted_in_vector {
            return (c_type(ty).to_string(), self.known(body, v));
        }
        let vector = if ty == Type::Bool { mask_type(element, lanes) } else { vector_type(ty, lanes) };
        let text = self.known(body, v);
        if self.is_vector(body, v) && !self.decided(body, v) {
            return (vector, text);
        }
        let splat = match ty {
            Type::Bool => format!("eb_splat_{vector}({text})"),
            _ => format!("op_float_{vector}({text})"),
        };
        (vector, splat)
    }

    fn decided(&self, body: &Body, v: ValueId) -> bool {
        body.interior().is_some_and(|i| i.decided.contains_key(&v))
    }

    /// A value by name; conditions that the interior has decided are constants.
    pub fn known(&self, body: &Body, v: ValueId) -> String {
        match body.interior().and_then(|i| i.decided.get(&v)) {
            Some(decided) => format!("{}", u8::from(*decided)),
            None => self.value(v),
        }
    }

    fn body_value(&mut self, body: &Body, v: ValueId, mask: Option<&str>) {
        let op = *self.program.op(v);
        let ty = self.program.ty(v);
        if matches!(op, Op::Literal(_)) || self.decided(body, v) {
            return;
        }
        if let Some(interior) = body.interior()
            && ty == Type::Index
        {
            if interior.early.contains(&v) {
                return;
            }
            if !interior.varying.uniform(v)
                && let Some(sum) = self.linear_here(interior, v)
            {
                // Vectors compute sums where they use them.
                if let Form::Single(_) = body.form {
                    let j = self.innermost.map_or(String::new(), |j| self.value(j));
                    line!(
                        self,
                        "const i64 v{} = INT64_C({}) * {j} + {};",
                        v.index(),
                        sum.coefficient,
                        sum.base
                    );
                }
                return;
            }
        }
        if let Op::Load(array, index) = op {
            return self.body_load(body, v, array, index, mask);
        }
        if let Some((ty, text)) = self.narrow_value(v) {
            return line!(self, "const {ty} {} = {text};", self.value(v));
        }
        self.guard_division(body, v, mask);
        match body.form {
            Form::Vector { interior, element, lanes, .. } if self.is_vector(body, v) => {
                if let Op::Cast(a) = op
                    && ty == element
                    && let Some(sum) = self.linear_here(interior, a)
                {
                    return self.lanes_of_sum(v, element, lanes, &sum);
                }
                let operand = |text: &Emitter, o: ValueId| text.operand(body, o, text.program.ty(o), true).1;
                let text = self.vector_operation(v, element, lanes, &operand);
                self.failed |= text.is_none();
                let text = text.unwrap_or_default();
                let vector =
                    if ty == Type::Bool { mask_type(element, lanes) } else { vector_type(ty, lanes) };
                line!(self, "const {vector} {} = {text};", self.value(v));
            }
            _ => {
                let text = self.scalar_operation(v, |text, o| text.known(body, o));
                line!(self, "const {} {} = {text};", c_type(ty), self.value(v));
            }
        }
    }

    /// Integer divisions by zero are faults.
    fn guard_division(&mut self, body: &Body, v: ValueId, mask: Option<&str>) {
        let Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) = *self.program.op(v) else {
            return;
        };
        let zero = |l: ebbtide_ir::Literal| l.to_i64() == Some(0);
        if self.program.ty(v).is_float() || self.program.literal(b).is_some_and(|l| !zero(l)) {
            return;
        }
        // Lanes that are not here may have a zero divisor.
        self.failed |= mask.is_some();
        let site = self.program.value(v).site.clone();
        let access = self.access(None, &site);
        let divisor = self.known(body, b);
        let first = match self.checks {
            Checks::AtEnd => "eb_out_of_bounds(f, oops, oops_index, oops_extent); else ",
            _ => "",
        };
        let first = if first.is_empty() { String::new() } else { format!("if (oops) {first}") };
        line!(
            self,
            "if ({divisor} == 0) {{ {first}eb_fault(f, EB_DIVISION, {access}, 0, 0, 0); goto exit{}; }}",
            body.exit
        );
    }

    /// An index turned into a float, lane by lane.
    fn lanes_of_sum(
        &mut self,
        v: ValueId,
        element: Type,
        lanes: usize,
        sum: &crate::analysis::interior::Linear,
    ) {
        let j = self.innermost.map_or(String::new(), |j| self.value(j));
        let each: Vec<String> = (0..lanes)
            .map(|lane| {
                format!("({})(INT64_C({}) * ({j} + {lane}) + {})", c_type(element), sum.coefficient, sum.base)
            })
            .collect();
        let vector = vector_type(element, lanes);
        line!(self, "const {vector} {} = ({vector}){{{}}};", self.value(v), each.join(", "));
    }

    // ---- elements

    /// The offset of an element, after its checks where it needs any.
    pub fn offset(&mut self, body: &Body, array: ArrayId, index: Indices, site: &Option<Site>) -> String {
        self.ok = None;
        let checked = match body.interior() {
            None => self.checks != Checks::Proved,
            Some(interior) => interior.unproved.contains(index.as_slice()),
        };
        let names: Vec<String> = index
            .as_slice()
            .iter()
            .map(|v| match body.interior().and_then(|interior| self.linear_here(interior, *v)) {
                Some(sum) if sum.coefficient == 0 => sum.base.to_string(),
                Some(sum) => {
                    let j = self.innermost.map_or(String::new(), |j| self.value(j));
                    format!("(INT64_C({}) * {j} + {})", sum.coefficient, sum.base)
                }
                None => self.known(body, *v),
            })
            .collect();
        // A vector of lanes has no single index that could be checked.
        self.failed |= checked && matches!(body.form, Form::Vector { .. });
        if checked && self.checks == Checks::AtEnd {
            let access = self.access(Some(array), site);
            let ok = format!("ok{}", self.fresh());
            line!(self, "b8 {ok} = 1;");
            for (k, name) in names.iter().enumerate() {
                line!(
                    self,
                    "if ((u64){name} >= (u64)d{0}_{k}) {{ {ok} = 0; if (!oops) {{ oops = {1}; oops_index = {name}; oops_extent = d{0}_{k}; }} }}",
                    array.index(),
                    8 * access + k + 1
                );
            }
            self.ok = Some(ok);
        } else if checked && self.checks == Checks::Leave {
            let access = self.access(Some(array), site);
            for (k, name) in names.iter().enumerate() {
                line!(
                    self,
                    "if ((u64){name} >= (u64)d{0}_{k}) {{ oops = {1}; oops_index = {name}; oops_extent = d{0}_{k}; goto fault{2}; }}",
                    array.index(),
                    8 * access + k + 1,
                    body.exit
                );
            }
        } else if checked {
            let access = self.access(Some(array), site);
            for (k, name) in names.iter().enumerate() {
                line!(
                    self,
                    "if ((u64){name} >= (u64)d{0}_{k}) {{ eb_fault(f, EB_BOUNDS, {access}, {k}, {name}, d{0}_{k}); goto exit{1}; }}",
                    array.index(),
                    body.exit
                );
            }
        }
        if self.family == Family::Cuda && !checked {
            // In bounds: what is wanted of the sums fits the narrow type where the array is not enormous.
            let narrow: Vec<String> = names.iter().map(|name| format!("(nx){name}")).collect();
            return flatten(array, &narrow, "(nx)");
        }
        flatten(array, &names, "")
    }

    fn body_load(&mut self, body: &Body, v: ValueId, array: ArrayId, index: Indices, mask: Option<&str>) {
        self.store_now(array);
        let site = self.program.value(v).site.clone();
        let ty = self.program.ty(v);
        if let Some(held) = self.held(array, index) {
            return line!(self, "const {} {} = {held};", c_type(ty), self.value(v));
        }
        let offset = self.offset(body, array, index, &site);
        let name = format!("a{}", array.index());
        let element = self.near(array, index).unwrap_or_else(|| format!("{name}[{offset}]"));
        if let (Checks::Proved, Some(mask)) = (self.checks, mask) {
            self.ok = Some(mask.to_string());
        }
        match body.form {
            Form::Vector { interior, lanes, part, .. } if self.is_vector(body, v) => {
                self.failed |= !ty.is_float();
                let vector = vector_type(ty, lanes);
                let text = match (stride(self.program, interior, index), part) {
                    (Stride::Next, Part::Whole) => format!("eb_load_{vector}({name} + {offset})"),
                    (Stride::Next, Part::Tail) => format!("eb_load_part_{vector}({name} + {offset}, tail)"),
                    (Stride::Apart(stride), Part::Whole) => {
                        format!("eb_gather_{vector}({name} + {offset}, {stride}, {lanes})")
                    }
                    (Stride::Apart(stride), Part::Tail) => {
                        format!("eb_gather_{vector}({name} + {offset}, {stride}, tail)")
                    }
                    _ => {
                        let stride = self.row_stride(interior, array, index);
                        let count = if part == Part::Tail { "tail".to_string() } else { lanes.to_string() };
                        format!("eb_gather_{vector}({name} + {offset}, {stride}, {count})")
                    }
                };
                line!(self, "const {vector} {} = {text};", self.value(v));
            }
            _ if self.ok.is_some() => {
                let ok = self.ok.take().unwrap_or_default();
                let element = match self.constant.contains(&array) {
                    true => format!("__ldg(&{element})"),
                    false => element,
                };
                line!(self, "const {0} {1} = {ok} ? {element} : ({0})1;", c_type(ty), self.value(v))
            }
            _ if self.constant.contains(&array) => {
                line!(self, "const {} {} = __ldg(&{element});", c_type(ty), self.value(v))
            }
            _ => line!(self, "const {} {} = {element};", c_type(ty), self.value(v)),
        }
    }

    /// The distance between the elements of neighbouring lanes, where more than the last dimension varies.
    pub fn row_stride(&self, interior: &Interior, array: ArrayId, index: Indices) -> String {
        let coefficients: Vec<String> = index
            .as_slice()
            .iter()
            .map(|v| self.linear_here(interior, *v).map_or(0, |s| s.coefficient).to_string())
            .collect();
        flatten(array, &coefficients, "")
    }

    /// A varying local under a mask.
    fn choose(&self, body: &Body, ty: Type, mask: &str, new: &str, old: &str) -> String {
        let Form::Vector { element, lanes, .. } = body.form else { return new.to_string() };
        if ty == Type::Bool {
            let m = mask_type(element, lanes);
            return format!("op_or_{m}(op_and_{m}({mask}, {new}), op_and_{m}(op_not_{m}({mask}), {old}))");
        }
        format!("op_select_{}({mask}, {new}, {old})", vector_type(ty, lanes))
    }
}

/// The place of an element in memory, last dimension fastest; `as_type` stands before extents.
pub(crate) fn flatten(array: ArrayId, names: &[String], as_type: &str) -> String {
    let mut offset = String::from("0");
    for (k, name) in names.iter().enumerate() {
        offset = if k == 0 {
            name.clone()
        } else {
            format!("({offset} * {as_type}d{}_{k} + {name})", array.index())
        };
    }
    offset
}
