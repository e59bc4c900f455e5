//! Jacobian-vector and Hessian-vector products with the types of their parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{self as ir, Literal, Param};
use ebbtide_runtime::{
    AnyArray, Arg, Array, Array0, Budget, Cancel, CompiledGradient, Device, Error, OnYield, Plan, Progress,
    Ran, Result, Tiers, Yielded,
};

use crate::gradient::{Bytes, DURABLE_EVERY, Differentiable, Gradients, MakeOutput, make_output};
use crate::host_arrays::Host;
use crate::named::{Loss, Named};
use crate::program::{Name, Program, Source, counted};
use crate::scalar::{Float, Item};
use crate::small::{Value, names};
use crate::struct_leaves::Wanted;

/// A direction of the inputs: how each moves. What is not named stays where it is.
#[derive(Debug, Default)]
pub struct Direction<'a> {
    arrays: BTreeMap<&'static str, &'a AnyArray>,
    scalars: BTreeMap<String, Literal>,
}

impl<'a> Direction<'a> {
    /// Nothing moves.
    pub fn new() -> Direction<'a> {
        Direction::default()
    }

    /// An array moves along another one of its shape.
    pub fn array<T: Item, const R: usize>(
        mut self,
        name: Name<Array<T, R>>,
        along: &'a Array<T, R>,
    ) -> Direction<'a> {
        self.arrays.insert(name.as_str(), along.any());
        self
    }

    /// A scalar, or a small value, moves.
    pub fn scalar<T: Value + Differentiable>(mut self, name: Name<T>, along: T) -> Direction<'a> {
        let mut names = names::<T>(name.as_str()).into_iter();
        along.literals(&mut |literal| {
            let name = names.next().unwrap_or_default();
            if literal.ty().is_float() {
                self.scalars.insert(name, literal);
            }
        });
        self
    }
}

/// A Jacobian-vector or Hessian-vector product that is being asked for.
#[must_use = "a product is compiled for a device and launched: `.compile(&device)?.launch(args)?`"]
pub struct Product<P: Source> {
    program: Result<Arc<ir::Program>, String>,
    of: String,
    of_output: MakeOutput,
    wrt: Vec<(String, MakeOutput)>,
    budget: Budget,
    tiers: Tiers,
    host: Option<Arc<OnYield>>,
    order: Order,
    source: PhantomData<fn() -> P>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    First,
    Second,
}

impl<P: Source> Program<P> {
    /// How an output moves when inputs move: name them with [`Product::wrt`].
    pub fn jvp<T: Item<Scalar: Float>, const R: usize>(&self, of: Name<Array<T, R>>) -> Product<P> {
        self.product(of.as_str(), make_output::<Array<T, R>>, Order::First)
    }

    /// How the gradient of a rank-0 output moves when inputs move: a Hessian-vector product.
    pub fn hvp<L: Loss>(&self, of: L) -> Product<P> {
        self.product(of.name().as_str(), make_output::<Array0<L::Number>>, Order::Second)
    }

    fn product(&self, of: &str, of_output: MakeOutput, order: Order) -> Product<P> {
        let program = self.ir().cloned().map_err(|e| e.to_string());
        let (of, wrt) = (of.to_string(), Vec::new());
        Product {
            program,
            of,
            of_output,
            wrt,
            budget: Budget::default(),
            tiers: Tiers::default(),
            host: None,
            order,
            source: PhantomData,
        }
    }
}

impl<P: Source> Product<P> {
    /// This input can move; of a struct, all its float leaves.
    pub fn wrt<T: Differentiable>(mut self, name: impl Named<T>) -> Product<P> {
        let mut wanted = Wanted::default();
        T::want(name.name().as_str(), &mut wanted);
        self.wrt.extend(wanted.leaves);
        self
    }

    /// The greatest number of bytes beyond the caller's arrays and the results. First order keeps no states: what it allocates
    /// are copies of what the program writes, tangents and temporaries; a launch that needs more is an error.
    pub fn memory(self, bytes: Bytes) -> Product<P> {
        self.budget(Budget::Bytes(bytes.0))
    }

    /// Says by hand how the memory is used; for second order, which is reversed.
    pub fn budget(mut self, budget: Budget) -> Product<P> {
        self.budget = budget;
        self
    }

