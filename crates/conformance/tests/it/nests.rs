//! Gradients of nests that are deeper than those of which every loop is swept, or run forward again: right, and with the same bits
//! under every budget.

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_codegen::{Target, Threads, c_unit};
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{Block, Literal, Program, Type, parse, verify_source};
use ebbtide_runtime::{Budget, Device, Error, interpreter};

use crate::devices::cpu;

/// How long the loops of a nest are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    Arguments,
    /// By the variable of the loop around them.
    Triangles,
    /// By the variable of the outermost loop.
    OfTheFirst,
    Data,
    /// `while`, on a counter.
    While,
    /// `for` with `break`, every other loop.
    Broken,
    /// Each of these, in turn.
    Mixed,
}

const LENGTHS: [Lengths; 7] = [
    Lengths::Arguments,
    Lengths::Triangles,
    Lengths::OfTheFirst,
    Lengths::Data,
    Lengths::While,
    Lengths::Broken,
    Lengths::Mixed,
];

/// Where a nest stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    InTheProgram,
    InIterations,
    /// There, and its loops touch no array.
    OnLocals,
}

/// What stands before loop `k`, its first line, and what ends its body.
fn lines(k: usize, lengths: Lengths) -> [String; 3] {
    let no = String::new;
    match lengths {
        Lengths::Arguments => [no(), format!("for k{k} in 0..n {{\n"), no()],
        _ if k == 0 => [no(), format!("for k{k} in 0..n {{\n"), no()],
        Lengths::Triangles => [no(), format!("for k{k} in 0..k{} + 1 {{\n", k - 1), no()],
        Lengths::OfTheFirst => [no(), format!("for k{k} in k0..2 {{\n"), no()],
        Lengths::Data => [no(), format!("for k{k} in 0..(c[{k}] as usize) {{\n"), no()],
        Lengths::While => {
            [format!("let mut m{k} = 0;\n"), format!("while m{k} < n {{\n"), format!("m{k} = m{k} + 1;\n")]
        }
        Lengths::Broken if k.is_multiple_of(2) => [no(), format!("for k{k} in 0..n {{\n"), no()],
        Lengths::Broken => {
            [no(), format!("for k{k} in 0..9 {{\n"), format!("if k{k} >= n - 1 {{ break; }}\n")]
        }
        Lengths::Mixed => {
            let all = [Lengths::Arguments, Lengths::Data, Lengths::OfTheFirst, Lengths::While];
            lines(k, all[k % 4])
        }
    }
}

/// A nest of so many loops, each of which does something before the loop in it, and something behind.
fn nest(depth: usize, lengths: Lengths, stands: Stands) -> Program {
    let step = |name: &str, factor: usize| match stands {
        Stands::InTheProgram => format!(
            "for i{name} in par(0..x.len()) {{\nx[i{name}] = x[i{name}] * (1.0 - 0.0{factor} * x[i{name}] * w[i{name}]);\n}}\n"
        ),
        Stands::InIterations => format!("y = y * (1.0 - 0.0{factor} * y * w[i]);\n"),
        Stands::OnLocals => format!("y = y * (1.0 - 0.0{factor} * y * a);\n"),
    };
    let (mut open, mut close) = (String::new(), String::new());
    for k in 0..depth {
        let [before, first, end] = lines(k, lengths);
        open += &(before + &first + &step(&format!("a{k}"), k % 3 + 1));
        close = step(&format!("b{k}"), k % 2 + 1) + &end + "}\n" + &close;
    }
    let body = match stands {
        Stands::InTheProgram => open + &close,
        Stands::InIterations | Stands::OnLocals => format!(
            "for i in par(0..x.len()) {{\nlet a = w[i];\nlet mut y = x[i];\n{open}{close}x[i] = y;\n}}\n"
        ),
    };
    let text = format!(
        "program nest(x: &mut Array1<f64>, w: &Array1<f64>, c: &Array1<i32>, loss: &mut Array0<f64>, n: usize) {{\n{body}\
         for i in par(0..x.len()) {{\nloss[[]] += x[i] * x[i];\n}}\n}}\n"
    );
    let program = parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    verify_source(&program).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn inputs(depth: usize, elements: usize) -> [Input; 5] {
    let counts: Vec<Literal> = (0..depth).map(|k| Literal::from((k % 2 + 1) as i32)).collect();
    [
        Input::Array(vec![elements], 1),
        Input::Array(vec![elements], 2),
        Input::Elements(vec![depth], counts),
        Input::Elements(vec![], vec![Literal::of(Type::F64, 0.0)]),
        Input::Scalar(Literal::from(2usize)),
    ]
}

/// What the loops of an iteration do, but count.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Two inner iterations, which is few.
    Few,
    /// Each loop stands in an arm of a branch, or does not.
    Branch,
    /// Sums of squares of sums.
    Sum,
    /// Another nest follows each loop.
    GoOn,
    /// They read and write an array.
    WriteInPlace,
    /// Nothing but adding products.
    Multiply,
}

