//! A value type that counts its living instances, and functions of such values with all their derivatives.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ebbtide_tape::{
    CheckpointRecipe, Cotangents, Differentiable, Error, InputCotangents, OutputTangents, ReplayResult,
    ReverseRule, RuleError, RuleResult, SecondOrder, Tangents, Tape, Var, mix_words,
};

/// Counts living values.
#[derive(Debug, Default)]
pub struct Meter {
    live: AtomicI64,
    peak: AtomicI64,
}

impl Meter {
    pub fn live(&self) -> i64 {
        self.live.load(Ordering::Relaxed)
    }

    /// The most values alive since the last call.
    pub fn peak(&self) -> i64 {
        self.peak.swap(self.live(), Ordering::Relaxed)
    }
}

/// A number that cannot be cloned.
#[derive(Debug)]
pub struct Num {
    pub x: f64,
    meter: Arc<Meter>,
}

impl Num {
    pub fn new(x: f64, meter: &Arc<Meter>) -> Num {
        let live = meter.live.fetch_add(1, Ordering::Relaxed) + 1;
        meter.peak.fetch_max(live, Ordering::Relaxed);
        Num { x, meter: Arc::clone(meter) }
    }
}

impl Drop for Num {
    fn drop(&mut self) {
        self.meter.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Its tangent is of another type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope(pub f64);

impl Differentiable for Num {
    type Tangent = Slope;
    type Shared = Arc<Num>;

    fn zero_tangent(&self) -> Slope {
        Slope(0.0)
    }

    fn accumulate(sum: &mut Slope, other: Slope) {
        sum.0 += other.0;
    }

    fn element_count(&self) -> usize {
        1
    }

    fn unit_cotangent(&self) -> Slope {
        Slope(1.0)
    }

    fn byte_count(&self) -> u64 {
        8
    }

    fn fingerprint(&self) -> Option<u64> {
        Some(mix_words([self.x.to_bits()]))
    }
}

/// A value with its gradient and Hessian.
pub struct Jet {
    pub value: f64,
    pub gradient: Vec<f64>,
    pub hessian: Vec<Vec<f64>>,
}

pub type Function = fn(&[f64]) -> Jet;

/// sin x · 1.1 + 0.1 for one argument; the sum of sines of neighbouring products for more.
pub fn wave(x: &[f64]) -> Jet {
    if let [x] = *x {
        return Jet {
            value: x.sin() * 1.1 + 0.1,
            gradient: vec![x.cos() * 1.1],
            hessian: vec![vec![-x.sin() * 1.1]],
        };
    }
    let n = x.len();
    let mut jet = Jet { value: 0.0, gradient: vec![0.0; n], hessian: vec![vec![0.0; n]; n] };
    for i in 0..n {
        let j = (i + 1) % n;
        let product = x[i] * x[j];
        let (sin, cos) = product.sin_cos();
        jet.value += sin;
        jet.gradient[i] += cos * x[j];
        jet.gradient[j] += cos * x[i];
        jet.hessian[i][i] -= sin * x[j] * x[j];
        jet.hessian[j][j] -= sin * x[i] * x[i];
        jet.hessian[i][j] += cos - sin * product;
        jet.hessian[j][i] += cos - sin * product;
    }
    jet
}

/// The logistic map: one step of a chain that forgets nothing.
pub fn logistic(x: &[f64]) -> Jet {
    let x = x[0];
    Jet { value: 3.7 * x * (1.0 - x), gradient: vec![3.7 * (1.0 - 2.0 * x)], hessian: vec![vec![-7.4]] }
}

pub fn sum(x: &[f64]) -> Jet {
    let n = x.len();
    Jet { value: x.iter().sum(), gradient: vec![1.0; n], hessian: vec![vec![0.0; n]; n] }
}

/// The rule of a function at a point: its derivatives there.
pub struct JetRule {
    pub jet: Jet,
    pub order: SecondOrder,
    pub pushforwards: Arc<AtomicU64>,
    /// The inputs that get no cotangent although they are wanted.
    pub withheld: Vec<usize>,
    /// What a rule typically owns: the values themselves.
    pub _owned: Vec<Arc<Num>>,
}

impl ReverseRule<Num> for JetRule {
    fn pullback(&self, outputs: &Cotangents<'_, Num>, inputs: &mut InputCotangents<'_, Num>) -> RuleResult {
        let cotangent = outputs.only()?.0;
        for (index, slope) in self.jet.gradient.iter().enumerate() {
            if !self.withheld.contains(&index) {
                inputs.add(index, Slope(cotangent * slope))?;
            }
        }
        Ok(())
    }

    fn second_order(&self) -> SecondOrder {
        self.order
    }

    fn pushforward(&self, inputs: &Tangents<'_, Num>, outputs: &mut OutputTangents<'_, Num>) -> RuleResult {
        self.pushforwards.fetch_add(1, Ordering::Relaxed);
        let mut tangent = 0.0;
        for (index, slope) in self.jet.gradient.iter().enumerate() {
            tangent += inputs.get(index).map_or(0.0, |input| slope * input.0);
        }
        outputs.set(0, Slope(tangent))
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, Num>,
        changes: &Cotangents<'_, Num>,
        tangents: &Tangents<'_, Num>,
        inputs: &mut InputCotangents<'_, Num>,
    ) -> RuleResult {
        for (index, (slope, row)) in self.jet.gradient.iter().zip(&self.jet.hessian).enumerate() {
            let mut change = changes.get(0).map_or(0.0, |change| change.0 * slope);
            for (other, second) in row.iter().enumerate() {
                if let (Some(cotangent), Some(tangent)) = (outputs.get(0), tangents.get(other)) {
                    change += cotangent.0 * second * tangent.0;
                }
            }
            inputs.add(index, Slope(change))?;
        }
        Ok(())
    }
}

struct JetRecipe {
    lab: LabParts,
    function: Function,
    withheld: Vec<usize>,
    replays: Arc<AtomicU64>,
}

impl CheckpointRecipe<Num> for JetRecipe {
    fn replay(&self, inputs: &[Arc<Num>]) -> Result<ReplayResult<Num>, RuleError> {
        self.lab.replays.fetch_add(1, Ordering::Relaxed);
        self.replays.fetch_add(1, Ordering::Relaxed);
        let (value, rule) = self.lab.evaluate(self.function, inputs.to_vec(), &self.withheld);
        Ok(ReplayResult::new(value, rule))
    }
}

#[derive(Clone)]
pub struct LabParts {
    pub meter: Arc<Meter>,
    replays: Arc<AtomicU64>,
    pushforwards: Arc<AtomicU64>,
    order: SecondOrder,
}

impl LabParts {
    pub fn evaluate(
        &self,
        function: Function,
        inputs: Vec<Arc<Num>>,
        withheld: &[usize],
    ) -> (Arc<Num>, JetRule) {
        let jet = function(&inputs.iter().map(|input| input.x).collect::<Vec<_>>());
        let value = Arc::new(Num::new(jet.value, &self.meter));
        let rule = JetRule {
            jet,
            order: self.order,
            pushforwards: Arc::clone(&self.pushforwards),
            withheld: withheld.to_vec(),
            _owned: inputs,
        };
        (value, rule)
    }
}

/// A tape with meters on everything.
pub struct Lab {
    pub tape: Tape<Num>,
    pub parts: LabParts,
}

/// How an operation is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Retained,
    Checkpointed,
}

impl Lab {
    pub fn new() -> Lab {
        Lab::with_order(SecondOrder::Smooth)
    }