    /// What to do where the program yields: as [`Gradient::on_yield`](crate::Gradient::on_yield) says. What `repair` writes
    /// does not move with the inputs.
    pub fn on_yield(
        mut self,
        repair: impl Fn(&Yielded, &mut Host<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Product<P> {
        self.host = Some(Arc::new(move |at, lent| repair(at, &mut Host { lent })));
        self
    }

    /// Room beyond memory, for second order: as [`Gradient::host_memory`](crate::Gradient::host_memory) and
    /// [`Gradient::disk`](crate::Gradient::disk) say.
    pub fn tiers(mut self, tiers: Tiers) -> Product<P> {
        self.tiers = tiers;
        self
    }

    fn names(&self) -> Vec<String> {
        self.wrt.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The tangent program, or the adjoint of it.
    pub fn ir(&self) -> Result<ir::Program> {
        let tangent = self.tangent()?;
        Ok(match self.order {
            Order::First => tangent.program,
            Order::Second => autodiff::gradient_to_show(&tangent.program, &self.request(&tangent))?.program,
        })
    }

    fn tangent(&self) -> Result<autodiff::Tangent> {
        let program = match &self.program {
            Ok(program) => program,
            Err(message) => {
                return Err(refused::<P>(message.clone()));
            }
        };
        Ok(autodiff::tangent(program, &self.names())?)
    }

    /// Of first order the value of the tangent, of second order its gradient.
    fn request(&self, tangent: &autodiff::Tangent) -> autodiff::Request {
        let tangents = tangent.dots.clone();
        let of = tangent.dots.get(&self.of);
        match self.order {
            // What nothing flows to has no tangent: it stays zero.
            Order::First => autodiff::Request {
                mode: autodiff::Mode::Values,
                values: of.cloned().into_iter().collect(),
                tangents,
                ..Default::default()
            },
            Order::Second => autodiff::Request {
                of: of.cloned().unwrap_or_else(|| format!("dot_{}", self.of)),
                wrt: self.names(),
                may_be_zero: true,
                tangents,
                ..Default::default()
            },
        }
    }

    /// The product compiled for a device.
    pub fn compile(&self, device: &Device) -> Result<CompiledProduct<P>> {
        let tangent = self.tangent()?;
        let request = self.request(&tangent);
        let mut untyped = CompiledGradient::new(&tangent.program, &request, device, self.budget)?;
        untyped = untyped.with_tiers(self.tiers.clone());
        if let Some(host) = &self.host {
            untyped = untyped.with_host(host.clone());
        }
        let outputs = match self.order {
            Order::First => vec![(self.of.clone(), self.of_output)],
            Order::Second => self.wrt.clone(),
        };
        Ok(CompiledProduct {
            tangent: Arc::new(tangent),
            moves: self.names(),
            order: self.order,
            untyped,
            budget: self.budget,
            outputs,
            source: PhantomData,
        })
    }
}

/// A product compiled for a device: takes the arguments that the program takes, and a direction.
///
/// It leaves all arrays as they are, so those that the program writes can be given as `&u` as well as `&mut u`.
pub struct CompiledProduct<P: Source> {
    tangent: Arc<autodiff::Tangent>,
    /// The inputs that a direction may name.
    moves: Vec<String>,
    order: Order,
    untyped: CompiledGradient,
    budget: Budget,
    outputs: Vec<(String, MakeOutput)>,
    source: PhantomData<fn() -> P>,
}

/// What a launch works with: the caller's arrays, directions, and zeros for those that were not named.
struct Given<'a> {
    source: Vec<Arg<'a>>,
    /// By parameter of the tangent program.
    parameters: Vec<Parameter<'a>>,
    /// The bytes of the zeros.
    zeros: u64,
}

enum Parameter<'a> {
    /// The argument of the source with this number.
    Source(usize),
    Direction(&'a AnyArray),
    Zeros(AnyArray),
    Scalar(Literal),
}

impl Given<'_> {
    /// An array among the arguments of the source.
    fn array(&self, k: usize) -> Option<&AnyArray> {
        match self.source.get(k) {
            Some(Arg::Read(array)) => Some(array),
            Some(Arg::Write(array)) => Some(array),
            _ => None,
        }
    }

    /// The arguments of the tangent program.
    fn args(&self) -> Vec<Arg<'_>> {
        self.parameters.iter().map(|parameter| self.arg(parameter)).collect()
    }

    fn arg<'b>(&'b self, parameter: &'b Parameter<'_>) -> Arg<'b> {
        match parameter {
            Parameter::Source(k) => match (self.array(*k), self.source.get(*k)) {
                (Some(array), _) => Arg::Read(array),
                (None, Some(Arg::Scalar(literal))) => Arg::Scalar(*literal),
                _ => Arg::Scalar(Literal::from(false)),
            },
            Parameter::Direction(array) => Arg::Read(array),
            Parameter::Zeros(array) => Arg::Read(array),
            Parameter::Scalar(literal) => Arg::Scalar(*literal),
        }
    }
}