const DOES: [Does; 6] = [Does::Few, Does::Branch, Does::Sum, Does::GoOn, Does::WriteInPlace, Does::Multiply];

/// A nest of so many loops in iterations.
fn nest_that(does: Does, depth: usize) -> Program {
    let (mut open, mut close) = (String::new(), String::new());
    for k in 0..depth {
        let counted = |to: &str| format!("for k{k} in 0..{to} {{\n");
        let outer = if k == 0 { "y".to_string() } else { format!("s{}", k - 1) };
        let [first, end, behind] = match does {
            Does::Few => [counted("2"), "y = y * (1.0 - 0.02 * y * a);\n".to_string(), String::new()],
            Does::Branch => [
                counted("n") + "if y > 0.3 {\ny = y * (1.0 - 0.05 * y);\n",
                "} else {\ny = y + 0.2 * y * a;\n}\n".to_string(),
                String::new(),
            ],
            Does::Sum => [
                format!("let mut s{k} = 0.0;\n") + &counted("n"),
                String::new(),
                format!("{outer} = {outer} + 0.01 * s{k} * s{k};\n"),
            ],
            Does::GoOn => [
                counted("n"),
                String::new(),
                format!(
                    "for j{k} in 0..n {{\nfor l{k} in 0..2 {{\ny = y * (1.0 - 0.01 * y * a);\n}}\ny = y + 0.01 * a;\n}}\n"
                ),
            ],
            Does::WriteInPlace => [
                counted("2") + "x[i] = x[i] * (1.0 - 0.02 * y * x[i]);\n",
                "y = y + 0.02 * x[i] * y;\n".to_string(),
                String::new(),
            ],
            Does::Multiply => [counted("n"), String::new(), String::new()],
        };
        open += &first;
        close = end + "}\n" + &behind + &close;
    }
    let innermost = match does {
        Does::Sum => format!("s{0} = s{0} + y * a;\n", depth - 1),
        Does::Multiply => "y = y + 0.01 * x[i] * w[i];\n".to_string(),
        _ => "y = y * (1.0 - 0.03 * y * a);\n".to_string(),
    };
    let text = format!(
        "program nest(x: &mut Array1<f64>, w: &Array1<f64>, c: &Array1<i32>, loss: &mut Array0<f64>, n: usize) {{\n\
         for i in par(0..x.len()) {{\nlet a = w[i];\nlet mut y = x[i];\n{open}{innermost}{close}x[i] = x[i] + y;\n}}\n\
         for i in par(0..x.len()) {{\nloss[[]] += x[i] * x[i];\n}}\n}}\n"
    );
    let program = parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    verify_source(&program).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// The gradient is the oracle's, and the same under every budget, the least among them.
fn check(depth: usize, lengths: Lengths, stands: Stands, devices: &[Device]) {
    let what = format!("{depth} loops, {lengths:?}, {stands:?}");
    check_program(&nest(depth, lengths, stands), depth, &what, devices);
}

fn check_program(program: &Program, depth: usize, what: &str, devices: &[Device]) {
    let inputs = inputs(depth, 3);
    let question = Question::new(program, &inputs, "loss", &["x", "w"]);
    let trace = question.trace().unwrap_or_else(|why| panic!("{what}: {why:?}"));
    let mut expected = None;
    for device in devices {
        let gradient = question.gradient(device, false).unwrap_or_else(|why| panic!("{what}: {why}"));
        let mut budgets = vec![Budget::StoreAll, Budget::Auto, Budget::Periodic { period: 2 }];
        budgets.extend([(1, 1), (2, 1), (2, 3)].map(|(slots, block)| Budget::Revolve { slots, block }));
        // What is too little says what is enough.
        if let Err(Error::BudgetTooSmall { minimum, .. }) = gradient.try_launch(&question, Budget::Bytes(1)) {
            budgets.extend([minimum, 2 * minimum].map(Budget::Bytes));
        }
        for budget in budgets {
            let found =
                gradient.launch(&question, budget).unwrap_or_else(|why| panic!("{what}, {budget:?}: {why}"));
            question
                .judge_gradient(&trace, false, &found.derivatives)
                .unwrap_or_else(|why| panic!("{what}: {why}"));
            let first = expected.get_or_insert_with(|| found.derivatives.clone());
            assert_eq!(*first, found.derivatives, "{what}, {budget:?}");
        }
    }
}

#[test]
fn gradients_of_deep_nests_are_right_under_every_budget() {
    for lengths in LENGTHS {
        for depth in [5, 6, 8] {
            check(depth, lengths, Stands::InTheProgram, &[interpreter()]);
        }
    }
    check(6, Lengths::Arguments, Stands::InTheProgram, &[interpreter(), cpu(2)]);
}

#[test]
fn gradients_of_deep_nests_in_iterations_are_right() {
    for lengths in LENGTHS {
        for depth in [5, 6, 8] {
            check(depth, lengths, Stands::InIterations, &[interpreter()]);
            check(depth, lengths, Stands::OnLocals, &[interpreter()]);
        }
    }
    check(6, Lengths::Triangles, Stands::InIterations, &[interpreter(), cpu(2)]);
    check(6, Lengths::Mixed, Stands::OnLocals, &[interpreter(), cpu(2)]);
}

#[test]
fn gradients_of_deep_nests_are_right_whatever_their_loops_do() {
    for does in DOES {
        for depth in [5, 6, 7] {
            check_program(
                &nest_that(does, depth),
                depth,
                &format!("{depth} loops, {does:?}"),
                &[interpreter()],
            );
        }
    }
    check_program(&nest_that(Does::GoOn, 6), 6, "6 loops on a CPU", &[interpreter(), cpu(2)]);
}

/// A function of a nest ends with the fault that an iteration meets in it, and the iteration ends.
#[test]
fn a_fault_in_a_deep_nest_is_that_of_the_program() {
    let (mut open, mut close) = (String::new(), String::new());
    for k in 0..6 {
        open += &format!("for k{k} in 0..n {{\n");
        close += "}\n";
    }
    let text = format!(
        "program nest(x: &mut Array1<f64>, w: &Array1<f64>, c: &Array1<i32>, loss: &mut Array0<f64>, n: usize) {{\n\
         for i in par(0..x.len()) {{\nlet mut y = x[i];\n{open}y = y * w[i + k0 + k5] * 0.5;\n{close}x[i] = y;\n}}\n\
         for i in par(0..x.len()) {{\nloss[[]] += x[i] * x[i];\n}}\n}}\n"
    );
    let program = verify_source(&parse(&text).unwrap()).unwrap();
    let inputs = inputs(6, 9);
    let question = Question::new(&program, &inputs, "loss", &["x", "w"]);
    let faults = [interpreter(), cpu(1), cpu(2)].map(|device| {
        let gradient = question.gradient(&device, false).unwrap();
        gradient.try_launch(&question, Budget::StoreAll).err().map(|why| why.to_string())
    });
    assert!(faults[0].as_ref().is_some_and(|why| why.contains("out of bounds")), "{faults:?}");
    assert!(faults.iter().all(|why| *why == faults[0]), "{faults:?}");
}

/// What is printed for a nest of an iteration, in bytes of C, is linear in its depth, but for the lists of what functions are given,
/// which are short. Twelve loops more cost twice what six more cost; by the square of the depth it would be four times. Where every
/// loop writes an array in place it is more: the place of each old element on the tape is a sum over all loops around it.
#[test]
fn the_text_of_a_gradient_of_a_deep_nest_is_linear_in_its_depth() {
    for does in DOES.into_iter().filter(|does| !matches!(does, Does::WriteInPlace)) {
        let [first, second, third] = [6, 12, 24].map(|depth| bytes_of_c(&nest_that(does, depth)));
        let (more, before) = (third - second, second - first);
        assert!(2 * more <= 5 * before, "{does:?}: {first}, {second}, {third}");
    }
}

fn bytes_of_c(program: &Program) -> usize {
    let request = Request { of: "loss".to_string(), wrt: vec!["x".to_string()], ..Request::default() };
    let gradient = gradient(program, &request, Inner::Recorded).unwrap();
    let simple = simplify_segments(&gradient.program, &[&gradient.program.body]).unwrap();
    let blocks: Vec<&Block> = simple.segments.iter().collect();
    let target = Target { vector_bytes: 32, threads: Threads::Several };
    c_unit(&simple.program, &simple.facts, &blocks, target).unwrap().source.len()
}

/// The tape of the loops that are recorded is in the plan: the least budget is kept to, and is not much more than what is used.
#[test]
fn the_least_budget_of_a_deep_nest_is_what_it_takes() {
    let device = interpreter();
    for (depth, lengths) in [(6, Lengths::Arguments), (7, Lengths::Arguments), (6, Lengths::Mixed)] {
        let (program, inputs) = (nest(depth, lengths, Stands::InTheProgram), inputs(depth, 2_000));
        let question = Question::new(&program, &inputs, "loss", &["x", "w"]);
        let gradient = question.gradient(&device, false).unwrap();
        let Err(Error::BudgetTooSmall { minimum, .. }) = gradient.try_launch(&question, Budget::Bytes(1))
        else {
            panic!("one byte is enough for {depth} loops, {lengths:?}")
        };
        let expected = gradient.launch(&question, Budget::StoreAll).unwrap();
        gradient.compiled().release();
        let meter = device.meter();
        meter.reset_peak();
        let before = meter.peak();
        let found = gradient.launch(&question, Budget::Bytes(minimum)).unwrap();
        assert_eq!(found.derivatives, expected.derivatives);
        // The arguments and results are the caller's.
        let callers = 4 * 8 * 2_000;
        let used = (meter.peak() - before).saturating_sub(callers);
        assert!(used <= minimum, "{used} of {minimum} bytes: {depth} loops, {lengths:?}");
        assert!(used > minimum / 2, "{used} of {minimum} bytes: {depth} loops, {lengths:?}");
    }
}
