//! Gradients with the types of their parameters.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_autodiff::{self as autodiff, Optimisation};
use ebbtide_ir as ir;
use ebbtide_runtime::{
    AnyArray, AnyMut, Arg, Array, Array0, Budget, Cancel, CompiledGradient, Device, Disks, Error, FileSystem,
    OnYield, Plan, Progress, Ran, Replay, Result, Tiers, Yielded,
};

use crate::host_arrays::Host;
use crate::program::{Name, Program, Source, checked};
use crate::scalar::{Element, Float};

/// How often the state of a durable launch is written where the caller does not say it.
pub(crate) const DURABLE_EVERY: Duration = Duration::from_secs(10);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    /// So many bytes.
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

/// A parameter that can have a derivative: an array, or a scalar.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no derivative",
    note = "f32 and f64, and arrays of them, have"
)]
pub trait Differentiable: Sized + 'static {
    /// What holds the derivative.
    type Holder: Any + Send + Sync;
    /// How it is given to the user.
    type Derivative<'a>;

    /// An empty holder for a parameter of this shape.
    fn holder(device: &Device, shape: &[usize]) -> Result<Self::Holder>;
    /// The array in the holder.
    fn array(holder: &mut Self::Holder) -> AnyMut<'_>;
    /// The derivative in the holder.
    fn derivative(holder: &Self::Holder) -> Self::Derivative<'_>;
}

impl<T: Element, const R: usize> Differentiable for Array<T, R> {
    type Holder = Array<T, R>;
    type Derivative<'a> = &'a Array<T, R>;

    fn holder(device: &Device, shape: &[usize]) -> Result<Array<T, R>> {
        let mut extents = [0; R];
        extents.iter_mut().zip(shape).for_each(|(e, s)| *e = *s);
        device.zeros(extents)
    }

    fn array(holder: &mut Array<T, R>) -> AnyMut<'_> {
        holder.any_mut()
    }

    fn derivative(holder: &Array<T, R>) -> &Array<T, R> {
        holder
    }
}

macro_rules! differentiable_scalars {
    ($($t:ty)*) => {$(
        impl Differentiable for $t {
            type Holder = Array0<$t>;
            type Derivative<'a> = $t;

            fn holder(device: &Device, _: &[usize]) -> Result<Array0<$t>> {
                device.zeros([])
            }

            fn array(holder: &mut Array0<$t>) -> AnyMut<'_> {
                holder.any_mut()
            }

            fn derivative(holder: &Array0<$t>) -> $t {
                holder.value()
            }
        }
    )*};
}

differentiable_scalars! { f32 f64 }

/// Something that a gradient run fills.
pub(crate) trait Output: Send + Sync {
    fn array(&mut self) -> AnyMut<'_>;
    fn holder(&self) -> &dyn Any;
}

struct Held<T: Differentiable>(T::Holder);

impl<T: Differentiable> Output for Held<T> {
    fn array(&mut self) -> AnyMut<'_> {
        T::array(&mut self.0)
    }

    fn holder(&self) -> &dyn Any {
        &self.0
    }
}

pub(crate) type MakeOutput = fn(&Device, &[usize]) -> Result<Box<dyn Output>>;

pub(crate) fn make_output<T: Differentiable>(device: &Device, shape: &[usize]) -> Result<Box<dyn Output>> {
    Ok(Box::new(Held::<T>(T::holder(device, shape)?)))
}

