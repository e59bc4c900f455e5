//! What the language does not have, and what to write instead.

use syn::{Expr, ExprMethodCall, Item, Macro};

use super::Translator;

impl Translator<'_> {
    /// Refuses an expression that is not part of the language.
    pub(super) fn refuse(&mut self, expr: &Expr) {
        let message = match expr {
            Expr::Closure(_) => {
                "a closure stands in `sum(0..n, |j| …)`, `max` and `min` alone: write a `#[func]`"
            }
            Expr::Try(_) => {
                "there is no `?`: a program cannot fail halfway; what goes wrong is the launch's `Err`"
            }
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => {
                "a `break`, `continue` or `return` is a statement of its own, in a block or in a branch of an `if`"
            }
            Expr::Reference(_) => "there are no references: write the name of the array, without `&`",
            Expr::RawAddr(_) => "there are no pointers",
            Expr::Array(_) => {
                "an array of no elements has no use here: `let mut t = Array1::<f64>::zeros([n]);` makes one"
            }
            Expr::Tuple(_) => "a tuple has two to six values",
            Expr::Range(_) => "a range stands in the head of a loop alone: `for i in 0..n`",
            Expr::Let(_) => "there is no `if let`: a condition is a `bool`",
            Expr::Async(_) | Expr::Await(_) => "a program does not wait: remove this",
            Expr::Unsafe(_) => "a program is safe: remove `unsafe`",
            Expr::Const(_) => "write a `const` item instead",
            Expr::Assign(_) => "an assignment is a statement: write it on a line of its own",
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => {
                "a loop has no value: set a `let mut` variable in its body"
            }
            Expr::Block(_) => "a labelled block has no value: assign to a `let mut` variable in it",
            Expr::Macro(expr) => return self.refuse_macro(&expr.mac),
            Expr::Infer(_) => "a value is missing here",
            _ => "this is not part of the language of programs",
        };
        self.errors.at(expr, message);
    }

    pub(super) fn refuse_macro(&mut self, mac: &Macro) {
        let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let message = match name.as_str() {
            "assert_eq" | "assert_ne" | "debug_assert" | "debug_assert_eq" | "debug_assert_ne" => {
                "write `assert!(a == b, \"what is wrong\")`"
            }
            "assert" => "an assertion is a statement: `assert!(x > 0.0, \"what is wrong\");`",
            "println" | "eprintln" => "printing is a statement: `println!(\"x = {}\", x);`",
            "print" | "eprint" | "dbg" | "format" | "write" | "writeln" => {
                "write `println!(\"x = {}\", x);`: the interpreter prints it, and every device under `EBBTIDE_CHECK=1`"
            }
            "panic" | "todo" | "unimplemented" | "unreachable" => {
                "a program cannot panic: write `assert!(x > 0.0, \"what is wrong\")`, or set a flag of a `#[checkpoint(.., yield_on = flag)]` and \
                 let the host decide"
            }
            "vec" => "there are no vectors: write `let mut t = Array1::<f64>::zeros([n]);`",
            _ => "there are no macros in programs: write what it stands for, or a `#[func]`",
        };
        self.errors.at(mac, message);
    }

    pub(super) fn refuse_item(&mut self, item: &Item) {
        let message = match item {
            Item::Fn(_) => {
                "write this function outside the program, with `#[func]` or `#[program]` before it"
            }
            Item::Macro(item) => return self.refuse_macro(&item.mac),
            Item::Static(_) => "there are no statics: write a `const`, or pass an array",
            _ => "only `const` and `use` items stand inside a program: write this outside",
        };
        self.errors.at(item, message);
    }

    /// Refuses what a `for` runs over, if it is not a range.
    pub(super) fn refuse_iterator(&mut self, expr: &Expr) {
        let message = "a loop runs over a range: `for i in 0..n`, `(0..n).rev()`, `(0..n).step_by(2)`, `par(0..n)` or \
                       `par((0..n).step_by(2))`; elements are `u[i]`";
        self.errors.at(expr, message);
    }

    pub(super) fn refuse_method(&mut self, call: &ExprMethodCall) {
        let name = call.method.to_string();
        match advice(&name) {
            Some(advice) => self.errors.at(&call.method, advice),
            None => self.errors.at(
                &call.method,
                format!(
                    "`{name}` is not a method of the language: those of numbers are {}; those of arrays `len` and `dim`; for \
                     anything else write a `#[func]`",
                    super::calls::method_names()
                ),
            ),
        }
    }
}

