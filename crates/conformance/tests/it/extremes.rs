//! Indices and bounds near 0, 2^31, 2^32, 2^62, 2^63 and 2^64: what the law says, or an error, on every device (c59).
//!
//! Index arithmetic is exact, or overflows and gives no number (law 4). Compiled loops compute where their indices need no checks: that must not wrap.

use ebbtide_ir::*;
use ebbtide_runtime::{AnyArray, Arg, Compiled, Device, interpreter};

use crate::devices::{check, cpu, on_cuda};

/// Elements of `x`, `y` and `k`: enough for several threads.
const N: usize = 2048;

/// The names that the cases share. All loops run from `a` to `b`.
struct Case {
    b: Builder,
    x: ArrayId,
    y: ArrayId,
    k: ArrayId,
    m: ArrayId,
    c: ArrayId,
    q: ArrayId,
    w: ArrayId,
    r: ArrayId,
    from: ValueId,
    to: ValueId,
    /// A multiple of the anchor.
    s: ValueId,
    /// Was it asked for?
    offset_used: bool,
    n: ValueId,
    zero: ValueId,
}

impl Case {
    fn offset(&mut self) -> ValueId {
        self.offset_used = true;
        self.s
    }
    fn index(&mut self, i: i64) -> ValueId {
        self.b.literal(Literal::index(i))
    }
    fn real(&mut self, x: f64) -> ValueId {
        self.b.literal(Literal::from(x))
    }
    fn par(&mut self) -> ValueId {
        self.b.begin_par(&[("i", self.from, self.to)])[0]
    }
    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Add, a, b)
    }
    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Sub, a, b)
    }
    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Mul, a, b)
    }
    fn plus(&mut self, a: ValueId, by: i64) -> ValueId {
        let by = self.index(by);
        self.add(a, by)
    }
    fn times(&mut self, a: ValueId, by: i64) -> ValueId {
        let by = self.index(by);
        self.mul(a, by)
    }
    /// `i - from`.
    fn at(&mut self, i: ValueId) -> ValueId {
        self.sub(i, self.from)
    }
    /// Stores one at an index of `x`.
    fn mark(&mut self, at: ValueId) {
        let one = self.real(1.0);
        self.b.store(self.x, &[at], one);
    }
    /// `y[i - from] = x[at] + 1`.
    fn copy(&mut self, i: ValueId, at: ValueId) {
        let (v, one) = (self.b.load(self.x, &[at]), self.real(1.0));
        let v = self.add(v, one);
        let i = self.at(i);
        self.b.store(self.y, &[i], v);
    }
    /// `w[i - from] = 3`.
    fn touch(&mut self, i: ValueId) {
        let (at, three) = (self.at(i), self.b.literal(Literal::from(3.0f32)));
        self.b.store(self.w, &[at], three);
    }
    /// `y[i - from] = v`, for a whole number.
    fn put(&mut self, i: ValueId, v: ValueId) {
        let v = self.b.cast(v, Type::F64);
        let i = self.at(i);
        self.b.store(self.y, &[i], v);
    }
}

/// How many iterations a case may be given.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// Any number: an access leaves its array soon.
    Soon,
    /// Few: it runs to the end.
    AtTheEnd,
}
use Ends::{AtTheEnd, Soon};

