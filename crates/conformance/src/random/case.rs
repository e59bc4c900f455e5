//! One case: a sketch with sizes and arguments, and all that is asked of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ebbtide_autodiff::Optimisation;
use ebbtide_ir::{Access, Literal, Program, Type};
use ebbtide_runtime::{Budget, Device, Error};

use super::generate::Dice;
use super::lower::lower;
use super::sketch::{ArrayOf, Sizes, Sketch};
use crate::Input;
use crate::judge::{Answer, Gradient, Question, Wrong, same_bits};
use crate::oracle::{Host, Lent, Stop, Trace, Yield};

/// The bytes that a run may take: enough for every program that ends soon, and less than the machine has.
const MEMORY: u64 = 2 << 30;

/// The interpreter, with so much memory.
fn device() -> Device {
    let device = ebbtide_runtime::interpreter();
    device.meter().set_limit(MEMORY);
    device
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All derivatives are right.
    Right,
    /// The builder refuses the program.
    NotBuilt(String),
    /// Its run meets a fault, in the oracle and in the engine.
    Faulted,
    /// The oracle does not judge it, or some number is not finite.
    NotJudged(String),
    /// The engine refuses to differentiate the program, and says why.
    Refused(String),
    /// A derivative is wrong.
    Wrong(String),
    /// Bits differ where they must not.
    Bits(String),
    /// The engine panics, or its own verifier refuses what it made, or a run of it fails where the program's does not.
    Internal(String),
}

impl Verdict {
    /// Is something wrong with the engine?
    pub fn is_failure(&self) -> bool {
        matches!(self, Verdict::Wrong(_) | Verdict::Bits(_) | Verdict::Internal(_))
    }

    /// The same kind of failure for the shrinker: the first words of what went wrong, without numbers and names.
    pub fn kind(&self) -> String {
        let (kind, what) = match self {
            Verdict::Right => ("right", ""),
            Verdict::NotBuilt(what) => ("not built", what.as_str()),
            Verdict::Faulted => ("faulted", ""),
            Verdict::NotJudged(what) => ("not judged", what.as_str()),
            Verdict::Refused(what) => ("refused", what.as_str()),
            Verdict::Wrong(what) => ("wrong", what.split(' ').next().unwrap_or_default()),
            Verdict::Bits(what) => ("bits", what.split(':').next().unwrap_or_default()),
            Verdict::Internal(what) => ("internal", what.as_str()),
        };
        let mut words = String::new();
        let mut quoted = false;
        for c in what.chars().take(300) {
            match c {
                '`' => quoted = !quoted,
                c if !quoted && !c.is_ascii_digit() => words.push(c),
                _ => {}
            }
        }
        let words: Vec<&str> = words.split_whitespace().take(24).collect();
        format!("{kind}: {}", words.join(" "))
    }
}

/// A case to check.
#[derive(Clone, Debug)]
pub struct Case {
    /// The sketch.
    pub sketch: Sketch,
    /// The sizes that it runs with.
    pub sizes: Sizes,
    /// The seed of its arguments.
    pub seed: u64,
}

/// Gradient programs with more values than this run in the interpreter alone.
const MOST_VALUES: usize = 700;

/// The device, other than the interpreter, that a case runs on: made when it is first wanted.
pub type Devices<'d> = &'d dyn Fn() -> Vec<Device>;

impl Case {
    /// The arguments of the program.
    pub fn inputs(&self) -> Vec<Input> {
        let arrays = self.sketch.arrays.iter().map(|a| self.array(a));
        let mut dice = Dice::new(self.seed ^ 0x5ca1a);
        let few = dice.below(5) as i64;
        let real = dice.below(90) as f64 / 64.0 - 0.7;
        let scalars = self.sketch.scalars.iter().map(|s| {
            Input::Scalar(match s.name.as_str() {
                "steps" => Literal::index(self.sizes.steps as i64),
                "few" => Literal::index(few),
                "whole" => Literal::from(5i64),
                _ => Literal::of(s.ty, real),
            })
        });
        arrays.chain(scalars).collect()
    }

