//! The workloads on Ebbtide.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ebbtide::prelude::*;

use crate::case::{Answer, Case, norm};
use crate::workloads::{self, Size, Workload, number};
use crate::{Error, Result};

/// A compiled gradient, ready to run.
pub struct Gradient {
    pub case: Case,
    pub plan: Plan,
    pub compile: Duration,
    pub source: String,
    /// The working memory that is kept for the next run.
    pub held_bytes: Box<dyn Fn() -> u64>,
}

fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(number).collect()
}

fn numbers_f32(count: usize, base: f32) -> Vec<f32> {
    (0..count).map(|k| base + number(k) as f32).collect()
}

/// A case of a gradient: `$args` is the tuple of arguments, over variables that the closures own.
macro_rules! gradient {
    ($program:ident, $device:expr, $budget:expr, wrt $($wrt:ident)+, args $args:expr) => {{
        use workloads::$program;
        let begun = Instant::now();
        let asked = $program().value_and_grad($program::loss)$(.wrt($program::$wrt))+.budget($budget);
        let g = Rc::new(asked.compile($device)?);
        let compile = begun.elapsed();
        let plan = g.plan($args)?;
        let source = g.source().unwrap_or_default().to_string();
        let out = Rc::new(RefCell::new(None));
        let found = out.clone();
        let holder = g.clone();
        let run = move || {
            let mut out = out.borrow_mut();
            match &mut *out {
                Some(out) => g.launch_into(out, $args)?,
                None => *out = Some(g.launch($args)?),
            }
            Ok(())
        };
        let answer = move || {
            let found = found.borrow();
            let found: &Gradients = found.as_ref().ok_or("nothing was run")?;
            let mut squares = 0.0;
            $(squares += found.get($program::$wrt)?.to_vec().iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();)+
            Ok(Answer { loss: Some(f64::from(found.value($program::loss)?.value())), norm: squares.sqrt() })
        };
        let case = Case { reset: Box::new(|| Ok(())), run: Box::new(run), answer: Box::new(answer) };
        Gradient { case, plan, compile, source, held_bytes: Box::new(move || holder.held_bytes()) }
    }};
}

/// The gradient of a workload's loss.
pub fn gradient(workload: Workload, size: Size, device: &Device, budget: Budget) -> Result<Gradient> {
    let Size { cells: n, steps } = size;
    let mut loss = device.zeros([])?;
    Ok(match workload {
        Workload::Pointwise => {
            let (mut s, p) = (device.array(&numbers(n))?, device.array(&numbers(n))?);
            gradient!(pointwise, device, budget, wrt s p, args (&mut s, &p, steps, &mut loss))
        }
        Workload::Seedloop => {
            let (mut s, p) = (device.array(&numbers(n))?, device.array(&numbers(n))?);
            gradient!(seedloop, device, budget, wrt s p, args (&mut s, &p, steps, &mut loss))
        }
        Workload::Burgers | Workload::LongBurgers => {
            let (mut u, mut next) = (device.array(&numbers(n))?, device.zeros([n])?);
            gradient!(burgers, device, budget, wrt u, args (&mut u, &mut next, steps, &mut loss))
        }
        Workload::Rnn => {
            let mut h = device.array_with_shape([1, n], &numbers(n))?;
            let mut z = device.zeros([1, n])?;
            let w = device.array_with_shape([n, n], &numbers(n * n))?;
            let x = device.array(&numbers(n))?;
            gradient!(rnn, device, budget, wrt w x, args (&mut h, &mut z, &w, &x, steps, &mut loss))
        }
        Workload::RnnLoops => {
            let (mut h, mut next) = (device.array(&numbers(n))?, device.zeros([n])?);
            let w = device.array_with_shape([n, n], &numbers(n * n))?;
            let x = device.array(&numbers(n))?;
            gradient!(rnn_loops, device, budget, wrt w x, args (&mut h, &mut next, &w, &x, steps, &mut loss))
        }
        Workload::Wave => {
            let (mut u, mut prev) = (device.zeros([n, n])?, device.zeros([n, n])?);
            let c = device.array_with_shape([n, n], &numbers_f32(n * n, 0.1))?;
            let source = device.array(&numbers_f32(steps, 0.0))?;
            let mut seen = device.zeros([steps, n])?;
            let mut loss = device.zeros([])?;
            gradient!(wave, device, budget, wrt c,
                args (&mut u, &mut prev, &c, &source, &mut seen, steps, &mut loss))
        }
    })
}