type Shape = (&'static str, Ends, fn(&mut Case));

const SHAPES: &[Shape] = &[
    ("an index as it is", Soon, |c| {
        let i = c.par();
        c.mark(i);
        c.b.end_par();
    }),
    ("an index from the beginning", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        c.mark(at);
        c.b.end_par();
    }),
    ("elements side by side", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a periodic neighbour", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let next = c.plus(at, 1);
        let next = c.b.binary(Binary::Rem, next, c.n);
        c.copy(i, next);
        c.b.end_par();
    }),
    ("a periodic neighbour on the left", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let around = c.add(at, c.n);
        let before = c.plus(around, -1);
        let before = c.b.binary(Binary::Rem, before, c.n);
        c.copy(i, before);
        c.b.end_par();
    }),
    ("a remainder of the index itself", Soon, |c| {
        let i = c.par();
        let at = c.b.binary(Binary::Rem, i, c.n);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a Euclidean remainder of a shifted index", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.sub(i, s);
        let at = c.b.binary(Binary::RemEuclid, far, c.n);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a remainder by a number near the bounds", Soon, |c| {
        let i = c.par();
        let at = c.b.binary(Binary::Rem, i, c.to);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("an index with an offset", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.add(i, s);
        c.mark(at);
        c.b.end_par();
    }),
    ("an index minus an offset", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.sub(i, s);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("every second element", Soon, |c| {
        let (i, twice) = (c.par(), c.times(c.from, 2));
        let at = c.times(i, 2);
        let at = c.sub(at, twice);
        c.mark(at);
        c.b.end_par();
    }),
    ("every third element, read", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let at = c.times(at, 3);
        let at = c.plus(at, 1);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("backwards", Soon, |c| {
        let i = c.par();
        let last = c.plus(c.to, -1);
        let at = c.sub(last, i);
        c.mark(at);
        c.b.end_par();
    }),
    ("the opposite sign", Soon, |c| {
        let i = c.par();
        let at = c.sub(c.zero, i);
        c.mark(at);
        c.b.end_par();
    }),
    ("a guard on the left", Soon, |c| {
        let i = c.par();
        let inside = c.b.compare(Compare::Gt, i, c.from);
        c.b.begin_if(inside);
        let at = c.at(i);
        let at = c.plus(at, -1);
        c.copy(i, at);
        c.b.end_if();
        c.touch(i);
        c.b.end_par();
    }),
    ("a guard on the right", Soon, |c| {
        let i = c.par();
        let next = c.plus(i, 1);
        let inside = c.b.compare(Compare::Lt, next, c.to);
        c.b.begin_if(inside);
        let at = c.at(i);
        let at = c.plus(at, 1);
        c.copy(i, at);
        c.b.end_if();
        c.touch(i);
        c.b.end_par();
    }),
    ("a choice of neighbours", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let before = c.plus(at, -1);
        let first = c.b.compare(Compare::Eq, i, c.from);
        let at = c.b.select(first, at, before);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a clamped neighbour", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let next = c.plus(at, 1);
        let last = c.plus(c.n, -1);
        let at = c.b.binary(Binary::Min, next, last);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a clamp from below", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let before = c.plus(at, -3);
        let at = c.b.binary(Binary::Max, before, c.zero);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a clamp of a multiple", Soon, |c| {
        let i = c.par();
        let far = c.times(i, 524_287);
        let at = c.b.binary(Binary::Min, far, c.zero);
        let at = c.b.binary(Binary::Max, at, c.zero);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a condition on a multiple that may wrap", Soon, |c| {
        let i = c.par();
        let far = c.times(i, 524_288);
        let less = c.b.compare(Compare::Lt, far, c.n);
        let (one, two) = (c.index(1), c.index(2));
        let v = c.b.select(less, one, two);
        c.put(i, v);
        c.b.end_par();
    }),
    ("the other condition on a multiple that may wrap", Soon, |c| {
        let i = c.par();
        let far = c.times(i, 524_288);
        let less = c.b.compare(Compare::Ge, far, c.n);
        let (one, two) = (c.index(1), c.index(2));
        let v = c.b.select(less, one, two);
        c.put(i, v);
        c.b.end_par();
    }),
    ("a condition on a sum that may wrap", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.add(i, s);
        let less = c.b.compare(Compare::Gt, far, c.n);
        let (one, two) = (c.index(1), c.index(2));
        let v = c.b.select(less, one, two);
        c.put(i, v);
        c.b.end_par();
    }),
    ("a large factor", Soon, |c| {
        let i = c.par();
        let at = c.times(i, 1 << 62);
        c.mark(at);
        c.b.end_par();
    }),
    ("the least factor", Soon, |c| {
        let i = c.par();
        let at = c.times(i, i64::MIN);
        c.mark(at);
        c.b.end_par();
    }),
    ("a factor that is an argument", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.mul(i, s);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a square", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let at = c.mul(at, at);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a quotient", Soon, |c| {
        let i = c.par();
        let (three, at) = (c.index(3), c.at(i));
        let at = c.b.binary(Binary::Div, at, three);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a quotient by the offset", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.b.binary(Binary::Div, i, s);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("the index as a number", Soon, |c| {
        let i = c.par();
        c.put(i, i);
        c.b.end_par();
    }),
    ("the index as a small integer", Soon, |c| {
        let i = c.par();
        let small = c.b.cast(i, Type::I32);
        c.put(i, small);
        c.b.end_par();
    }),
    ("a sum of elements", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let v = c.b.load(c.x, &[at]);
        c.b.update(Combine::Add, c.r, &[], v);
        c.b.end_par();
    }),
    ("a sum of elements at the index itself", Soon, |c| {
        let i = c.par();
        let v = c.b.load(c.x, &[i]);
        c.b.update(Combine::Add, c.r, &[], v);
        c.b.end_par();
    }),
    ("a sum without elements", AtTheEnd, |c| {
        let i = c.par();
        let v = c.b.cast(i, Type::F64);
        c.b.update(Combine::Add, c.r, &[], v);
        c.b.end_par();
    }),
    ("the largest element", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let v = c.b.load(c.x, &[at]);
        c.b.update(Combine::Max, c.r, &[], v);
        c.b.end_par();
    }),
    ("a sum at an element of its own", AtTheEnd, |c| {
        let i = c.par();
        let v = c.b.cast(i, Type::F64);
        let s = c.offset();
        c.b.update(Combine::Add, c.y, &[s], v);
        c.b.end_par();
    }),
    ("a scatter along data", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let k = c.b.load(c.k, &[at]);
        let at = c.b.cast(k, Type::Index);
        let one = c.real(1.0);
        c.b.update(Combine::Add, c.y, &[at], one);
        c.b.end_par();
    }),
    ("a scatter along a quotient", Soon, |c| {
        let i = c.par();
        let (two, at) = (c.index(2), c.at(i));
        let at = c.b.binary(Binary::Div, at, two);
        let one = c.real(1.0);
        c.b.update(Combine::Add, c.y, &[at], one);
        c.b.end_par();
    }),
    ("elements of its own", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let v = c.real(2.0);
        c.b.store_unique(c.y, &[at], v);
        c.b.end_par();
    }),
    ("an update of own elements", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let v = c.b.load(c.x, &[at]);
        c.b.update(Combine::Add, c.y, &[at], v);
        c.b.end_par();
    }),
    ("short floats", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        let v = c.b.load(c.w, &[at]);
        let v = c.add(v, v);
        c.b.store(c.w, &[at], v);
        c.b.end_par();
    }),
    ("rows far out", Soon, |c| {
        let columns = c.b.dim(c.m, 1);
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.zero, columns)]);
        let (at, one) = (c.at(v[0]), c.real(1.0));
        c.b.store(c.m, &[at, v[1]], one);
        c.b.end_par();
    }),
    ("columns far out", Soon, |c| {
        let rows = c.b.dim(c.m, 0);
        let v = c.b.begin_par(&[("i", c.zero, rows), ("j", c.from, c.to)]);
        let (at, one) = (c.at(v[1]), c.real(1.0));
        c.b.store(c.m, &[v[0], at], one);
        c.b.end_par();
    }),
    ("rows and columns far out", Soon, |c| {
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.from, c.to)]);
        let (i, j, one) = (c.at(v[0]), c.at(v[1]), c.real(1.0));
        c.b.store(c.m, &[i, j], one);
        c.b.end_par();
    }),
    ("rows and columns as they are", Soon, |c| {
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.from, c.to)]);
        let one = c.real(1.0);
        c.b.store(c.m, &[v[0], v[1]], one);
        c.b.end_par();
    }),
    ("a sum over a plane", Soon, |c| {
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.from, c.to)]);
        let (i, j) = (c.at(v[0]), c.at(v[1]));
        let v = c.b.load(c.m, &[i, j]);
        c.b.update(Combine::Add, c.r, &[], v);
        c.b.end_par();
    }),
    ("a sum over a plane without elements", AtTheEnd, |c| {
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.from, c.to)]);
        let ij = c.sub(v[0], v[1]);
        let ij = c.b.cast(ij, Type::F64);
        c.b.update(Combine::Add, c.r, &[], ij);
        c.b.end_par();
    }),
    ("a flat index", Soon, |c| {
        let columns = c.b.dim(c.m, 1);
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.zero, columns)]);
        let i = c.at(v[0]);
        let flat = c.mul(i, columns);
        let flat = c.add(flat, v[1]);
        let x = c.b.load(c.x, &[flat]);
        c.b.store(c.m, &[i, v[1]], x);
        c.b.end_par();
    }),
    ("three dimensions", Soon, |c| {
        let two = c.index(2);
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.zero, two), ("k", c.from, c.to)]);
        let (i, k, one) = (c.at(v[0]), c.at(v[2]), c.real(1.0));
        c.b.store(c.c, &[i, v[1], k], one);
        c.b.end_par();
    }),
    ("four dimensions", Soon, |c| {
        let two = c.index(2);
        let v = c.b.begin_par(&[
            ("i", c.from, c.to),
            ("j", c.zero, two),
            ("k", c.zero, two),
            ("l", c.from, c.to),
        ]);
        let (i, l, one) = (c.at(v[0]), c.at(v[3]), c.real(1.0));
        c.b.store(c.q, &[i, v[1], v[2], l], one);
        c.b.end_par();
    }),
    ("a loop in each iteration", Soon, |c| {
        let few = c.index(20);
        let i = c.b.begin_par(&[("i", c.zero, few)])[0];
        let zero = c.real(0.0);
        let sum = c.b.local("sum", zero);
        let t = c.b.begin_for("t", c.from, c.to);
        let at = c.at(t);
        let v = c.b.load(c.x, &[at]);
        let so_far = c.b.get(sum);
        let more = c.add(so_far, v);
        c.b.set(sum, more);
        c.b.end_loop(None);
        let total = c.b.get(sum);
        c.b.store(c.y, &[i], total);
        c.b.end_par();
    }),
    ("a loop of a few passes in each iteration", Soon, |c| {
        let i = c.par();
        let zero = c.real(0.0);
        let sum = c.b.local("sum", zero);
        let end = c.plus(i, 3);
        let t = c.b.begin_for("t", i, end);
        let at = c.at(t);
        let v = c.b.load(c.x, &[at]);
        let so_far = c.b.get(sum);
        let more = c.add(so_far, v);
        c.b.set(sum, more);
        c.b.end_loop(None);
        let (total, at) = (c.b.get(sum), c.at(i));
        c.b.store(c.y, &[at], total);
        c.b.end_par();
    }),
    ("a while loop in each iteration", AtTheEnd, |c| {
        let i = c.par();
        let t = c.b.local("t", c.from);
        c.b.begin_while();
        let now = c.b.get(t);
        let go = c.b.compare(Compare::Lt, now, i);
        c.b.while_condition(go);
        let now = c.b.get(t);
        let next = c.plus(now, 1);
        c.b.set(t, next);
        c.b.end_loop(None);
        let passed = c.b.get(t);
        c.put(i, passed);
        c.b.end_par();
    }),
    ("passes far out", AtTheEnd, |c| {
        let t = c.b.begin_for("t", c.from, c.to);
        let few = c.index(20);
        let i = c.b.begin_par(&[("i", c.zero, few)])[0];
        let at = c.sub(t, c.from);
        let at = c.add(at, i);
        let v = c.b.load(c.x, &[at]);
        c.b.update(Combine::Add, c.y, &[i], v);
        c.b.end_par();
        c.b.end_loop(None);
    }),
    ("an element in each pass", Soon, |c| {
        let t = c.b.begin_for("t", c.from, c.to);
        let at = c.at(t);
        c.mark(at);
        c.b.end_loop(None);
    }),
    ("an element at the pass itself", Soon, |c| {
        let t = c.b.begin_for("t", c.from, c.to);
        c.mark(t);
        c.b.end_loop(None);
    }),
    ("a while loop around elements", AtTheEnd, |c| {
        let t = c.b.local("t", c.from);
        c.b.begin_while();
        let now = c.b.get(t);
        let go = c.b.compare(Compare::Lt, now, c.to);
        c.b.while_condition(go);
        let now = c.b.get(t);
        let (at, next) = (c.at(now), c.plus(now, 1));
        c.mark(at);
        c.b.set(t, next);
        c.b.end_loop(None);
    }),
    ("a loop that is left in the middle", Soon, |c| {
        let t = c.b.begin_for("t", c.from, c.to);
        let at = c.at(t);
        c.mark(at);
        let four = c.index(4);
        let enough = c.b.compare(Compare::Ge, at, four);
        c.b.end_loop(Some(enough));
    }),
    ("a region around a loop", Soon, |c| {
        c.b.begin_region(
            Label { family: "Extremes".to_string(), variant: "Region".to_string() },
            None,
            Undo::Nothing,
        );
        let i = c.par();
        let at = c.at(i);
        c.copy(i, at);
        c.b.end_par();
        c.b.end_region();
    }),
    ("two loops over one domain, and one element", Soon, |c| {
        let i = c.par();
        let at = c.at(i);
        c.mark(at);
        c.b.end_par();
        let v = c.real(7.0);
        c.b.store(c.x, &[c.zero], v);
        let i = c.par();
        let at = c.at(i);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("exchanged names", Soon, |c| {
        let three = c.index(3);
        c.b.begin_for("t", c.zero, three);
        let i = c.par();
        let at = c.at(i);
        c.copy(i, at);
        c.b.end_par();
        c.b.swap(c.x, c.y);
        c.b.end_loop(None);
    }),
    ("a loop in any order", Soon, |c| {
        c.b.relaxed();
        let i = c.par();
        let (two, at) = (c.index(2), c.at(i));
        let at = c.b.binary(Binary::Div, at, two);
        let one = c.b.literal(Literal::from(1i64));
        c.b.update(Combine::Add, c.k, &[at], one);
        c.b.end_par();
    }),
    ("a remainder of a product that may overflow", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.mul(i, s);
        let at = c.b.binary(Binary::Rem, far, c.n);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a clamp of a product that may overflow", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.mul(i, s);
        let last = c.plus(c.n, -1);
        let at = c.b.binary(Binary::Min, far, last);
        let at = c.b.binary(Binary::Max, at, c.zero);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a product that comes back", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.add(i, s);
        let far = c.times(far, 4);
        let back = c.times(s, 4);
        let at = c.sub(far, back);
        let at = c.sub(at, c.from);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a square as a number", Soon, |c| {
        let i = c.par();
        let square = c.mul(i, i);
        c.put(i, square);
        c.b.end_par();
    }),
    ("a sum as a number", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let sum = c.add(i, s);
        let sum = c.plus(sum, 3);
        c.put(i, sum);
        c.b.end_par();
    }),
    ("a multiple as a small integer", Soon, |c| {
        let i = c.par();
        let far = c.times(i, 3);
        let small = c.b.cast(far, Type::I32);
        c.put(i, small);
        let unsigned = c.b.cast(far, Type::U32);
        let (unsigned, at) = (c.b.cast(unsigned, Type::F32), c.at(i));
        c.b.store(c.w, &[at], unsigned);
        c.b.end_par();
    }),
    ("a multiple as a long integer and as a truth", Soon, |c| {
        let i = c.par();
        let far = c.times(i, 5);
        let (long, at) = (c.b.cast(far, Type::I64), c.at(i));
        c.b.store(c.k, &[at], long);
        let truth = c.b.cast(far, Type::Bool);
        let truth = c.b.cast(truth, Type::I32);
        c.put(i, truth);
        c.b.end_par();
    }),
    ("shifts and bits", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let (by, mask) = (c.index(3), c.index(1023));
        let far = c.b.binary(Binary::Shl, i, by);
        let far = c.b.binary(Binary::Xor, far, s);
        let at = c.b.binary(Binary::And, far, mask);
        c.copy(i, at);
        let inverse = c.b.unary(Unary::Not, far);
        let (inverse, at) = (c.b.cast(inverse, Type::F32), c.at(i));
        c.b.store(c.w, &[at], inverse);
        c.b.end_par();
    }),
    ("bits of a sum", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.add(i, s);
        let both = c.b.binary(Binary::Or, far, i);
        let both = c.b.binary(Binary::Shr, both, c.n);
        c.put(i, both);
        c.b.end_par();
    }),
    ("data with a factor", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.at(i);
        let k = c.b.load(c.k, &[at]);
        let k = c.b.cast(k, Type::Index);
        let far = c.mul(k, s);
        let at = c.add(far, at);
        c.copy(i, at);
        c.b.end_par();
    }),
    ("a plane of products", Soon, |c| {
        let columns = c.b.dim(c.m, 1);
        let v = c.b.begin_par(&[("i", c.from, c.to), ("j", c.zero, columns)]);
        let s = c.offset();
        let far = c.mul(v[0], s);
        let far = c.add(far, v[1]);
        let (far, i) = (c.b.cast(far, Type::F64), c.at(v[0]));
        c.b.store(c.m, &[i, v[1]], far);
        c.b.end_par();
    }),
    ("a loop in each iteration whose bound may overflow", AtTheEnd, |c| {
        let i = c.par();
        let s = c.offset();
        let zero = c.real(0.0);
        let sum = c.b.local("sum", zero);
        let far = c.mul(i, s);
        let end = c.b.binary(Binary::Min, far, c.n);
        c.b.begin_for("t", c.zero, end);
        let (so_far, one) = (c.b.get(sum), c.real(1.0));
        let more = c.add(so_far, one);
        c.b.set(sum, more);
        c.b.end_loop(None);
        let (total, at) = (c.b.get(sum), c.at(i));
        c.b.store(c.y, &[at], total);
        c.b.end_par();
    }),
    ("a loop in each iteration with multiples of its variable", AtTheEnd, |c| {
        let i = c.par();
        let s = c.offset();
        let zero = c.real(0.0);
        let sum = c.b.local("sum", zero);
        let few = c.index(7);
        let t = c.b.begin_for("t", c.zero, few);
        let far = c.mul(t, s);
        let far = c.add(far, i);
        let (so_far, far) = (c.b.get(sum), c.b.cast(far, Type::F64));
        let more = c.add(so_far, far);
        c.b.set(sum, more);
        c.b.end_loop(None);
        let (total, at) = (c.b.get(sum), c.at(i));
        c.b.store(c.y, &[at], total);
        c.b.end_par();
    }),
    ("passes up to a product", AtTheEnd, |c| {
        let s = c.offset();
        let far = c.mul(c.from, s);
        let end = c.b.binary(Binary::Min, far, c.n);
        let t = c.b.begin_for("t", c.zero, end);
        c.mark(t);
        c.b.end_loop(None);
    }),
    ("iterations up to a product", AtTheEnd, |c| {
        let s = c.offset();
        let far = c.mul(c.to, s);
        let end = c.b.binary(Binary::Min, far, c.n);
        let i = c.b.begin_par(&[("i", c.zero, end)])[0];
        c.mark(i);
        c.b.end_par();
    }),
    ("a sum over products", AtTheEnd, |c| {
        let i = c.par();
        let s = c.offset();
        let far = c.mul(i, s);
        let v = c.b.cast(far, Type::F64);
        c.b.update(Combine::Add, c.r, &[], v);
        c.b.end_par();
    }),
    ("a variable that grows", AtTheEnd, |c| {
        let i = c.par();
        let t = c.b.local("t", i);
        let few = c.index(5);
        c.b.begin_for("u", c.zero, few);
        let now = c.b.get(t);
        let next = c.times(now, 3);
        c.b.set(t, next);
        c.b.end_loop(None);
        let grown = c.b.get(t);
        c.put(i, grown);
        c.b.end_par();
    }),
    ("a guarded product", Soon, |c| {
        let i = c.par();
        let s = c.offset();
        let at = c.mul(i, s);
        let (below, above) = (c.b.compare(Compare::Lt, at, c.n), c.b.compare(Compare::Ge, at, c.zero));
        let inside = c.b.binary(Binary::And, below, above);
        c.b.begin_if(inside);
        c.copy(i, at);
        c.b.end_if();
        c.touch(i);
        c.b.end_par();
    }),
];

