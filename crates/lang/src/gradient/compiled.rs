//! Gradients compiled for a device: plans and launches with the types of the program.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_ir as ir;
use ebbtide_runtime::{
    AnyArray, Arg, Array, Budget, Cancel, CompiledGradient, Device, Disks, Error, FileSystem, Plan, Progress,
    Ran, Result, Tiers,
};

use super::results::{Gradients, MakeOutput};
use super::{Bytes, DURABLE_EVERY};
use crate::program::{Source, checked};
use crate::scalar::Item;

/// A gradient compiled for a device: takes the arguments that the program takes.
///
/// It leaves all arrays as they are, so those that the program writes can be given as `&u` as well as `&mut u`.
pub struct CompiledGrad<P: Source> {
    pub(super) untyped: CompiledGradient,
    pub(super) program: Arc<ir::Program>,
    pub(super) outputs: Vec<(String, MakeOutput)>,
    pub(super) values: Vec<(String, MakeOutput)>,
    /// The output whose cotangent a launch takes.
    pub(super) seeded: Option<String>,
    pub(super) source: PhantomData<fn() -> P>,
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
    ///
    /// If it fails, the arguments are as they were, and what `gradients` holds is unspecified: a derivative may be summed in part.
    /// The next launch into it computes all of it anew.
    pub fn launch_into(&self, gradients: &mut Gradients, args: P::Reads<'_>) -> Result<()> {
        let args = checked::<P>(&self.program, P::reads(args))?;
        self.check_results(gradients, &args)?;
        self.run(gradients, args, None)
    }

    /// As [`CompiledGrad::launch`], in a directory, so that it survives its process. Killed at any instant and launched
    /// again with the same arguments, it continues from the last complete state in the directory, to the same bits;
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

    /// As [`CompiledGrad::launch_durable`], for a [`Program::vjp`](crate::Program::vjp) with this cotangent of its output.
    pub fn launch_durable_with<T: Item, const R: usize>(
        &self,
        dir: impl AsRef<Path>,
        seed: &Array<T, R>,
        args: P::Reads<'_>,
    ) -> Result<Gradients> {
        self.launch_durable_every_with(dir, DURABLE_EVERY, seed, args)
    }

    /// As [`CompiledGrad::launch_durable_with`], its state written as often as is said.
    pub fn launch_durable_every_with<T: Item, const R: usize>(
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
        let mut results = with_results(&mut gradients, args, seed);
        let ran = self.untyped.launch_durable_on(fs, dir, every, &mut results)?;
        drop(results);
        gradients.ran = ran;
        Ok(gradients)
    }

    /// Runs a [`Program::vjp`](crate::Program::vjp) with this cotangent of its output.
    pub fn launch_with<T: Item, const R: usize>(
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
        // Values have the shapes that arrays had at the end of the last launch.
        for ((name, value), (_, make)) in gradients.values.iter_mut().zip(&self.values) {
            let needed = self.shape(name, args);
            let found = value.array().shape().to_vec();
            if found != needed && found.len() == needed.len() {
                *value = make(self.untyped.device(), needed)?;
            }
        }
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
        let ran = self.untyped.launch(&mut with_results(gradients, args, seed))?;
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
    /// They return an error then; the caller's arrays are as they were. A durable launch ends the iterations that are under
    /// way and keeps what they led to: launched again it continues there. Nothing is compiled again.
    pub fn cancel_with(&self, cancel: &Cancel) -> CompiledGrad<P> {
        self.over(self.untyped.cancel_with(cancel))
    }

    /// The same gradient, with launches that tell `observer` how far they are, some dozen times a second, between
    /// iterations of outermost loops, and at their end. Nothing is compiled again.
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

impl<P: Source> fmt::Debug for CompiledGrad<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledGrad({} for {:?})", P::NAME, self.device())
    }
}
