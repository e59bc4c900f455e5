//! Programs that the oracle must understand: library operations, calls, data-dependent loops, hosts that write.

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::{Question, Wrong, check_gradient};
use ebbtide_ir::*;

/// A builder with a zero and a loss that floats are added to.
struct Maker {
    b: Builder,
    zero: Option<ValueId>,
}

impl Maker {
    fn new(name: &str) -> Maker {
        Maker { b: Builder::new(name), zero: None }
    }

    fn floats(&mut self, name: &str, rank: usize) -> ArrayId {
        self.b.array(name, Type::F64, rank, Access::Write)
    }

    fn zero(&mut self) -> ValueId {
        *self.zero.get_or_insert_with(|| self.b.literal(Literal::index(0)))
    }

    /// Adds the sines of all elements to the loss.
    fn add_sines(&mut self, array: ArrayId, loss: ArrayId) {
        let zero = self.zero();
        let rank = self.b.program().array(array).rank;
        let names = ["i", "j"];
        let ranges: Vec<_> = (0..rank).map(|d| (names[d], zero, self.b.dim(array, d))).collect();
        let index = self.b.begin_par(&ranges);
        let v = self.b.load(array, &index);
        let v = self.b.math(Function::Sin, &[v]);
        self.b.update(Combine::Add, loss, &[], v);
        self.b.end_par();
    }
}

fn matrix(n: usize, m: usize, seed: u64) -> Input {
    Input::Array(vec![n, m], seed)
}

#[test]
fn products_and_running_sums() {
    let mut m = Maker::new("library");
    let [a, b, c] = ["a", "b", "c"].map(|name| m.floats(name, 2));
    let [x, y] = ["x", "y"].map(|name| m.floats(name, 1));
    let loss = m.floats("loss", 0);
    let (zero, three) = (m.zero(), m.b.literal(Literal::index(3)));
    m.b.begin_for("t", zero, three);
    m.b.matmul(a, b, c);
    m.b.copy(c, a);
    m.b.scan(x, y);
    m.b.swap(x, y);
    m.b.end_loop(None);
    m.add_sines(a, loss);
    m.add_sines(x, loss);
    let program = m.b.finish().unwrap();
    let inputs = [
        matrix(3, 3, 1),
        matrix(3, 3, 2),
        matrix(3, 3, 3),
        Input::Array(vec![7], 4),
        Input::Array(vec![7], 5),
        Input::Array(vec![], 6),
    ];
    for of in ["loss", "a", "x"] {
        check_gradient(&program, &inputs, of, &["a", "b", "x", "y"]);
    }
}

/// `while x < 2 { x *= 1 + 0.3 k; }` for each element of a list that `compact` makes.
#[test]
fn a_loop_whose_end_is_data() {
    let mut m = Maker::new("until");
    let (x, k) = (m.floats("x", 1), m.floats("k", 0));
    let flags = m.b.array("flags", Type::Bool, 1, Access::Read);
    let list = m.b.array("list", Type::I32, 1, Access::Write);
    let count = m.b.array("count", Type::I32, 0, Access::Write);
    let loss = m.floats("loss", 0);
    m.b.compact(flags, list, count);
    let zero = m.zero();
    let found = m.b.load(count, &[]);
    let found = m.b.cast(found, Type::Index);
    let c = m.b.begin_for("c", zero, found);
    let at = m.b.load(list, &[c]);
    let at = m.b.cast(at, Type::Index);
    m.b.begin_while();
    let now = m.b.load(x, &[at]);
    let two = m.b.literal(Literal::from(2.0));
    let more = m.b.compare(Compare::Lt, now, two);
    m.b.while_condition(more);
    let (rate, now) = (m.b.load(k, &[]), m.b.load(x, &[at]));
    let (third, one) = (m.b.literal(Literal::from(0.3)), m.b.literal(Literal::from(1.0)));
    let grown = m.b.fma(third, rate, one);
    let grown = m.b.binary(Binary::Mul, grown, now);
    m.b.store(x, &[at], grown);
    m.b.end_loop(None);
    m.b.end_loop(None);
    m.add_sines(x, loss);
    let program = m.b.finish().unwrap();
    let elements = |numbers: &[f64]| {
        Input::Elements(vec![numbers.len()], numbers.iter().map(|x| Literal::from(*x)).collect())
    };
    let inputs = [
        elements(&[0.5, 1.5, 0.9, 3.0]),
        Input::Elements(vec![], vec![Literal::from(1.1)]),
        Input::Elements(vec![4], [true, false, true, true].map(Literal::from).to_vec()),
        Input::Elements(vec![4], vec![Literal::from(0i32); 4]),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        Input::Elements(vec![], vec![Literal::from(0.0)]),
    ];
    check_gradient(&program, &inputs, "loss", &["x", "k"]);
    check_gradient(&program, &inputs, "x", &["x", "k"]);
}