/// All shapes in one program.
pub fn all() -> Program {
    program(SHAPES).0
}

/// These shapes in one program, of which `which` says which one runs, and which of them use the offset.
fn program(shapes: &[Shape]) -> (Program, Vec<bool>) {
    let mut b = Builder::new("extremes");
    let [x, y] = ["x", "y"].map(|name| b.array(name, Type::F64, 1, Access::Write));
    let k = b.array("k", Type::I64, 1, Access::Write);
    let [m, c, q] =
        [("m", 2), ("c", 3), ("q", 4)].map(|(name, rank)| b.array(name, Type::F64, rank, Access::Write));
    let w = b.array("w", Type::F32, 1, Access::Write);
    let r = b.array("r", Type::F64, 0, Access::Write);
    let which = b.scalar("which", Type::Index);
    let [from, to, s] = ["from", "to", "s"].map(|name| b.scalar(name, Type::Index));
    let (n, zero) = (b.dim(x, 0), b.literal(Literal::index(0)));
    let mut case = Case { b, x, y, k, m, c, q, w, r, from, to, s, offset_used: false, n, zero };
    let mut with_offset = Vec::new();
    for (number, (_, _, build)) in shapes.iter().enumerate() {
        let number = case.index(number as i64);
        let chosen = case.b.compare(Compare::Eq, which, number);
        case.b.begin_if(chosen);
        build(&mut case);
        with_offset.push(std::mem::take(&mut case.offset_used));
        case.b.end_if();
    }
    (case.b.finish().unwrap_or_else(|e| panic!("{e}")), with_offset)
}