    /// Numbers for a parameter: the same whatever other parameters there are.
    fn dice(&self, name: &str, salt: u64) -> Dice {
        let hash = name.bytes().fold(salt, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        Dice::new(self.seed.wrapping_mul(31).wrapping_add(hash))
    }

    fn array(&self, array: &ArrayOf) -> Input {
        let shape: Vec<usize> = array.extents.iter().map(|e| self.sizes.of(*e)).collect();
        let n: usize = shape.iter().product();
        let mut dice = self.dice(&array.name, 1);
        let elements = match (array.name.as_str(), array.ty) {
            ("perm", _) => {
                let mut order: Vec<i32> = (0..n as i32).collect();
                (1..n).for_each(|i| order.swap(i, dice.below(i + 1)));
                order.into_iter().map(Literal::from).collect()
            }
            ("o" | "count" | "loss" | "s" | "e" | "f" | "acc", ty) => vec![Literal::zero(ty); n],
            ("g", ty) => vec![Literal::of(ty, 0.9); n],
            (_, Type::Bool) => (0..n).map(|_| Literal::from(dice.one_in(2))).collect(),
            (_, ty @ (Type::F32 | Type::F64)) => (0..n)
                .map(|_| Literal::of(ty, 1.8 * (dice.roll() >> 11) as f64 / (1u64 << 53) as f64 - 0.9))
                .collect(),
            (_, ty) => (0..n).map(|_| Literal::of(ty, dice.below(7) as f64)).collect(),
        };
        Input::Elements(shape, elements)
    }

    /// What is differentiated by: some of the floats.
    pub fn wrt(&self) -> Vec<&str> {
        let arrays = self.sketch.arrays.iter().filter(|a| a.ty.is_float() && a.name != "loss");
        let scalars = self.sketch.scalars.iter().filter(|s| s.ty.is_float());
        let all: Vec<&str> =
            arrays.map(|a| a.name.as_str()).chain(scalars.map(|s| s.name.as_str())).collect();
        let some: Vec<&str> = all.iter().copied().filter(|name| !self.dice(name, 2).one_in(3)).collect();
        if some.is_empty() { all } else { some }
    }

    /// An array that the program writes, for a `vjp` and a `jvp`.
    fn output(&self) -> Option<String> {
        let written = self
            .sketch
            .arrays
            .iter()
            .filter(|a| a.ty.is_float() && a.access == Access::Write && a.name != "loss")
            .map(|a| a.name.as_str());
        written.min_by_key(|name| self.dice(name, 3).roll()).map(str::to_string)
    }

    fn host(&self) -> Option<Arc<Host<'static>>> {
        let yields = self.sketch.arrays.iter().any(|a| a.name == "o");
        let host = |_: &Yield, lent: &mut Lent| {
            if let Some(flag) = lent.get_mut("o") {
                flag.fill(Literal::from(0i32));
            }
            for (name, value) in [("g", None), ("b", Some(0.125))] {
                if let Some(first) = lent.get_mut(name).and_then(|array| array.first_mut()) {
                    let new = value.unwrap_or(0.5 * first.to_f64());
                    *first = Literal::of(first.ty(), new);
                }
            }
        };
        yields.then(|| Arc::new(host) as Arc<Host<'static>>)
    }

    /// Checks everything; a panic of the engine is an internal error.
    pub fn check(&self, devices: Devices<'_>) -> Verdict {
        let program = match lower(&self.sketch) {
            Ok(program) => program,
            Err(why) => return Verdict::NotBuilt(why),
        };
        let checked = catch_unwind(AssertUnwindSafe(|| self.check_program(&program, devices)));
        match checked {
            Ok(Ok(())) => Verdict::Right,
            Ok(Err(verdict)) => verdict,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
                Verdict::Internal(format!("panicked: {}", said.unwrap_or("?")))
            }
        }
    }