/// `x = x (1.2 - 0.1 x / limit)`, and a host that raises the limit when it is passed.
fn growth() -> Program {
    let mut m = Maker::new("grow");
    let (x, limit) = (m.floats("x", 0), m.floats("limit", 0));
    let over = m.b.array("over", Type::I32, 0, Access::Write);
    let loss = m.floats("loss", 0);
    let steps = m.b.scalar("steps", Type::Index);
    let zero = m.zero();
    m.b.begin_for("t", zero, steps);
    let label = Label { family: "Stage".into(), variant: "Grow".into() };
    m.b.begin_region(label, Some(over), Undo::Everything);
    let (now, most) = (m.b.load(x, &[]), m.b.load(limit, &[]));
    let (rate, tenth) = (m.b.literal(Literal::from(1.2)), m.b.literal(Literal::from(-0.1)));
    let share = m.b.binary(Binary::Div, now, most);
    let rate = m.b.fma(tenth, share, rate);
    let next = m.b.binary(Binary::Mul, now, rate);
    let above = m.b.compare(Compare::Gt, next, most);
    m.b.begin_if(above);
    let one = m.b.literal(Literal::from(1i32));
    m.b.store(over, &[], one);
    m.b.end_if();
    m.b.store(x, &[], next);
    m.b.end_region();
    m.b.end_loop(None);
    let v = m.b.load(x, &[]);
    let v = m.b.binary(Binary::Mul, v, v);
    m.b.update(Combine::Add, loss, &[], v);
    m.b.finish().unwrap()
}

#[test]
fn what_the_host_writes_is_constant() {
    let program = growth();
    let number = |x: f64| Input::Elements(vec![], vec![Literal::from(x)]);
    let inputs = [
        number(1.0),
        number(2.0),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        number(0.0),
        Input::Scalar(Literal::index(20)),
    ];
    let question = Question::new(&program, &inputs, "loss", &["x", "limit"]).with_host(|at, lent| {
        assert_eq!((at.reason, at.label.variant.as_str()), (1, "Grow"));
        lent.insert("over".to_string(), vec![Literal::from(0i32)]);
        let limit = lent["limit"][0].to_f64();
        lent.insert("limit".to_string(), vec![Literal::from(2.0 * limit)]);
    });
    let trace = question.trace().unwrap();
    assert!(trace.yields >= 2, "{} yields", trace.yields);
    // What counted of the old limit ends with the first yield.
    let by_limit = trace.cotangents("loss", &[1.0]).unwrap()["limit"][0].value;
    assert!(by_limit != 0.0);
    question.check().unwrap_or_else(|wrong: Wrong| panic!("{wrong}"));
}

/// A yield that nobody answers is not judged: it is not the end of a program.
#[test]
fn a_yield_without_a_host_is_not_judged() {
    let program = growth();
    let number = |x: f64| Input::Elements(vec![], vec![Literal::from(x)]);
    let inputs = [
        number(1.0),
        number(2.0),
        Input::Elements(vec![], vec![Literal::from(0i32)]),
        number(0.0),
        Input::Scalar(Literal::index(20)),
    ];
    let question = Question::new(&program, &inputs, "loss", &["x"]);
    assert!(matches!(question.check(), Err(Wrong::NotJudged(_))));
}