/// A device with the program and its arrays.
struct World {
    compiled: Compiled,
    arrays: Vec<AnyArray>,
    first: Vec<Vec<u8>>,
}

impl World {
    fn new(program: &Program, device: &Device) -> World {
        let shapes: [(Type, &[usize]); 8] = [
            (Type::F64, &[N]),
            (Type::F64, &[N]),
            (Type::I64, &[N]),
            (Type::F64, &[32, 40]),
            (Type::F64, &[32, 2, 40]),
            (Type::F64, &[32, 2, 2, 40]),
            (Type::F32, &[N]),
            (Type::F64, &[]),
        ];
        let mut arrays = Vec::new();
        for (seed, (ty, shape)) in shapes.into_iter().enumerate() {
            let mut array = AnyArray::zeros(device, ty, shape).unwrap();
            let element = |k: usize| match ty {
                // What is scattered along stays inside.
                Type::I64 => Literal::from((k * 7 % N) as i64),
                _ => ebbtide_conformance::element(ty, seed as u64, k as u64),
            };
            let bytes: Vec<u8> = (0..array.len())
                .flat_map(|k| element(k).bits().to_le_bytes()[..ty.size()].to_vec())
                .collect();
            array.copy_from_bytes(&bytes).unwrap();
            arrays.push(array);
        }
        let first = arrays.iter().map(|array| array.bytes().to_vec()).collect();
        World { compiled: Compiled::new(program, device).unwrap(), arrays, first }
    }

