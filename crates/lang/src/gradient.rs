//! Gradients with the types of their parameters.

mod compiled;
mod results;

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_autodiff::{self as autodiff, Optimisation};
use ebbtide_ir as ir;
use ebbtide_runtime::{
    Array, Budget, CompiledGradient, Device, Error, OnYield, Replay, Result, Tiers, Yielded,
};

use crate::host_arrays::Host;
use crate::named::{Loss, Named};
use crate::program::{Launchable, Name, Program, Source};
use crate::scalar::{Float, Item};
use crate::struct_leaves::Wanted;

pub use compiled::CompiledGrad;
pub use results::{Differentiable, DifferentiableLeaf, Gradients};
pub(crate) use results::{MakeOutput, make_output};

/// How often the state of a durable launch is written where the caller does not say it.
pub(crate) const DURABLE_EVERY: Duration = Duration::from_secs(10);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    /// A number of bytes.
    // It stands beside `kib`, `mib` and `gib`, and reads like them.
    #[allow(clippy::self_named_constructors)]
    pub const fn bytes(n: u64) -> Bytes {
        Bytes(n)
    }

    /// Multiples of 1024 bytes.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }

    /// Multiples of 1024² bytes.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// Multiples of 1024³ bytes.
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }
}

/// A gradient that is being asked for: [`Program::grad`], [`Program::value_and_grad`], [`Program::vjp`].
#[must_use = "a gradient is compiled for a device and launched: `.compile(&device)?.launch(args)?`"]
pub struct Gradient<P: Source> {
    program: Result<Arc<ir::Program>, ir::Error>,
    request: autodiff::Request,
    outputs: Vec<(String, MakeOutput)>,
    values: Vec<(String, MakeOutput)>,
    budget: Budget,
    tiers: Tiers,
    host: Option<Arc<OnYield>>,
    replay: Replay,
    source: PhantomData<fn() -> P>,
}

impl<P: Source> Program<P> {
    /// The gradient of a rank-0 output. Say with respect to what with [`Gradient::wrt`].
    pub fn grad(&self, of: impl Loss) -> Gradient<P> {
        self.derivative(of.name().as_str(), false)
    }

    /// As [`Program::grad`], and the value of the output with it.
    pub fn value_and_grad(&self, of: impl Loss) -> Gradient<P> {
        let of = of.name();
        self.grad(of).value(of)
    }

    /// The product of a cotangent of any output with its Jacobian; the cotangent is an argument of the launch.
    pub fn vjp<T: Item<Scalar: Float>, const R: usize>(&self, of: Name<Array<T, R>>) -> Gradient<P> {
        self.derivative(of.as_str(), true)
    }

    fn derivative(&self, of: &str, seeded: bool) -> Gradient<P> {
        let program = match self.ir() {
            Ok(program) => Ok(program.clone()),
            Err(Error::Program(error)) => Err(error),
            Err(other) => Err(ir::Error::Launch { program: P::NAME.to_string(), message: other.to_string() }),
        };
        let request = autodiff::Request { of: of.to_string(), seeded, ..autodiff::Request::default() };
        Gradient {
            program,
            request,
            outputs: Vec::new(),
            values: Vec::new(),
            budget: Budget::default(),
            tiers: Tiers::default(),
            host: None,
            replay: Replay::Trusted,
            source: PhantomData,
        }
    }
}

impl<P: Source> Gradient<P> {
    /// Gradients are compiled first: this is here so that rustc says so.
    #[doc(hidden)]
    pub fn launch<A>(&self, _: A) -> Result<Gradients>
    where
        Gradient<P>: Launchable,
    {
        Err(Error::NotAskedFor { name: String::new(), known: String::new() })
    }

    /// With respect to this parameter, as it is at entry; of a struct, to all its float leaves. The output must depend on the
    /// parameter, or on one of the leaves: derivatives with respect to leaves without influence are zero.
    pub fn wrt<T: Differentiable>(mut self, name: impl Named<T>) -> Gradient<P> {
        let (name, mut wanted) = (name.name(), Wanted::default());
        T::want(name.as_str(), &mut wanted);
        if wanted.leaves.iter().any(|(leaf, _)| leaf != name.as_str()) {
            self.request.structs.push(name.as_str().to_string());
        }
        for (name, make) in wanted.leaves {
            self.request.wrt.push(name.clone());
            self.outputs.push((name, make));
        }
        self
    }