    fn check_program(&self, program: &Program, devices: Devices<'_>) -> Result<(), Verdict> {
        let inputs = self.inputs();
        let mut question = Question::new(program, &inputs, "loss", &self.wrt());
        question.host = self.host();
        question.most_statements = if self.sizes.n > 1000 { 10_000_000 } else { 400_000 };
        let trace = question.trace();
        if let Err(Stop::Unsupported(why)) = &trace {
            return Err(Verdict::NotJudged(why.clone()));
        }
        let ran = question.run(&device());
        let (trace, ran) = match (trace, ran) {
            (Ok(trace), Ok(ran)) => (trace, ran),
            (Err(Stop::Fault(_)), Err(_)) => return Err(Verdict::Faulted),
            (Err(stop), _) => return Err(Verdict::NotJudged(stop.to_string())),
            (Ok(_), Err(wrong)) => return Err(Verdict::Internal(format!("a plain run: {wrong}"))),
        };
        let values = |name: &str| trace.values(name).unwrap_or_default();
        same_bits(&ran, &values, "the oracle's").map_err(|w| failed("plain run", w))?;
        if !trace.is_finite() || values("loss").iter().any(|l| !l.to_f64().is_finite()) {
            return Err(Verdict::NotJudged("not finite".to_string()));
        }
        let large = self.sizes.n > 1000;
        let plain = |name: &str| {
            ran.iter().find(|(n, _)| n == name).map(|(_, elements)| elements.clone()).unwrap_or_default()
        };
        let gradient = question.gradient(&device(), false).map_err(refused)?;
        let answer = self.all_budgets(&question, &gradient, large)?;
        same_bits(&[("loss".to_string(), answer.value.clone())], &plain, "a plain run's")
            .map_err(|w| failed("value", w))?;
        question.judge_gradient(&trace, false, &answer.derivatives).map_err(|w| failed("gradient", w))?;
        if large {
            return Ok(());
        }
        self.check_switches(&question, &trace, &answer)?;
        self.check_others(&question, &trace)?;
        // A C compiler takes its time for a large one.
        if gradient.compiled().program().values.len() > MOST_VALUES {
            return Ok(());
        }
        for device in devices() {
            let what = format!("{} with other threads", device.name());
            let found = question.run(&device).map_err(|w| failed(&what, w))?;
            same_bits(&found, &plain, "the interpreter's").map_err(|w| failed(&what, w))?;
            let compiled = question.gradient(&device, false).map_err(|w| failed(&what, w))?;
            for budget in [Budget::StoreAll, Budget::Periodic { period: 2 }] {
                let found = self.launch(&question, &compiled, budget)?;
                if found != answer {
                    return Err(Verdict::Bits(format!("{what}: gradient under {budget:?}")));
                }
            }
        }
        Ok(())
    }

    /// One optimisation of the adjoint switched off, and now and then all of them: the same bits where it moves or drops
    /// work, the derivatives of the oracle where it defines an order of sums.
    fn check_switches(&self, question: &Question<'_>, trace: &Trace, answer: &Answer) -> Result<(), Verdict> {
        let all = Optimisation::ALL;
        let one = all[(self.seed % all.len() as u64) as usize];
        let everything = self.seed.is_multiple_of(4).then_some(&all[..]);
        for without in [Some(&[one][..]), everything].into_iter().flatten() {
            let what = format!("gradient without {without:?}");
            let gradient = question.gradient_without(&device(), false, without);
            let gradient = gradient.map_err(|wrong| match wrong {
                Wrong::Refused(why) => Verdict::Internal(format!("{what}: {why}")),
                other => failed(&what, other),
            })?;
            let found = self.launch(question, &gradient, Budget::Periodic { period: 2 })?;
            if found.value != answer.value {
                return Err(Verdict::Bits(format!("value of {what}")));
            }
            if without.iter().any(|optimisation| optimisation.changes_order()) {
                question.judge_gradient(trace, false, &found.derivatives).map_err(|w| failed(&what, w))?;
            } else if found.derivatives != answer.derivatives {
                return Err(Verdict::Bits(what));
            }
        }
        Ok(())
    }

    /// The gradient under every kind of budget; all have the bits of the first.
    fn all_budgets(
        &self,
        question: &Question<'_>,
        gradient: &Gradient,
        large: bool,
    ) -> Result<Answer, Verdict> {
        let first = self.launch(question, gradient, Budget::StoreAll)?;
        let revolve = |slots, block| Budget::Revolve { slots, block };
        let mut budgets = vec![Budget::Auto, Budget::Periodic { period: 2 }, revolve(2, 1)];
        if !large {
            budgets.extend([Budget::Periodic { period: 1 }, revolve(1, 1), revolve(2, 3)]);
            budgets.extend(self.byte_budgets(question, gradient));
        }
        for budget in budgets {
            let found = self.launch(question, gradient, budget)?;
            if found.value != first.value {
                return Err(Verdict::Bits(format!("value under a budget: {budget:?}")));
            }
            if found.derivatives != first.derivatives {
                let first = &first.derivatives;
                let apart = (0..first.len()).filter(|&k| first[k] != found.derivatives[k]);
                let apart: Vec<_> = apart.map(|k| (&first[k], &found.derivatives[k])).take(1).collect();
                return Err(Verdict::Bits(format!("gradient under a budget: {budget:?}, {apart:.200?}")));
            }
        }
        Ok(first)
    }

