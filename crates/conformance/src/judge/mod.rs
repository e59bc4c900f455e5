//! The judge: derivatives that the engine computes, held against those of the oracle.
//!
//! A [`Question`] is a program with arguments, an output and inputs. [`Question::check`] asks the engine for its values,
//! gradient, `vjp`, `jvp` and `hvp` in the interpreter and compares all of them with one trace of the oracle:
//!
//! ```
//! use ebbtide_conformance::{Input, judge::Question};
//! use ebbtide_ir::{Access, Builder, Combine, Function, Literal, Type};
//!
//! let mut b = Builder::new("f");
//! let (x, loss) = (b.array("x", Type::F64, 1, Access::Read), b.array("loss", Type::F64, 0, Access::Write));
//! let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
//! let i = b.begin_par(&[("i", zero, n)])[0];
//! let v = b.load(x, &[i]);
//! let v = b.math(Function::Sin, &[v]);
//! b.update(Combine::Add, loss, &[], v);
//! b.end_par();
//! let program = b.finish()?;
//! let inputs = [Input::Array(vec![5], 1), Input::Array(vec![], 2)];
//! Question::new(&program, &inputs, "loss", &["x"]).check().unwrap();
//! # Ok::<(), ebbtide_ir::Error>(())
//! ```

mod answers;
mod compare;

use std::sync::Arc;

use ebbtide_ir::{Literal, Param, Program, Type};
use ebbtide_runtime::{Budget, Device, interpreter};

use crate::Input;
use crate::oracle::{self, Direction, Host, Lent, Stop, Trace, Yield};
pub use answers::{Answer, Gradient};
pub use compare::{Part, agree};

/// Derivatives that are asked for.
#[derive(Clone)]
pub struct Question<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its arguments.
    pub inputs: &'a [Input],
    /// The output: an array parameter.
    pub of: String,
    /// The inputs: float parameters.
    pub wrt: Vec<String>,
    /// What the host does where the program yields.
    pub host: Option<Arc<Host<'static>>>,
    /// The oracle gives up after this many statements.
    pub most_statements: u64,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Another number than the oracle's.
    Number(String),
    /// Other bits than those of a plain run, or of another run of the same derivative.
    Bits(String),
    /// The engine refuses a valid question, or stops.
    Refused(String),
    /// The oracle does not judge it.
    NotJudged(String),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Number(what) => write!(f, "wrong: {what}"),
            Wrong::Bits(what) => write!(f, "other bits: {what}"),
            Wrong::Refused(what) => write!(f, "refused: {what}"),
            Wrong::NotJudged(what) => write!(f, "not judged: {what}"),
        }
    }
}