    /// With respect to a member of a struct, by its path: `"w.pos"`.
    pub fn wrt_named<T: DifferentiableLeaf>(mut self, name: &str) -> Gradient<P> {
        self.request.wrt.push(name.to_string());
        self.outputs.push((name.to_string(), make_output::<T>));
        self
    }

    /// The value of an array at the end of the program is wanted too.
    pub fn value<T: Item, const R: usize>(mut self, name: Name<Array<T, R>>) -> Gradient<P> {
        self.request.values.push(name.as_str().to_string());
        self.values.push((name.as_str().to_string(), make_output::<Array<T, R>>));
        self
    }

    /// The greatest number of bytes beyond the caller's arrays and the returned derivatives, in the memory of the device.
    /// [`Gradient::host_memory`] and [`Gradient::disk`] extend it.
    pub fn memory(self, bytes: Bytes) -> Gradient<P> {
        self.budget(Budget::Bytes(bytes.0))
    }

    /// States that do not fit the memory of a GPU may take this number of bytes of host memory. They are copied while the GPU
    /// computes. A device that computes in host memory has these bytes in addition to those of [`Gradient::memory`].
    pub fn host_memory(mut self, bytes: Bytes) -> Gradient<P> {
        self.tiers = self.tiers.host_memory(bytes.0);
        self
    }

    /// States that do not fit memory may take this number of bytes in files below `dir`, which is created if it is missing.
    /// They are written and read while the device computes, where that is cheaper than running iterations again, and are
    /// removed when the launch returns.
    pub fn disk(mut self, dir: impl AsRef<Path>, bytes: Bytes) -> Gradient<P> {
        self.tiers = self.tiers.disk(dir.as_ref(), bytes.0);
        self
    }

    /// Says by hand what lies beyond memory, and how fast it is.
    pub fn tiers(mut self, tiers: Tiers) -> Gradient<P> {
        self.tiers = tiers;
        self
    }

    /// Says by hand how the memory is used.
    pub fn budget(mut self, budget: Budget) -> Gradient<P> {
        self.budget = budget;
        self
    }

    /// What to do where the program yields: `repair` changes the arrays that the caller lent for writing, and the
    /// region is run again. It is asked once for each yield of the program; when iterations are run again on the way
    /// back, what it did is done again. For the derivative, what it wrote is constant.
    pub fn on_yield(
        mut self,
        repair: impl Fn(&Yielded, &mut Host<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Gradient<P> {
        self.host = Some(Arc::new(move |at, lent| repair(at, &mut Host { lent })));
        self
    }

    /// Compares the states that iterations lead to when they are run again with those that they led to before: a program
    /// that does not repeat itself is then an error instead of a wrong gradient. It takes time.
    pub fn checked(mut self) -> Gradient<P> {
        self.replay = Replay::Checked;
        self
    }

    /// Leaves an optimisation of the adjoint out: to find out what it does, or whether it is to blame for a number.
    pub fn without(mut self, optimisation: Optimisation) -> Gradient<P> {
        self.request.without.insert(optimisation);
        self
    }

    /// The gradient program. Of loops inside loops it is the one that keeps their tapes, where there is one.
    pub fn ir(&self) -> Result<ir::Program> {
        let program = self.program.as_ref().map_err(|e| Error::Program(e.clone()))?;
        Ok(autodiff::gradient_to_show(program, &self.request)?.program)
    }

    /// The gradient compiled for a device.
    pub fn compile(&self, device: &Device) -> Result<CompiledGrad<P>> {
        let program = self.program.as_ref().map_err(|e| Error::Program(e.clone()))?.clone();
        let mut untyped = CompiledGradient::new(&program, &self.request, device, self.budget)?;
        untyped = untyped.with_replay(self.replay).with_tiers(self.tiers.clone());
        if let Some(host) = &self.host {
            untyped = untyped.with_host(host.clone());
        }
        Ok(CompiledGrad {
            untyped,
            program,
            outputs: self.outputs.clone(),
            values: self.values.clone(),
            seeded: self.request.seeded.then(|| self.request.of.clone()),
            source: PhantomData,
        })
    }
}

/// The gradient program, or why there is none.
impl<P: Source> fmt::Display for Gradient<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ir() {
            Ok(program) => fmt::Display::fmt(&program, f),
            Err(error) => fmt::Display::fmt(&error, f),
        }
    }
}