    /// The bytes of all arrays, or the kind of the error.
    fn run(&mut self, which: usize, [from, to, s]: [i64; 3]) -> Result<Vec<Vec<u8>>, &'static str> {
        for (array, first) in self.arrays.iter_mut().zip(&self.first) {
            array.copy_from_bytes(first).unwrap();
        }
        let mut args: Vec<Arg<'_>> =
            self.arrays.iter_mut().map(|array| Arg::Write(array.any_mut())).collect();
        args.extend([which as i64, from, to, s].map(|i| Arg::Scalar(Literal::index(i))));
        match self.compiled.launch(args) {
            Ok(_done) => Ok(self.arrays.iter().map(|array| array.bytes().to_vec()).collect()),
            Err(error) => {
                let said = error.to_string();
                let kinds = [
                    "out of bounds",
                    "division by zero",
                    "written twice",
                    "a bound of a loop is not a number",
                ];
                Err(kinds.into_iter().find(|kind| said.contains(kind)).unwrap_or_else(|| panic!("{said}")))
            }
        }
    }
}

/// Bounds near an anchor, and how many iterations there are at most.
fn bounds(anchor: i64, ends: Ends) -> Vec<[i64; 2]> {
    let near = |by: i64| anchor.wrapping_add(by);
    let mut bounds = vec![
        [near(0), near(0)],
        [near(-2), near(-1)],
        [near(-1), near(0)],
        [near(-1), near(3)],
        [near(1), near(0)],
        [near(-9), near(20)],
        [near(-17), near(-1)],
        [near(1), near(33)],
    ];
    // Near the end of the type two bounds can be far apart.
    if ends == Soon {
        bounds.extend([
            [0, near(0)],
            [near(-3), i64::MAX],
            [i64::MIN, near(0)],
            [i64::MIN, i64::MAX],
            [-5, near(5)],
        ]);
        bounds.push([near(-1000), near(1000)]);
    } else {
        bounds.retain(|[from, to]| to <= from || to.checked_sub(*from).is_some_and(|n| n < 100));
    }
    bounds
}