    /// The least budget in bytes, and one in the middle between that and what storing everything takes.
    fn byte_budgets(&self, question: &Question<'_>, gradient: &Gradient) -> Vec<Budget> {
        let Err(Error::BudgetTooSmall { minimum, .. }) = gradient.try_launch(question, Budget::Bytes(0))
        else {
            return Vec::new();
        };
        vec![Budget::Bytes(minimum), Budget::Bytes(minimum + minimum / 2)]
    }

    fn launch(
        &self,
        question: &Question<'_>,
        gradient: &Gradient,
        budget: Budget,
    ) -> Result<Answer, Verdict> {
        let found = gradient.try_launch(question, budget);
        // What was asked for takes too much: the engine knows what does not.
        if let (Err(Error::DoesNotFit { .. }), false) = (&found, budget == Budget::Auto) {
            return self.launch(question, gradient, Budget::Auto);
        }
        found.map_err(|error| match error {
            Error::Plan { message, .. } if message.contains("could not be computed") => {
                Verdict::Internal(format!("at launch: {message}"))
            }
            Error::Plan { message, .. } => Verdict::Refused(format!("at launch: {message}")),
            Error::BudgetTooSmall { minimum, .. } if budget == Budget::Auto && minimum > MEMORY => {
                Verdict::Refused("at launch: it takes more memory than a run may".to_string())
            }
            other => Verdict::Internal(format!("a gradient run under {budget:?}: {other}")),
        })
    }

    /// The `vjp` of an array, the `jvp` and the `hvp`.
    fn check_others(&self, question: &Question<'_>, trace: &Trace) -> Result<(), Verdict> {
        let pushed = question.jvp(&device()).map_err(refused_as("jvp"))?;
        question.judge_jvp(trace, &pushed).map_err(|w| failed("jvp", w))?;
        if let Some(of) = self.output() {
            let other = Question { of, ..question.clone() };
            let gradient = other.gradient(&device(), true).map_err(refused_as("vjp"))?;
            let answer = self.launch(&other, &gradient, Budget::Periodic { period: 2 })?;
            let ends = |name: &str| trace.values(name).unwrap_or_default();
            same_bits(&[(other.of.clone(), answer.value.clone())], &ends, "a plain run's")
                .map_err(|w| failed("value", w))?;
            other.judge_gradient(trace, true, &answer.derivatives).map_err(|w| failed("vjp", w))?;
            let pushed = other.jvp(&device()).map_err(refused_as("jvp"))?;
            other.judge_jvp(trace, &pushed).map_err(|w| failed("jvp", w))?;
            other.judge_pairing(trace, &pushed, &answer.derivatives).map_err(|w| failed("pairing", w))?;
        }
        let product = match question.hvp(&device(), Budget::StoreAll) {
            Err(Wrong::Refused(why)) if why.contains("are free") => question.hvp(&device(), Budget::Auto),
            found => found,
        };
        let product = product.map_err(refused_as("hvp"))?;
        question.judge_hvp(trace, &product).map_err(|w| failed("hvp", w))
    }
}

/// A refusal of a valid program, or of something that the engine made of it.
fn refused(wrong: Wrong) -> Verdict {
    refused_as("gradient")(wrong)
}

fn refused_as(what: &'static str) -> impl Fn(Wrong) -> Verdict {
    move |wrong| match wrong {
        Wrong::Refused(why) if is_internal(&why) => Verdict::Internal(format!("{what}: {why}")),
        Wrong::Refused(why) => Verdict::Refused(format!("{what}: {why}")),
        other => failed(what, other),
    }
}

/// Did the engine's own verifier refuse what the engine made, or does it say so itself?
fn is_internal(why: &str) -> bool {
    why.contains("(law ") || why.contains("internal") || why.contains("a race")
}

fn failed(what: &str, wrong: Wrong) -> Verdict {
    match wrong {
        Wrong::Number(how) => Verdict::Wrong(format!("{what}: {how}")),
        Wrong::Bits(how) => Verdict::Bits(format!("{what}: {how}")),
        Wrong::Refused(why) => Verdict::Internal(format!("{what}: {why}")),
        Wrong::NotJudged(why) => Verdict::NotJudged(why),
    }
}