/// A gradient that is being asked for: [`Program::grad`], [`Program::value_and_grad`], [`Program::vjp`].
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
    pub fn grad<T: Float + Element>(&self, of: Name<Array0<T>>) -> Gradient<P> {
        self.derivative(of.as_str(), false)
    }

    /// As [`Program::grad`], and the value of the output with it.
    pub fn value_and_grad<T: Float + Element>(&self, of: Name<Array0<T>>) -> Gradient<P> {
        self.grad(of).value(of)
    }

    /// The product of a cotangent of any output with its Jacobian; the cotangent is an argument of the launch.
    pub fn vjp<T: Float + Element, const R: usize>(&self, of: Name<Array<T, R>>) -> Gradient<P> {
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
    /// With respect to this parameter, as it is at entry.
    pub fn wrt<T: Differentiable>(self, name: Name<T>) -> Gradient<P> {
        self.wrt_named::<T>(name.as_str())
    }

    /// With respect to a member of a struct, by its path: `"w.pos"`.
    pub fn wrt_named<T: Differentiable>(mut self, name: &str) -> Gradient<P> {
        self.request.wrt.push(name.to_string());
        self.outputs.push((name.to_string(), make_output::<T>));
        self
    }

    /// The value of an array at the end of the program is wanted too.
    pub fn value<T: Element, const R: usize>(mut self, name: Name<Array<T, R>>) -> Gradient<P> {
        self.request.values.push(name.as_str().to_string());
        self.values.push((name.as_str().to_string(), make_output::<Array<T, R>>));
        self
    }

    /// At most so many bytes beyond the caller's arrays and the returned derivatives, in the memory of the device.
    /// [`Gradient::host_memory`] and [`Gradient::disk`] extend it.
    pub fn memory(self, bytes: Bytes) -> Gradient<P> {
        self.budget(Budget::Bytes(bytes.0))
    }

    /// States of loops that the memory of a GPU has no room for may take so many bytes of host memory. They travel while
    /// the GPU computes. A device that computes in host memory has these bytes beside those of [`Gradient::memory`].
    pub fn host_memory(mut self, bytes: Bytes) -> Gradient<P> {
        self.tiers = self.tiers.host_memory(bytes.0);
        self
    }

    /// States of loops that memory has no room for may take so many bytes in files below `dir`, which is made where it
    /// is missing. They are written and read while the device computes, where that is cheaper than running passes again,
    /// and are gone when the launch returns.
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
    /// region is run again. It is asked once for each yield of the program; when passes are run again on the way
    /// back, what it did is done again. For the derivative, what it wrote is constant.
    pub fn on_yield(
        mut self,
        repair: impl Fn(&Yielded, &mut Host<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Gradient<P> {
        self.host = Some(Arc::new(move |at, lent| repair(at, &mut Host { lent })));
        self
    }

    /// Compares the states that passes lead to when they are run again with those that they led to before: a program
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

/// A gradient compiled for a device: takes the arguments that the program takes.
///
/// It leaves all arrays as they are, so those that the program writes can be given as `&u` as well as `&mut u`.
pub struct CompiledGrad<P: Source> {
    untyped: CompiledGradient,
    program: Arc<ir::Program>,
    outputs: Vec<(String, MakeOutput)>,
    values: Vec<(String, MakeOutput)>,
    /// The output whose cotangent a launch takes.
    seeded: Option<String>,
    source: PhantomData<fn() -> P>,
}

impl<P: Source> CompiledGrad<P> {
    /// Arguments of the program as arguments of its gradient. It is needed for a tuple in a variable, whose `&mut` Rust
    /// does not turn into `&` by itself.
    pub fn shared<'a>(&self, args: P::Args<'a>) -> P::Reads<'a> {
        P::shared(args)
    }

    /// What a launch with these arguments would do. Runs nothing.
    pub fn plan(&self, args: P::Reads<'_>) -> Result<Plan> {
        self.untyped.plan(&checked::<P>(&self.program, P::reads(args))?)
    }

    /// Runs the gradient; the caller's arrays stay as they are.
    pub fn launch(&self, args: P::Reads<'_>) -> Result<Gradients> {
        let args = checked::<P>(&self.program, P::reads(args))?;
        let mut gradients = self.empty(&args)?;
        self.run(&mut gradients, args, None)?;
        Ok(gradients)
    }

    /// As [`CompiledGrad::launch`], into the arrays of an earlier launch with the same shapes.
    pub fn launch_into(&self, gradients: &mut Gradients, args: P::Reads<'_>) -> Result<()> {
        let args = checked::<P>(&self.program, P::reads(args))?;
        self.check_results(gradients, &args)?;
        self.run(gradients, args, None)
    }

    /// As [`CompiledGrad::launch`], in a directory, so that it survives its process. Killed at any instant and launched
    /// again with the same arguments, it goes on from the last state that is whole in the directory, to the same bits;
    /// if it had ended, the results are read from there. Its state is written every ten seconds (see
    /// [`CompiledGrad::launch_durable_every`]).
    pub fn launch_durable(&self, dir: impl AsRef<Path>, args: P::Reads<'_>) -> Result<Gradients> {
        self.launch_durable_every(dir, DURABLE_EVERY, args)
    }

    /// As [`CompiledGrad::launch_durable`], its state written as often as is said: that bounds what a kill costs.
    pub fn launch_durable_every(
        &self,
        dir: impl AsRef<Path>,
        every: Duration,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        self.launch_durable_on(Arc::new(Disks), dir, every, args)
    }

    /// As [`CompiledGrad::launch_durable_every`], on a file system of your own.
    pub fn launch_durable_on(
        &self,
        fs: Arc<dyn FileSystem>,
        dir: impl AsRef<Path>,
        every: Duration,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        self.run_durable((fs, dir.as_ref()), every, None, args)
    }

    /// As [`CompiledGrad::launch_durable`], for a [`Program::vjp`] with this cotangent of its output.
    pub fn launch_durable_with<T: Element, const R: usize>(
        &self,
        dir: impl AsRef<Path>,
        seed: &Array<T, R>,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        self.launch_durable_every_with(dir, DURABLE_EVERY, seed, args)
    }

    /// As [`CompiledGrad::launch_durable_with`], its state written as often as is said.
    pub fn launch_durable_every_with<T: Element, const R: usize>(
        &self,
        dir: impl AsRef<Path>,
        every: Duration,
        seed: &Array<T, R>,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        self.run_durable((Arc::new(Disks), dir.as_ref()), every, Some(seed.any()), args)
    }

    fn run_durable(
        &self,
        (fs, dir): (Arc<dyn FileSystem>, &Path),
        every: Duration,
        seed: Option<&AnyArray>,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        let args = checked::<P>(&self.program, P::reads(args))?;
        self.check_seed(&args, seed)?;
        let mut gradients = self.empty(&args)?;
        let results = with_results(&mut gradients, args, seed);
        let ran = self.untyped.launch_durable_on(fs, dir, every, &results)?;
        gradients.ran = ran;
        Ok(gradients)
    }

    /// Runs a [`Program::vjp`] with this cotangent of its output.
    pub fn launch_with<T: Element, const R: usize>(
        &self,
        seed: &Array<T, R>,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        let args = checked::<P>(&self.program, P::reads(args))?;
        let mut gradients = self.empty(&args)?;
        self.run(&mut gradients, args, Some(seed.any()))?;
        Ok(gradients)
    }

    /// The shape of a parameter among these arguments.
    fn shape<'a>(&self, name: &str, args: &'a [Arg<'_>]) -> &'a [usize] {
        let param = self.program.params.iter().position(|p| match p {
            ir::Param::Array(a) => self.program.array(*a).name == name,
            ir::Param::Scalar(_) => false,
        });
        match param.and_then(|k| args.get(k)) {
            Some(Arg::Read(array)) => array.shape(),
            Some(Arg::Write(array)) => array.shape(),
            _ => &[],
        }
    }

    /// Are these results of this gradient, for arguments of these shapes?
    fn check_results(&self, gradients: &mut Gradients, args: &[Arg<'_>]) -> Result<()> {
        let lists = [(&mut gradients.values, &self.values), (&mut gradients.derivatives, &self.outputs)];
        for (given, wanted) in lists {
            if !given.iter().map(|(name, _)| name).eq(wanted.iter().map(|(name, _)| name)) {
                return Err(
                    self.refuse("the results to be written are those of another gradient".to_string())
                );
            }
            for (name, output) in given {
                let (array, needed) = (output.array(), self.shape(name, args));
                let found = array.shape();
                if found != needed {
                    return Err(self.refuse(format!(
                        "the results to be written have shape {found:?} for `{name}`, which has shape {needed:?} now"
                    )));
                }
            }
        }
        Ok(())
    }

    fn refuse(&self, message: String) -> Error {
        Error::Plan { program: self.untyped.program().name.clone(), message }
    }

    fn empty(&self, args: &[Arg<'_>]) -> Result<Gradients> {
        let make = |list: &[(String, MakeOutput)]| {
            list.iter()
                .map(|(name, make)| Ok((name.clone(), make(self.untyped.device(), self.shape(name, args))?)))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Gradients { values: make(&self.values)?, derivatives: make(&self.outputs)?, ran: Ran::default() })
    }

    fn run<'a>(
        &self,
        gradients: &'a mut Gradients,
        args: Vec<Arg<'a>>,
        seed: Option<&'a AnyArray>,
    ) -> Result<()> {
        self.check_seed(&args, seed)?;
        let ran = self.untyped.launch(&with_results(gradients, args, seed))?;
        gradients.ran = ran;
        Ok(())
    }

    /// Is there a cotangent where one is wanted, and does it fit?
    fn check_seed(&self, args: &[Arg<'_>], seed: Option<&AnyArray>) -> Result<()> {
        match (&self.seeded, seed) {
            (Some(of), Some(seed)) => {
                let (found, needed) = (seed.shape(), self.shape(of, args));
                if found != needed {
                    return Err(self.refuse(format!(
                        "the cotangent has shape {found:?}, and `{of}`, whose cotangent it is, has shape {needed:?}"
                    )));
                }
                Ok(())
            }
            (Some(_), None) => Err(self.refuse(
                "a `vjp` takes a cotangent of its output: use `launch_with` or `launch_durable_with`"
                    .to_string(),
            )),
            (None, Some(_)) => Err(self.refuse("only a `vjp` takes a cotangent: use `launch`".to_string())),
            (None, None) => Ok(()),
        }
    }

    /// The bytes that earlier launches left for the next one, so that it allocates nothing.
    pub fn held_bytes(&self) -> u64 {
        self.untyped.held_bytes()
    }

    /// Frees what earlier launches left for the next one.
    pub fn release(&self) {
        self.untyped.release();
    }

    /// The same gradient under another budget; nothing is compiled again.
    pub fn with_memory(&self, bytes: Bytes) -> CompiledGrad<P> {
        self.with_budget(Budget::Bytes(bytes.0))
    }

    /// The same gradient with its memory used otherwise; nothing is compiled again.
    pub fn with_budget(&self, budget: Budget) -> CompiledGrad<P> {
        self.over(self.untyped.with_budget(budget))
    }

    /// The same gradient with other room beyond memory; nothing is compiled again.
    pub fn with_tiers(&self, tiers: Tiers) -> CompiledGrad<P> {
        self.over(self.untyped.with_tiers(tiers))
    }

    /// The same gradient, with launches that stop when `cancel` says so: from another thread, a signal handler, a button.
    /// They return an error then; the caller's arrays are as they were. A durable launch ends the passes that are under
    /// way and keeps what they led to: launched again it goes on there. Nothing is compiled again.
    pub fn cancel_with(&self, cancel: &Cancel) -> CompiledGrad<P> {
        self.over(self.untyped.cancel_with(cancel))
    }

    /// The same gradient, with launches that tell `observer` how far they are, some dozen times a second, between
    /// passes of outermost loops, and at their end. Nothing is compiled again.
    pub fn observe(&self, observer: impl Fn(&Progress) + Send + Sync + 'static) -> CompiledGrad<P> {
        self.over(self.untyped.observe(Arc::new(observer)))
    }

    fn over(&self, untyped: CompiledGradient) -> CompiledGrad<P> {
        CompiledGrad {
            untyped,
            program: self.program.clone(),
            outputs: self.outputs.clone(),
            values: self.values.clone(),
            seeded: self.seeded.clone(),
            source: PhantomData,
        }
    }

    /// The generated source, where the device generates any.
    pub fn source(&self) -> Option<&str> {
        self.untyped.source()
    }

    /// The gradient program.
    pub fn ir(&self) -> &ir::Program {
        self.untyped.program()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.untyped.device()
    }
}

/// The arguments of the gradient program: the caller's, and what receives the results.
fn with_results<'a>(
    gradients: &'a mut Gradients,
    mut args: Vec<Arg<'a>>,
    seed: Option<&'a AnyArray>,
) -> Vec<Arg<'a>> {
    args.extend(seed.map(Arg::Read));
    let results = gradients.values.iter_mut().chain(&mut gradients.derivatives);
    args.extend(results.map(|(_, output)| Arg::Write(output.array())));
    args
}

/// What a gradient run gives.
pub struct Gradients {
    values: Vec<(String, Box<dyn Output>)>,
    derivatives: Vec<(String, Box<dyn Output>)>,
    ran: Ran,
}

impl Gradients {
    pub(crate) fn new(derivatives: Vec<(String, Box<dyn Output>)>, ran: Ran) -> Gradients {
        Gradients { values: Vec::new(), derivatives, ran }
    }

    /// The derivative with respect to a parameter: an array by reference, a scalar by value.
    pub fn get<T: Differentiable>(&self, name: Name<T>) -> Result<T::Derivative<'_>> {
        self.get_named::<T>(name.as_str())
    }

    /// The derivative with respect to a member of a struct, by its path.
    pub fn get_named<T: Differentiable>(&self, name: &str) -> Result<T::Derivative<'_>> {
        find::<T>(&self.derivatives, name).map(T::derivative)
    }

    /// The value of an output at the end of the program.
    pub fn value<T: Element, const R: usize>(&self, name: Name<Array<T, R>>) -> Result<&Array<T, R>> {
        find::<Array<T, R>>(&self.values, name.as_str())
    }

    /// What the run did.
    pub fn ran(&self) -> Ran {
        self.ran
    }
}

fn find<'a, T: Differentiable>(
    outputs: &'a [(String, Box<dyn Output>)],
    name: &str,
) -> Result<&'a T::Holder> {
    let found =
        outputs.iter().find(|(n, _)| n == name).and_then(|(_, o)| o.holder().downcast_ref::<T::Holder>());
    found.ok_or_else(|| {
        let mut known: Vec<String> = outputs.iter().map(|(n, _)| format!("`{n}`")).collect();
        if known.is_empty() {
            known.push(
                "no such thing: `.wrt(..)` asks for a derivative, `.value(..)` for a value".to_string(),
            );
        }
        Error::NotAskedFor { name: name.to_string(), known: known.join(", ") }
    })
}

impl fmt::Debug for Gradients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.derivatives.iter().map(|(n, _)| n.as_str()).collect();
        write!(f, "Gradients({})", names.join(", "))
    }
}

impl<P: Source> fmt::Debug for CompiledGrad<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledGrad({} for {:?})", P::NAME, self.device())
    }
}
