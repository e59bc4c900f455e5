//! How many threads a block of a segment may have. Input: a segment, which of its loops run inside their parallel loops, and which
//! parallel loops have chains of additions that teams share; output: the width.

use ebbtide_ir::{Block, Loop, Op, Par, Program, Stmt, ValueId, walk};

use crate::analysis::names::{Names, taped};
use crate::analysis::register_pressure::words;
use crate::kernel::machine::Width;

/// With more words of floats than these, the 64 registers of a thread in a full block are too few: what does not fit goes
/// through memory again and again.
const FEW_WORDS: usize = 32;

/// The same of the words that a thread holds of the program around parallel loops: less of them is used at a time.
const FEW_AROUND: usize = 128;

/// The words of an open tape: two addresses, where it is, and what waits to be written.
const WORDS_OF_TAPE: usize = 8;

/// The words that a thread holds of the program around parallel loops: where arrays are, values, and how far tapes are.
fn words_around(program: &Program, block: &Block) -> usize {
    let names = Names::of(program, block);
    let word = |v: &ValueId| match program.op(*v) {
        Op::Literal(_) => 0,
        _ => program.ty(*v).size().div_ceil(4),
    };
    let values: usize = names.defined.iter().chain(&names.used).map(word).sum();
    values + 2 * names.arrays.len() + WORDS_OF_TAPE * taped(block).len()
}

/// How many threads a block of a segment may have. A thread holds the sums of 32 elements of a product.
pub(crate) fn block_width(
    program: &Program,
    block: &Block,
    runs_inside: &dyn Fn(&Loop) -> bool,
    has_chains: &dyn Fn(&Par) -> bool,
) -> Width {
    let (mut inside, mut outside, mut many, mut products) = (false, false, false, false);
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for stmt in block {
            match stmt {
                Stmt::Loop(l) if runs_inside(l) => inside = true,
                Stmt::Library(_) => products = true,
                Stmt::Par(par) => {
                    many |= words(program, &par.body) > FEW_WORDS || has_sums(&par.body) || has_chains(par)
                }
                other => {
                    outside |= matches!(other, Stmt::Loop(_));
                    work.extend(other.blocks());
                }
            }
        }
    }
    let much = outside && words_around(program, block) > FEW_AROUND;
    match (inside, outside) {
        _ if products => Width::Half,
        (true, false) => Width::Apart,
        _ if many || much => Width::Half,
        _ => Width::Full,
    }
}

/// Are there sums inside iterations? Several of their terms are on their way at a time, each with numbers of its own.
fn has_sums(body: &Block) -> bool {
    let mut found = false;
    walk(body, &mut |stmt| found |= matches!(stmt, Stmt::Loop(l) if !l.sums.is_empty()));
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{Access, Binary, Builder, Literal, Type};

    use super::*;

    /// A time loop around a parallel one whose iterations hold so many numbers at a time.
    fn sums(numbers: usize) -> Program {
        let mut b = Builder::new("sums");
        let u = b.array("u", Type::F64, 1, Access::Write);
        let (steps, n) = (b.scalar("steps", Type::Index), b.dim(u, 0));
        let zero = b.literal(Literal::index(0));
        b.begin_for("t", zero, steps);
        let i = b.begin_par(&[("i", zero, n)])[0];
        let x: Vec<_> = (0..numbers).map(|_| b.load(u, &[i])).collect();
        let sum = x.into_iter().reduce(|a, x| b.binary(Binary::Add, a, x)).unwrap();
        b.store(u, &[i], sum);
        b.end_par();
        b.end_loop(None);
        b.finish().unwrap()
    }

    #[test]
    fn sums_inside_iterations_have_the_registers_of_narrow_blocks() {
        let text = "program p(a: &Array2<f32>, b: &mut Array1<f32>) {
    for i in par(0..b.len()) {
        let mut total = 0.0f32;
        #[sum(total)]
        for j in 0..a.dim(1) {
            total = total + a[[i, j]];
        }
        b[i] = total;
    }
}
";
        let program = ebbtide_ir::parse(text).unwrap();
        assert_eq!(block_width(&program, &program.body, &|_| false, &|_| false), Width::Half);
    }

    #[test]
    fn so_have_loops_with_much_around_them() {
        let text = |pushed: usize| {
            let each = |text: &dyn Fn(usize) -> String| (0..pushed).map(text).collect::<String>();
            format!(
                "driven program p(n: usize) {{\n{}    for t in 0..n {{\n{}    }}\n}}\n",
                each(&|k| format!("    let mut a{k} = Array1::<f64>::zeros([n]);\n")),
                each(&|k| format!("        push(a{k});\n")),
            )
        };
        let width = |pushed| {
            let program = ebbtide_ir::parse(&text(pushed)).unwrap();
            block_width(&program, &program.body, &|_| false, &|_| false)
        };
        assert_eq!((width(3), width(20)), (Width::Full, Width::Half));
    }

    #[test]
    fn products_have_the_registers_of_narrow_blocks() {
        let text =
            "program p(a: &Array2<f32>, b: &Array2<f32>, c: &mut Array2<f32>) {\n    matmul(a, b, c);\n}\n";
        let program = ebbtide_ir::parse(text).unwrap();
        assert_eq!(block_width(&program, &program.body, &|_| false, &|_| false), Width::Half);
    }

    #[test]
    fn blocks_are_narrow_where_numbers_need_registers_or_threads_hardly_meet() {
        let width = |numbers, inside| {
            let program = sums(numbers);
            block_width(&program, &program.body, &|_| inside, &|_| false)
        };
        assert_eq!(width(2, false), Width::Full);
        assert_eq!(width(40, false), Width::Half);
        assert_eq!(width(2, true), Width::Apart);
    }
}
