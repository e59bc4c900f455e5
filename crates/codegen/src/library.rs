//! Library operations.

use std::fmt::Write as _;

use ebbtide_ir::{ArrayId, Assign, Bound, Layout, LibraryCall, LibraryOp, Way};
use ebbtide_math::c::Shape;

use crate::unit::{Text, c_type, line, to_bits};

/// The widths of the tiles of a product, in vectors, and their heights: what is left over takes the smaller ones.
const WIDTHS: [usize; 2] = [3, 1];

/// The elements of the largest tile and a line of each factor fill the registers: 32 of 64 bytes, 16 of fewer.
fn heights(shape: Shape) -> &'static [usize] {
    if shape.bytes() == 64 { &[8, 4, 2, 1] } else { &[4, 2, 1] }
}

impl Text<'_> {
    /// Prints a library operation; all threads have come to it, and leave it together.
    pub fn library(&mut self, call: &LibraryCall) {
        let wrong = self.misfit(call);
        self.calls.push(call.clone());
        line!(self, "{{ /* {} */", call.name(self.program));
        line!(
            self,
            "if ({wrong}) {{ eb_fault(f, EB_MISFIT, {}, 0, 0, 0); eb_barrier(f); goto leave; }}",
            self.calls.len() - 1
        );
        // What others still read and write, they have read and written after this.
        self.meet_if_pending();
        match (call.op, call.reads.as_slice(), call.writes.as_slice()) {
            (LibraryOp::Matmul { left, right, into }, &[a, b], &[c]) => {
                self.matmul((a, left), (b, right), c, into)
            }
            (LibraryOp::Scan { way, into }, &[x], &[out]) => self.scan(x, out, way, into),
            (LibraryOp::Compact, &[flags], &[out, count]) => self.compact(flags, out, count),
            (LibraryOp::Custom(_), ..) => self.custom(call),
            // The verifier knows how many arrays each of them takes.
            _ => {}
        }
        self.meet();
        line!(self, "}}");
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

    fn matmul(&mut self, a: (ArrayId, Layout), b: (ArrayId, Layout), c: ArrayId, into: Assign) {
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
        line!(self, "eb_matmul_{t}(f, left, right, out, {rows}, {columns}, {terms}, {fresh});");
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

/// The functions that multiply matrices of the type of `shape`.
pub(crate) fn products(shape: Shape, ty: &str) -> String {
    let mut text = String::new();
    let mut choice = String::new();
    for height in heights(shape) {
        for width in WIDTHS {
            tile(&mut text, shape, ty, *height, width);
            let _ = writeln!(
                choice,
                "if (height == {height} && width == {}) {{ eb_tile_{ty}_{height}x{width}(terms, a, row, column, b, line, c, stride, fresh); return; }}",
                width * shape.lanes()
            );
        }
    }
    text.push_str(
        &include_str!("matmul.c")
            .replace("$CHOICE", &choice)
            .replace("$TALL", &heights(shape)[0].to_string())
            .replace("$T", ty)
            .replace("$WIDE", &(WIDTHS[0] * shape.lanes()).to_string())
            .replace("$N", &shape.lanes().to_string()),
    );
    text
}

/// One tile of a product: its elements stay in registers over all `terms`.
fn tile(text: &mut String, shape: Shape, ty: &str, height: usize, width: usize) {
    let lanes = shape.lanes();
    let each = |write: &mut dyn FnMut(usize, usize)| {
        (0..height).for_each(|r| (0..width).for_each(|v| write(r, v)));
    };
    let _ = writeln!(
        text,
        "static void eb_tile_{ty}_{height}x{width}(i64 terms, const {ty} *a, i64 row, i64 column, const {ty} *b, i64 line, {ty} *c, i64 stride, i32 fresh) {{"
    );
    each(&mut |r, v| {
        let _ = writeln!(
            text,
            "{shape} c{r}_{v} = fresh ? ({shape}){{0}} : eb_load_{shape}(c + {r} * stride + {});",
            v * lanes
        );
    });
    for r in 0..height {
        let _ = writeln!(text, "const {ty} *p{r} = a + {r} * row;");
    }
    text.push_str("for (i64 k = 0, q = 0; k < terms; k++, q += column, b += line) {\n");
    for v in 0..width {
        let _ = writeln!(text, "const {shape} b{v} = eb_load_{shape}(b + {});", v * lanes);
    }
    for r in 0..height {
        let _ = writeln!(text, "const {shape} a{r} = op_float_{shape}(p{r}[q]);");
        for v in 0..width {
            let _ = writeln!(text, "c{r}_{v} = op_fma_{shape}(a{r}, b{v}, c{r}_{v});");
        }
    }
    text.push_str("}\n");
    each(&mut |r, v| {
        let _ = writeln!(text, "eb_store_{shape}(c + {r} * stride + {}, c{r}_{v});", v * lanes);
    });
    text.push_str("}\n");
}