impl<'a> Question<'a> {
    /// The derivatives of output `of` by the inputs `wrt`.
    pub fn new(program: &'a Program, inputs: &'a [Input], of: &str, wrt: &[&str]) -> Question<'a> {
        let wrt = wrt.iter().map(|name| name.to_string()).collect();
        Question { program, inputs, of: of.to_string(), wrt, host: None, most_statements: 100_000_000 }
    }

    /// The same question of a program that yields.
    pub fn with_host(mut self, host: impl Fn(&Yield, &mut Lent) + Send + Sync + 'static) -> Question<'a> {
        self.host = Some(Arc::new(host));
        self
    }

    /// The type of a parameter.
    pub fn ty(&self, name: &str) -> Type {
        let array = self.program.find_array(name).map(|a| self.program.array(a).ty);
        let scalar = self.program.find_scalar(name).map(|s| self.program.scalars[s.index()].ty);
        array.or(scalar).unwrap_or(Type::F64)
    }

    /// The argument of a parameter.
    pub fn input(&self, name: &str) -> Option<&'a Input> {
        let named = |param: &Param| match param {
            Param::Array(a) => self.program.array(*a).name == name,
            Param::Scalar(s) => self.program.scalars[s.index()].name == name,
        };
        self.program.params.iter().position(named).and_then(|k| self.inputs.get(k))
    }

    /// A direction of all inputs: numbers of few bits, so that they are the same in `f32`.
    pub fn direction(&self) -> Direction {
        let along = |name: &String| {
            let n = self.input(name).map_or(0, |input| input.shape().iter().product::<usize>());
            (name.clone(), few_bits(n, 17))
        };
        self.wrt.iter().map(along).collect()
    }

    /// A cotangent of the output, of few bits.
    pub fn seed(&self) -> Vec<f64> {
        few_bits(self.input(&self.of).map_or(0, |input| input.shape().iter().product::<usize>()), 5)
    }

    /// The oracle's answer.
    pub fn trace(&self) -> Result<Trace, Stop> {
        oracle::trace(
            self.program,
            self.inputs,
            &self.direction(),
            self.host.as_deref(),
            self.most_statements,
        )
    }

    /// How close to the oracle's an answer must be: a share of the largest component.
    pub fn tolerance(&self) -> f64 {
        let single = self.program.values.iter().any(|v| v.ty == Type::F32)
            || self.program.arrays.iter().any(|a| a.ty == Type::F32);
        // A chain of thousands of small terms loses more of them than four digits of `f32` show.
        let longest = self.inputs.iter().map(|input| input.shape().iter().product::<usize>()).max();
        match (single, longest.unwrap_or(0) > 1000) {
            (true, true) => 1e-3,
            (true, false) => 1e-4,
            (false, _) => 1e-10,
        }
    }

    /// Compares values and all derivatives in the interpreter with the oracle's. Where the output has rank 0, this is the
    /// gradient; the `vjp` and the `jvp` are asked of every output, the `hvp` where the gradient is.
    pub fn check(&self) -> Result<(), Wrong> {
        let trace = self.trace().map_err(|stop| Wrong::NotJudged(stop.to_string()))?;
        let device = interpreter();
        let ran = self.run(&device)?;
        same_bits(&ran, &|name| trace.values(name).unwrap_or_default(), "the oracle's value")?;
        let scalar = self.input(&self.of).is_some_and(|input| input.shape().is_empty());
        for seeded in [false, true].into_iter().skip(usize::from(!scalar)) {
            let gradient = self.gradient(&device, seeded)?;
            for budget in [Budget::StoreAll, Budget::Periodic { period: 2 }] {
                let answer = gradient.launch(self, budget)?;
                let expected = |name: &str| {
                    let found = ran.iter().find(|(n, _)| n == name);
                    found.map(|(_, elements)| elements.clone()).unwrap_or_default()
                };
                same_bits(&[(self.of.clone(), answer.value.clone())], &expected, "a plain run's value")?;
                self.judge_gradient(&trace, seeded, &answer.derivatives)?;
            }
        }
        self.judge_jvp(&trace, &self.jvp(&device)?)?;
        if scalar {
            self.judge_hvp(&trace, &self.hvp(&device, Budget::StoreAll)?)?;
        }
        Ok(())
    }

    /// Compares a gradient (or a `vjp`, with [`Question::seed`]) with the oracle's.
    pub fn judge_gradient(&self, trace: &Trace, seeded: bool, found: &[Vec<Literal>]) -> Result<(), Wrong> {
        let seed = if seeded { self.seed() } else { vec![1.0] };
        self.judge_reverse(trace, &seed, found, Part::Value, if seeded { "vjp" } else { "gradient" })
    }

    /// Compares an `hvp` along [`Question::direction`] with the oracle's.
    pub fn judge_hvp(&self, trace: &Trace, found: &[Vec<Literal>]) -> Result<(), Wrong> {
        self.judge_reverse(trace, &[1.0], found, Part::Tangent, "hvp")
    }

    /// Compares a `jvp` along [`Question::direction`] with the oracle's.
    pub fn judge_jvp(&self, trace: &Trace, found: &[Literal]) -> Result<(), Wrong> {
        let expected = trace.tangents(&self.of).unwrap_or_default();
        agree(found, &expected, Part::Value, self.tolerance())
            .map_err(|what| Wrong::Number(format!("jvp of `{}`: {what}", self.of)))
    }

    /// A `jvp` times the cotangent of the output is the `vjp` times the direction of the inputs.
    pub fn judge_pairing(
        &self,
        trace: &Trace,
        pushed: &[Literal],
        pulled: &[Vec<Literal>],
    ) -> Result<(), Wrong> {
        let (seed, along) = (self.seed(), self.direction());
        let forward: f64 = pushed.iter().zip(&seed).map(|(p, s)| p.to_f64() * s).sum();
        let sizes = trace.tangents(&self.of).unwrap_or_default();
        let size: f64 = sizes.iter().zip(&seed).map(|(t, s)| t.value_size * s.abs()).sum();
        let mut backward = 0.0;
        for (name, pulled) in self.wrt.iter().zip(pulled) {
            let moves = along.get(name).map(Vec::as_slice).unwrap_or_default();
            backward += pulled.iter().zip(moves).map(|(p, m)| p.to_f64() * m).sum::<f64>();
        }
        if (forward - backward).abs() > self.tolerance() * size {
            return Err(Wrong::Number(format!("the jvp gives {forward:e} where the vjp gives {backward:e}")));
        }
        Ok(())
    }

    fn judge_reverse(
        &self,
        trace: &Trace,
        seed: &[f64],
        found: &[Vec<Literal>],
        part: Part,
        what: &str,
    ) -> Result<(), Wrong> {
        let expected = trace.cotangents(&self.of, seed).unwrap_or_default();
        for (name, found) in self.wrt.iter().zip(found) {
            let expected = expected.get(name).map(Vec::as_slice).unwrap_or_default();
            agree(found, expected, part, self.tolerance())
                .map_err(|how| Wrong::Number(format!("{what} of `{}` by `{name}`: {how}", self.of)))?;
        }
        Ok(())
    }
}

/// Are these arrays what they should be, bit for bit?
pub fn same_bits(
    found: &[(String, Vec<Literal>)],
    expected: &dyn Fn(&str) -> Vec<Literal>,
    whose: &str,
) -> Result<(), Wrong> {
    for (name, found) in found {
        let expected = expected(name);
        if found.len() != expected.len() {
            let lengths = format!("{} elements of `{name}`, not {}", found.len(), expected.len());
            return Err(Wrong::Bits(lengths));
        }
        if let Some(k) = (0..found.len()).find(|k| found[*k] != expected[*k]) {
            let what = format!("`{name}`, element {k}: {}, {whose} is {}", found[k], expected[k]);
            return Err(Wrong::Bits(what));
        }
    }
    Ok(())
}

/// Numbers of few bits and both signs, none of them zero.
fn few_bits(n: usize, salt: u64) -> Vec<f64> {
    let number = |k: usize| {
        let x = (k as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
        (2.0 * x as f64 - 31.0) / 32.0
    };
    (0..n).map(number).collect()
}

/// Holds all derivatives of a program, in the interpreter, against the oracle's: for tests of single programs.
///
/// # Panics
/// With what is wrong and the program's text.
pub fn check_gradient(program: &Program, inputs: &[Input], of: &str, wrt: &[&str]) {
    if let Err(wrong) = Question::new(program, inputs, of, wrt).check() {
        panic!("{wrong}\n{program}");
    }
}

/// The device that a question without another one is asked on.
pub fn reference() -> Device {
    interpreter()
}