/// What to write instead of a method of Rust's.
pub(super) fn advice(name: &str) -> Option<&'static str> {
    Some(match name {
        "iter" | "iter_mut" | "into_iter" | "map" | "zip" | "enumerate" | "fold" | "sum" | "product"
        | "windows" | "chunks" | "filter" | "for_each" | "collect" => {
            "there are no iterators: write `for i in par(0..u.len()) { … u[i] … }`; a sum is `sum(u)`, or `sum(0..n, |j| u[j])`"
        }
        "fill" => "write `fill(u, value)`",
        "swap" => "write `swap(a, b)`",
        "copy_from" | "copy_from_slice" | "clone_from" | "assign" => "write `copy(from, to)`",
        "clone" | "to_owned" | "try_clone" => {
            "values are copied by `let`; an array by `copy(from, to)` into a temporary"
        }
        "shape" | "nrows" | "ncols" => "write `u.dim(0)`, `u.dim(1)`",
        "get" | "get_mut" | "value" => {
            "write the element: `u[i]`, `u[[i, j]]`, `loss[[]]`, also to assign to it"
        }
        "to_vec" | "as_slice" | "as_mut_slice" | "to_ndarray" => {
            "this is for the host: programs read and write elements, `u[i]`, and pass arrays on by their names"
        }
        "is_empty" => "write `u.len() == 0`",
        "mean" | "average" => "write `sum(u) / u.len() as f64`",
        "length" => {
            "write `v.norm()` for a vector; `u.len()` for all elements of an array, `u.dim(0)` for its first extent"
        }
        "size" => "write `u.len()` for all elements, `u.dim(0)` for the first extent",
        "magnitude" | "mag" => "write `v.norm()`",
        "length_squared" | "magnitude_squared" | "norm_sqr" => "write `v.norm_squared()`",
        "normalized" | "unit" => "write `v.normalize()`",
        "inv" | "invert" | "try_inverse" => "write `m.inverse()`",
        "det" => "write `m.determinant()`",
        "t" | "transposed" => "write `m.transpose()`",
        "outer_product" => "write `a.outer(b)`",
        "row" => "write `m[i]` for a matrix; a row of an array is passed to a program as `x[[t, ..]]`",
        "slab" | "slice" | "slice_mut" | "index_axis" | "view" | "view_mut" => {
            "a part of an array is an argument: `step(x[[t, ..]])` for a row or slab, `step(x[a..b])` for a range"
        }
        "reshape" | "flatten" | "ravel" => {
            "an array keeps its shape: write the index, `u[i * m + j]`, or declare the parameter with that rank"
        }
        "distance" => "write `(a - b).norm()`",
        "lerp" | "mix" => "write `a + t * (b - a)`",
        "fract" => "write `x - x.trunc()`",
        "copysign" => "write `select(y < 0.0, -x.abs(), x.abs())`",
        "is_finite" => "write `x - x == 0.0`: it is false for infinities and NaN",
        "astype" | "cast" | "to" => "write `x as f64`",
        "item" => "write the element: `loss[[]]`",
        "push" | "append" | "resize" => {
            "arrays do not grow in a launch: declare one that is large enough, and count"
        }
        "saturating_sub" => "a `usize` may be negative in between: write `(i - k).max(0)`",
        "col" | "column" => "write `m.transpose()[j]`",
        "x" => "components have no parentheses: write `v.x`",
        "y" => "components have no parentheses: write `v.y`",
        "z" => "components have no parentheses: write `v.z`",
        "w" => "components have no parentheses: write `v.w`",
        "pow" => "write `x.powi(n)` for floats; multiply integers",
        "recip" => "write `1.0 / x`",
        "to_radians" => "write `x * (std::f64::consts::PI / 180.0)`",
        "to_degrees" => "write `x * (180.0 / std::f64::consts::PI)`",
        "abs_diff" => "write `(a - b).abs()`",
        "sin_cos" => "write `x.sin()` and `x.cos()`",
        "log" => "write `x.ln() / b.ln()`, `x.log2()` or `x.log10()`",
        "is_nan" => "write `x != x`",
        "wrapping_add" | "wrapping_sub" | "wrapping_mul" => {
            "integers wrap by themselves: write `a + b`, `a - b`, `a * b`"
        }
        "into" | "try_into" | "from" => "write `x as f64`",
        "unwrap" | "expect" => "there is nothing to unwrap: values are numbers and `bool`s",
        _ => return None,
    })
}