/// Runs shapes at all anchors on all devices, and says how many cases there were, and how many of them were errors.
fn compare(shapes: &[Shape]) -> [usize; 2] {
    let (program, with_offset) = program(shapes);
    let mut worlds: Vec<(&str, World)> = Vec::new();
    for (name, device) in
        [("interpreted", interpreter()), ("1", cpu(1)), ("2", cpu(2)), ("5 threads", cpu(5))]
    {
        worlds.push((name, World::new(&program, &device)));
    }
    let anchors = [0, 1 << 31, 1 << 32, 1 << 50, 1 << 59, 1 << 60, 1 << 62, i64::MIN, -1, -(1 << 62)];
    let (mut cases, mut errors) = (0, 0);
    for (which, (name, ends, _)) in shapes.iter().enumerate() {
        for anchor in anchors {
            for [from, to] in bounds(anchor, *ends) {
                let offsets = [0, 1, -1, anchor, anchor.wrapping_neg()];
                for s in offsets.into_iter().take(if with_offset[which] { 5 } else { 1 }) {
                    let given = [from, to, s];
                    let mut outcomes =
                        worlds.iter_mut().map(|(device, world)| (*device, world.run(which, given)));
                    let (_, expected) = outcomes.next().unwrap();
                    for (device, found) in outcomes {
                        assert!(
                            found == expected,
                            "{name}, {device}: {given:?}: {:?}, not {:?}",
                            found.as_ref().map(|_| "other numbers"),
                            expected.as_ref().map(|_| "the interpreter's")
                        );
                    }
                    cases += 1;
                    errors += usize::from(expected.is_err());
                }
            }
        }
    }
    [cases, errors]
}