/// A case of a program: `$state` (and `$also`) go back to `$start` before each run; `$state` is the answer.
macro_rules! primal {
    ($program:ident, $device:expr, state $state:ident $(and $also:ident)? = $start:expr, args $args:expr) => {{
        use workloads::$program;
        let compiled = $program().compile($device)?;
        let start = $start;
        let run = move |what: Step| {
            match what {
                Step::Reset => {
                    $state.copy_from_slice(&start)?;
                    $($also.copy_from_slice(&start)?;)?
                }
                Step::Run => drop(compiled.launch($args)?),
                Step::Answer => return Ok(norm($state.to_vec().iter().map(|x| f64::from(*x)))),
            }
            Ok::<f64, Error>(0.0)
        };
        shared(run)
    }};
}

enum Step {
    Reset,
    Run,
    Answer,
}

/// Three closures that share the arrays.
fn shared(run: impl FnMut(Step) -> Result<f64> + 'static) -> Case {
    let run = Rc::new(RefCell::new(run));
    let (reset, answer) = (run.clone(), run.clone());
    Case {
        reset: Box::new(move || (reset.borrow_mut())(Step::Reset).map(drop)),
        run: Box::new(move || (run.borrow_mut())(Step::Run).map(drop)),
        answer: Box::new(move || Ok(Answer { loss: None, norm: (answer.borrow_mut())(Step::Answer)? })),
    }
}

/// The workload itself.
pub fn primal(workload: Workload, size: Size, device: &Device) -> Result<Case> {
    let Size { cells: n, steps } = size;
    Ok(match workload {
        Workload::Pointwise => {
            let (mut s, p) = (device.array(&numbers(n))?, device.array(&numbers(n))?);
            primal!(pointwise_steps, device, state s = numbers(n), args (&mut s, &p, steps))
        }
        Workload::Seedloop => {
            let (mut s, p) = (device.array(&numbers(n))?, device.array(&numbers(n))?);
            primal!(seedloop_steps, device, state s = numbers(n), args (&mut s, &p, steps))
        }
        Workload::Burgers | Workload::LongBurgers => {
            let (mut u, mut next) = (device.array(&numbers(n))?, device.zeros([n])?);
            primal!(burgers_steps, device, state u = numbers(n), args (&mut u, &mut next, steps))
        }
        Workload::Rnn => {
            let mut h = device.array_with_shape([1, n], &numbers(n))?;
            let mut z = device.zeros([1, n])?;
            let w = device.array_with_shape([n, n], &numbers(n * n))?;
            let x = device.array(&numbers(n))?;
            primal!(rnn_steps, device, state h = numbers(n), args (&mut h, &mut z, &w, &x, steps))
        }
        Workload::RnnLoops => {
            let (mut h, mut next) = (device.array(&numbers(n))?, device.zeros([n])?);
            let w = device.array_with_shape([n, n], &numbers(n * n))?;
            let x = device.array(&numbers(n))?;
            primal!(rnn_loops_steps, device, state h = numbers(n), args (&mut h, &mut next, &w, &x, steps))
        }
        Workload::Wave => {
            let (mut u, mut prev) = (device.zeros([n, n])?, device.zeros([n, n])?);
            let c = device.array_with_shape([n, n], &numbers_f32(n * n, 0.1))?;
            let source = device.array(&numbers_f32(steps, 0.0))?;
            let mut seen = device.zeros([steps, n])?;
            primal!(wave_steps, device, state u and prev = vec![0.0f32; n * n],
                args (&mut u, &mut prev, &c, &source, &mut seen, steps))
        }
    })
}