    pub fn with_order(order: SecondOrder) -> Lab {
        let parts =
            LabParts { meter: Arc::default(), replays: Arc::default(), pushforwards: Arc::default(), order };
        Lab { tape: Tape::new(), parts }
    }

    pub fn num(&self, x: f64) -> Num {
        Num::new(x, &self.parts.meter)
    }

    pub fn leaf(&self, x: f64) -> Var<Num> {
        self.tape.leaf(self.num(x))
    }

    pub fn meter(&self) -> &Meter {
        &self.parts.meter
    }

    /// Replays since the last call.
    pub fn replays(&self) -> u64 {
        self.parts.replays.swap(0, Ordering::Relaxed)
    }

    /// Pushforwards since the last call.
    pub fn pushforwards(&self) -> u64 {
        self.parts.pushforwards.swap(0, Ordering::Relaxed)
    }

    pub fn retained(&self, function: Function, inputs: &[&Var<Num>]) -> Var<Num> {
        self.record(Kind::Retained, function, inputs, &[]).unwrap().0
    }

    pub fn checkpointed(&self, function: Function, inputs: &[&Var<Num>]) -> Var<Num> {
        self.record(Kind::Checkpointed, function, inputs, &[]).unwrap().0
    }

    /// Records an operation; the second result counts its own replays.
    pub fn record(
        &self,
        kind: Kind,
        function: Function,
        inputs: &[&Var<Num>],
        withheld: &[usize],
    ) -> Result<(Var<Num>, Arc<AtomicU64>), Error> {
        let values = inputs.iter().map(|input| input.share()).collect();
        let (value, rule) = self.parts.evaluate(function, values, withheld);
        let replays = Arc::new(AtomicU64::new(0));
        let var = match kind {
            Kind::Retained => self.tape.record_op(value, inputs, rule)?,
            Kind::Checkpointed => {
                let withheld = withheld.to_vec();
                let lab = self.parts.clone();
                let recipe = JetRecipe { lab, function, withheld, replays: Arc::clone(&replays) };
                self.tape.record_checkpointed_op(value, inputs, recipe)?
            }
        };
        Ok((var, replays))
    }

    /// A chain of `length` operations on a leaf.
    pub fn chain(&self, kind: Kind, function: Function, length: usize) -> (Var<Num>, Var<Num>) {
        let leaf = self.leaf(0.4);
        let mut end = leaf.clone();
        for _ in 0..length {
            end = self.record(kind, function, &[&end], &[]).unwrap().0;
        }
        (leaf, end)
    }
}

/// The number of cases of a property test.
pub fn cases(default: u32) -> u32 {
    std::env::var("EBBTIDE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// A small generator of repeatable pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 53) as f64
    }
}