#[test]
pub fn c59_indices_near_the_ends_of_their_type_are_errors_or_lawful() {
    assert!(SHAPES.len() >= 80);
    let (mut cases, mut errors) = (0, 0);
    // A launch looks at all statements of its program, and a compiler takes longer for one long text than for several short ones;
    // on a GPU it is the other way round.
    for shapes in SHAPES.chunks(if on_cuda() { SHAPES.len() } else { 10 }) {
        let [tried, failed] = compare(shapes);
        cases += tried;
        errors += failed;
    }
    // Both ends of the contract were tried.
    assert!(errors > 1000 && cases - errors > 1000, "{errors} errors in {cases} cases");
}

/// Temporaries whose extents follow from the bounds.
#[test]
pub fn c59_temporaries_with_extents_near_the_ends_of_their_type_are_errors_or_lawful() {
    for shape in 0..4 {
        let mut b = Builder::new("temporaries");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let [from, to] = ["from", "to"].map(|name| b.scalar(name, Type::Index));
        let (zero, extent) = (b.literal(Literal::index(0)), b.binary(Binary::Sub, to, from));
        let shape = match shape {
            0 => vec![extent],
            1 => vec![extent, extent],
            2 => vec![zero, extent],
            _ => vec![extent, zero, extent],
        };
        let t = b.temp("t", Type::F64, &shape);
        let one = b.literal(Literal::from(1.0));
        b.fill(t, one);
        let all: Vec<(&str, ValueId, ValueId)> =
            ["i", "j", "k"].into_iter().zip(&shape).map(|(name, extent)| (name, zero, *extent)).collect();
        let index = b.begin_par(&all);
        let v = b.load(t, &index);
        b.update(Combine::Add, x, &[zero], v);
        b.end_par();
        let program = b.finish().unwrap();
        let inputs = |from: i64, to: i64| {
            [
                ebbtide_conformance::Input::Array(vec![3], 1),
                ebbtide_conformance::Input::Scalar(Literal::index(from)),
                ebbtide_conformance::Input::Scalar(Literal::index(to)),
            ]
        };
        for anchor in [0, 1 << 31, 1 << 32, 1 << 62, i64::MIN, -1] {
            for (from, to) in [(-1, 20), (-2, -1), (0, 0), (3, 0)] {
                let _ = check(&program, &inputs(anchor.wrapping_add(from), anchor.wrapping_add(to)));
            }
        }
        for (from, to) in [(0, 1 << 62), (i64::MIN, i64::MAX), (0, i64::MAX), (-5, i64::MAX), (i64::MIN, 0)] {
            let _ = check(&program, &inputs(from, to));
        }
    }
}

