//! Library operations.

use ebbtide_ir::{ArrayId, Assign, Bound, Layout, LibraryCall, LibraryOp, Way};

use crate::kernel::segment::{Product, ProductId, Step, Steps};
use crate::print::c_types::{c_type, to_bits};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;

impl Emitter<'_> {
    /// Prints whether arrays fit a library operation, and then the steps with it.
    pub fn library(&mut self, call: &LibraryCall, steps: &[Step]) {
        let wrong = self.misfit(call);
        self.calls.push(call.clone());
        line!(self, "{{ /* {} */", call.name(self.program));
        line!(
            self,
            "if ({wrong}) {{ eb_fault(f, EB_MISFIT, {}, 0, 0, 0); eb_barrier(f); goto leave; }}",
            self.calls.len() - 1
        );
        self.steps(steps);
        line!(self, "}}");
    }

    /// Prints the operation itself.
    pub fn library_operation(&mut self, call: &LibraryCall, product: Product) {
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            (LibraryOp::Matmul { left, right, into }, &[a, b], &[c]) => {
                self.matmul((a, left), (b, right), (c, into), product)
            }
            (LibraryOp::Scan { way, into }, &[x], &[out]) => self.scan(x, out, way, into),
            (LibraryOp::Compact, &[flags], &[out, count]) => self.compact(flags, out, count),
            (LibraryOp::Custom(_), ..) => self.custom(call),
            // The verifier knows how many arrays each of them takes.
            _ => {}
        }
    }

    /// The host does it, called by one thread. What it is comes with the frame, so that the text does not change.
    fn custom(&mut self, call: &LibraryCall) {
        let (mut data, mut shapes, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
        for bound in &call.arguments {
            match *bound {
                Bound::Array(a, _) => {
                    data.push(format!("a{}", a.index()));
                    shapes.extend((0..self.program.array(a).rank).map(|k| format!("d{}_{k}", a.index())));
                }
                Bound::Scalar(v) => scalars.push(to_bits(self.program.ty(v), &self.value(v))),
            }
        }
        // No table is empty in C.
        data.push("0".to_string());
        shapes.push("0".to_string());
        scalars.push("0".to_string());
        let number = self.calls.len() - 1;
        line!(self, "if (f->thread == 0) {{ void *data[] = {{{}}};", data.join(", "));
        line!(self, "const i64 shapes[] = {{{}}};", shapes.join(", "));
        line!(self, "const u64 scalars[] = {{{}}};", scalars.join(", "));
        line!(
            self,
            "if (f->shared->call(f->shared->context, {number}, data, shapes, scalars)) eb_fault(f, EB_OPERATION, {number}, 0, 0, 0); }}"
        );
    }

    /// The condition under which the shapes do not fit together.
    fn misfit(&self, call: &LibraryCall) -> String {
        let d = |array: ArrayId, k: usize| format!("d{}_{k}", array.index());
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            (LibraryOp::Matmul { left, right, .. }, &[a, b], &[c]) => {
                let ((m, k), (l, n)) = (sides(a, left), sides(b, right));
                format!("{k} != {l} || {m} != {} || {n} != {}", d(c, 0), d(c, 1))
            }
            (LibraryOp::Scan { .. }, &[x], &[out]) => format!("{} != {}", d(x, 0), d(out, 0)),
            (LibraryOp::Compact, &[flags], _) => format!("{} > INT32_MAX", d(flags, 0)),
            _ => "0".to_string(),
        }
    }

    fn matmul(
        &mut self,
        a: (ArrayId, Layout),
        b: (ArrayId, Layout),
        (c, into): (ArrayId, Assign),
        product: Product,
    ) {
        let ty = self.program.array(c).ty;
        self.products.insert(c_type(ty));
        let matrix = |(array, layout): (ArrayId, Layout)| {
            let i = array.index();
            match layout {
                Layout::Plain => format!("{{a{i}, d{i}_1, 1}}"),
                Layout::Transposed => format!("{{a{i}, 1, d{i}_1}}"),
            }
        };
        let t = c_type(ty);
        let ((rows, terms), (_, columns)) = (sides(a.0, a.1), sides(b.0, b.1));
        let fresh = i32::from(into == Assign::Replace);
        let [left, right, out] = [a, b, (c, Layout::Plain)].map(matrix);
        line!(self, "const eb_matrix_{t} left = {left}, right = {right}, out = {out};");
        match product {
            Product::Waits => {
                let c = c.index();
                line!(self, "eb_defer_{t}(f, &r{c}, left, right, out, {rows}, {columns}, {terms});");
            }
            Product::AtOnce => {
                line!(self, "eb_matmul_{t}(f, left, right, out, {rows}, {columns}, {terms}, {fresh});")
            }
            Product::Tiled { id, .. } => {
                let (plan, turn) = (format!("product{}", id.0), self.turn_of(id));
                let entry = format!(
                    "__shared__ eb_product_plan {plan}; if (threadIdx.x / 32 == {} % (blockDim.x / 32)) eb_plan_product_{t}(&{plan}, {rows}, {columns}, {terms});\n",
                    id.0
                );
                self.entry.add(Known::Product(id), entry);
                line!(self, "eb_matmul_{t}({plan}, left, right, out, {fresh}, {turn});");
            }
        }
    }

    /// Finds out beside which products those of a segment are computed. The depth of recursion is that of nesting in the source.
    pub fn find_products(&mut self, steps: &Steps) {
        for step in steps {
            if let Step::Operation(_, Product::Tiled { id, behind }) = step {
                self.behind.insert(*id, *behind);
            }
            step.inner().for_each(|steps| self.find_products(steps));
        }
    }

    /// The block that has the first tile of a product.
    pub fn turn_of(&self, product: ProductId) -> String {
        match self.behind.get(&product).copied().flatten() {
            Some(other) => format!("eb_turn_behind({}, product{})", self.turn_of(other), other.0),
            None => "0".to_string(),
        }
    }

    /// A chain of additions: one thread does it.
    fn scan(&mut self, x: ArrayId, out: ArrayId, way: Way, into: Assign) {
        let ty = self.program.array(x).ty;
        let (t, x, out) = (c_type(ty), x.index(), out.index());
        let start = if ty.is_float() { "-0.0" } else { "0" };
        let place = if way == Way::Forth { "k" } else { "n - 1 - k" };
        let result = if into == Assign::Replace { "sum".to_string() } else { format!("a{out}[i] + sum") };
        line!(self, "if (f->thread == 0) {{ const i64 n = d{x}_0; {t} sum = {start};");
        line!(
            self,
            "for (i64 k = 0; k < n; k++) {{ const i64 i = {place}; sum = sum + a{x}[i]; a{out}[i] = {result}; }} }}"
        );
    }

    fn compact(&mut self, flags: ArrayId, out: ArrayId, count: ArrayId) {
        let (flags, out, count) = (flags.index(), out.index(), count.index());
        line!(self, "if (f->thread == 0) {{ i64 found = 0; const i64 n = d{flags}_0, room = d{out}_0;");
        line!(
            self,
            "for (i64 k = 0; k < n; k++) if (a{flags}[k]) {{ if (found < room) a{out}[found] = (i32)k; found++; }}"
        );
        line!(self, "a{count}[0] = (i32)found; }}");
    }
}

/// The names of the numbers of rows and columns of a factor.
fn sides(array: ArrayId, layout: Layout) -> (String, String) {
    let (first, second) = (format!("d{}_0", array.index()), format!("d{}_1", array.index()));
    match layout {
        Layout::Plain => (first, second),
        Layout::Transposed => (second, first),
    }
}