#[test]
fn a_stationary_point_behind_a_maximum_has_its_second_derivative() {
    let mut m = Maker::new("stationary");
    let (x, loss) = (m.floats("x", 1), m.floats("loss", 0));
    let (zero, n) = (m.zero(), m.b.dim(x, 0));
    let i = m.b.begin_par(&[("i", zero, n)])[0];
    let v = m.b.load(x, &[i]);
    let (below, two) = (m.b.literal(Literal::from(-0.5)), m.b.literal(Literal::from(2i32)));
    let most = m.b.binary(Binary::Max, v, below);
    let square = m.b.math(Function::Powi, &[most, two]);
    let value = m.b.math(Function::Sin, &[square]);
    m.b.update(Combine::Add, loss, &[], value);
    m.b.end_par();
    let program = m.b.finish().unwrap();
    let at = |x: f64| [Input::Elements(vec![1], vec![Literal::from(x)]), Input::Array(vec![], 1)];
    check_gradient(&program, &at(0.25), "loss", &["x"]);
    check_gradient(&program, &at(0.0), "loss", &["x"]);
}

#[test]
fn an_exchange_that_never_runs_proves_nothing_about_shapes() {
    let mut m = Maker::new("exchange");
    let [a, d, sum] = ["a", "d", "sum"].map(|name| m.floats(name, 1));
    let loss = m.floats("loss", 0);
    let (zero, one, n) = (m.zero(), m.b.literal(Literal::index(1)), m.b.dim(a, 0));
    let index = m.b.begin_par(&[("i", zero, one), ("j", zero, n)]);
    let v = m.b.load(d, &[index[1]]);
    m.b.update(Combine::Add, sum, &[zero], v);
    m.b.end_par();
    m.b.begin_for("t", zero, zero);
    m.b.swap(d, a);
    m.b.end_loop(None);
    m.add_sines(sum, loss);
    let program = m.b.finish().unwrap();
    let inputs = [1, 2, 1].map(|n| Input::Array(vec![n], n as u64));
    let inputs: Vec<Input> = inputs.into_iter().chain([Input::Array(vec![], 4)]).collect();
    check_gradient(&program, &inputs, "loss", &["a", "d"]);
}

/// Lists that each step builds anew: what an element of them held comes back to the place that data chose then, although the data
/// and the counts that chose it have changed since.
#[test]
fn elements_of_integer_arrays_come_back_where_they_were() {
    let program = parse(
        "program lists(x: &mut Array1<f64>, members: &mut Array1<i32>, steps: usize, loss: &mut Array0<f64>) {
            let n = x.len();
            let mut filled = Array1::<i32>::zeros([3]);
            for t in 0..steps {
                fill(filled, 0i32);
                for i in 0..n {
                    let cell = (x[i] * 1.5) as usize;
                    let place = (2i32 * cell as i32 + filled[cell]) as usize;
                    members[place] = i as i32;
                    filled[cell] += 1i32;
                }
                for k in par(0..n) {
                    x[k] += 0.05 * members[k] as f64 * x[k] * x[k];
                }
            }
            for k_2 in par(0..n) {
                loss[[]] += x[k_2].sin();
            }
        }",
    )
    .unwrap();
    let x = [0.2, 0.5, 0.9, 1.1].map(Literal::from).to_vec();
    let inputs = [
        Input::Elements(vec![4], x),
        Input::Elements(vec![8], [2i32, 0, 1, 0, 3, 1, 2, 2].map(Literal::from).to_vec()),
        Input::Scalar(Literal::index(3)),
        Input::Array(vec![], 1),
    ];
    check_gradient(&program, &inputs, "loss", &["x"]);
}