impl<P: Source> CompiledProduct<P> {
    /// Arguments of the program as arguments of its product: as [`CompiledGrad::shared`](crate::CompiledGrad::shared).
    pub fn shared<'a>(&self, args: P::Args<'a>) -> P::Reads<'a> {
        P::shared(args)
    }

    /// Runs the product; the caller's arrays stay as they are.
    ///
    /// Of a `jvp` the result has the tangent of the output, of an `hvp` the product for each input.
    pub fn launch(&self, args: P::Reads<'_>, direction: &Direction<'_>) -> Result<Gradients> {
        self.run(args, direction, |untyped, args| untyped.launch(args))
    }

    /// As [`CompiledProduct::launch`], in a directory, so that it survives its process; for second order, as
    /// [`CompiledGrad::launch_durable`](crate::CompiledGrad::launch_durable) says.
    pub fn launch_durable(
        &self,
        dir: impl AsRef<Path>,
        args: P::Reads<'_>,
        direction: &Direction<'_>,
    ) -> Result<Gradients> {
        self.launch_durable_every(dir, DURABLE_EVERY, args, direction)
    }

    /// As [`CompiledProduct::launch_durable`], its state written as often as is said.
    pub fn launch_durable_every(
        &self,
        dir: impl AsRef<Path>,
        every: Duration,
        args: P::Reads<'_>,
        direction: &Direction<'_>,
    ) -> Result<Gradients> {
        if self.order == Order::First {
            return Err(refused::<P>(
                "a `jvp` runs forward once and keeps no states that could be continued from, so it has no durable \
                 launch: launch it again, or let the program yield and store the yield"
                    .to_string(),
            ));
        }
        self.run(args, direction, |untyped, args| untyped.launch_durable(dir.as_ref(), every, args))
    }

    /// What a launch with these arguments would do. Runs nothing.
    pub fn plan(&self, args: P::Reads<'_>, direction: &Direction<'_>) -> Result<Plan> {
        let given = self.given(args, direction)?;
        let mut plan = self.within(given.zeros, |untyped| untyped.plan(&given.args()))?;
        plan.fixed_bytes += given.zeros;
        plan.store_all_bytes += given.zeros;
        plan.budget = plan.budget.map(|budget| budget + given.zeros);
        Ok(plan)
    }

    fn run(
        &self,
        args: P::Reads<'_>,
        direction: &Direction<'_>,
        launch: impl FnOnce(&CompiledGradient, &mut [Arg<'_>]) -> Result<Ran>,
    ) -> Result<Gradients> {
        let given = self.given(args, direction)?;
        let mut outputs = Vec::new();
        for (name, make) in &self.outputs {
            let shape = self.position(name).and_then(|k| match &given.parameters[k] {
                Parameter::Source(k) => given.array(*k).map(AnyArray::shape),
                _ => None,
            });
            outputs.push((name.clone(), make(self.untyped.device(), shape.unwrap_or_default())?));
        }
        let mut args = given.args();
        // What has no tangent is not among the results of the program.
        let computed = self.untyped.program().params.len() - args.len();
        args.extend(outputs.iter_mut().take(computed).map(|(_, output)| Arg::Write(output.array())));
        let ran = self.within(given.zeros, |untyped| launch(untyped, &mut args))?;
        drop(args);
        Ok(Gradients::new(outputs, ran))
    }

    /// What the parameters of the tangent program are.
    fn given<'a, 's: 'a, 'd: 'a>(&self, args: P::Reads<'s>, direction: &Direction<'d>) -> Result<Given<'a>> {
        self.accept(direction)?;
        let mut given = Given { source: P::reads(args), parameters: Vec::new(), zeros: 0 };
        let program = &self.tangent.program;
        let mut next = 0;
        for param in &program.params {
            let parameter = match *param {
                Param::Scalar(s) => {
                    let decl = &program.scalars[s.index()];
                    match self.source_of(&decl.name) {
                        Some(name) => {
                            let along = direction.scalars.get(name).copied();
                            Parameter::Scalar(along.unwrap_or(Literal::zero(decl.ty)))
                        }
                        None => {
                            next += 1;
                            match given.source.get(next - 1) {
                                Some(Arg::Scalar(literal)) => {
                                    Parameter::Scalar(counted(P::NAME, &decl.name, *literal)?)
                                }
                                _ => Parameter::Scalar(Literal::zero(decl.ty)),
                            }
                        }
                    }
                }
                Param::Array(a) => {
                    let decl = program.array(a);
                    match self.source_of(&decl.name) {
                        // A direction stands right behind the array that it belongs to.
                        Some(name) => {
                            let shape = given.array(next - 1).map_or(&[][..], AnyArray::shape);
                            match self.along(name, direction, shape)? {
                                Some(along) => Parameter::Direction(along),
                                None => {
                                    let zeros = AnyArray::zeros(self.untyped.device(), decl.ty, shape)?;
                                    given.zeros += (shape.iter().product::<usize>() * decl.ty.size()) as u64;
                                    Parameter::Zeros(zeros)
                                }
                            }
                        }
                        None => {
                            next += 1;
                            Parameter::Source(next - 1)
                        }
                    }
                }
            };
            given.parameters.push(parameter);
        }
        Ok(given)
    }

    /// Uses the product with so much less in its budget.
    fn within<A>(&self, used: u64, work: impl FnOnce(&CompiledGradient) -> Result<A>) -> Result<A> {
        let Budget::Bytes(whole) = self.budget else { return work(&self.untyped) };
        let left = match used {
            0 => work(&self.untyped),
            _ => work(&self.untyped.with_budget(Budget::Bytes(whole.saturating_sub(used)))),
        };
        left.map_err(|error| match error {
            Error::BudgetTooSmall { program, minimum, .. } => {
                Error::BudgetTooSmall { program, budget: whole, minimum: minimum + used }
            }
            other => other,
        })
    }

    /// The same product, with launches that stop when `cancel` says so; they return an error then, and the caller's arrays
    /// are as they were. Nothing is compiled again.
    pub fn cancel_with(&self, cancel: &Cancel) -> CompiledProduct<P> {
        self.over(self.untyped.cancel_with(cancel))
    }

    /// The same product, with launches that tell `observer` how far they are, some dozen times a second, and at their end.
    /// A `jvp` tells how many iterations of the loop that runs now are finished. Nothing is compiled again.
    pub fn observe(&self, observer: impl Fn(&Progress) + Send + Sync + 'static) -> CompiledProduct<P> {
        self.over(self.untyped.observe(Arc::new(observer)))
    }

    fn over(&self, untyped: CompiledGradient) -> CompiledProduct<P> {
        CompiledProduct {
            tangent: self.tangent.clone(),
            moves: self.moves.clone(),
            order: self.order,
            untyped,
            budget: self.budget,
            outputs: self.outputs.clone(),
            source: PhantomData,
        }
    }

    /// Takes a direction of inputs that can move alone.
    fn accept(&self, direction: &Direction<'_>) -> Result<()> {
        let scalars = direction.scalars.keys().map(String::as_str);
        let mut named = direction.arrays.keys().copied().chain(scalars);
        match named.find(|name| !self.moves.iter().any(|moves| moves == name)) {
            Some(name) => Err(refused::<P>(format!(
                "the direction names `{name}`, which cannot move here: ask for it with `.wrt({}::{name})`",
                P::NAME
            ))),
            None => Ok(()),
        }
    }

    /// How an array of this shape moves, if it does.
    fn along<'d>(
        &self,
        name: &str,
        direction: &Direction<'d>,
        shape: &[usize],
    ) -> Result<Option<&'d AnyArray>> {
        match direction.arrays.get(name) {
            Some(along) if along.shape() != shape => Err(refused::<P>(format!(
                "the direction of `{name}` has shape {:?}, `{name}` itself has {shape:?}",
                along.shape()
            ))),
            along => Ok(along.copied()),
        }
    }

    /// The parameter whose tangent is called so, if it is one.
    fn source_of(&self, name: &str) -> Option<&str> {
        self.tangent.dots.iter().find(|(_, dot)| *dot == name).map(|(source, _)| source.as_str())
    }

    fn position(&self, name: &str) -> Option<usize> {
        let program = &self.tangent.program;
        program.params.iter().position(|p| matches!(p, Param::Array(a) if program.array(*a).name == name))
    }
}

fn refused<P: Source>(message: String) -> Error {
    Error::Program(ir::Error::Launch { program: P::NAME.to_string(), message })
}

impl<P: Source> fmt::Debug for CompiledProduct<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledProduct({} for {:?})", P::NAME, self.untyped.device())
    }
}