/// Arrays without elements can have enormous extents.
#[test]
pub fn c59_arrays_without_elements_are_like_any_other() {
    let mut b = Builder::new("empty");
    let z = b.array("z", Type::F64, 2, Access::Write);
    let u = b.array("u", Type::F64, 2, Access::Write);
    let r = b.array("r", Type::F64, 0, Access::Write);
    let which = b.scalar("which", Type::Index);
    let zero = b.literal(Literal::index(0));
    let (rows, columns) = (b.dim(z, 0), b.dim(z, 1));
    for case in 0..8 {
        let number = b.literal(Literal::index(case));
        let chosen = b.compare(Compare::Eq, which, number);
        b.begin_if(chosen);
        let one = b.literal(Literal::from(1.0));
        match case {
            0 => b.fill(z, one),
            1 => b.copy(u, z),
            2 => b.swap(u, z),
            3 | 4 => {
                let v = b.begin_par(&[("i", zero, rows), ("j", zero, columns)]);
                let value = b.load(z, &[v[0], v[1]]);
                match case {
                    3 => b.store(z, &[v[0], v[1]], one),
                    _ => b.update(Combine::Add, r, &[], value),
                }
                b.end_par();
            }
            5 => {
                let v = b.begin_par(&[("j", zero, columns)])[0];
                b.store(z, &[zero, v], one);
                b.end_par();
            }
            6 => {
                let v = b.begin_par(&[("i", zero, rows)])[0];
                b.store(z, &[v, zero], one);
                b.end_par();
            }
            _ => {
                let v = b.load(z, &[zero, columns]);
                b.store(r, &[], v);
            }
        }
        b.end_if();
    }
    let program = b.finish().unwrap();
    for shape in [[0, 0], [0, 1], [0, 1 << 31], [0, 1 << 62], [0, i64::MAX as usize], [1 << 40, 0], [3, 0]] {
        for case in 0..8 {
            let inputs = [
                ebbtide_conformance::Input::Array(shape.to_vec(), 1),
                ebbtide_conformance::Input::Array(shape.to_vec(), 2),
                ebbtide_conformance::Input::Array(vec![], 3),
                ebbtide_conformance::Input::Scalar(Literal::index(case)),
            ];
            let _ = check(&program, &inputs);
        }
    }
    for device in [interpreter(), cpu(1)] {
        for shape in [[0, 1 << 63], [0, usize::MAX], [usize::MAX, 0]] {
            assert!(AnyArray::zeros(&device, Type::Bool, &shape).is_err(), "{shape:?}");
        }
    }
}
