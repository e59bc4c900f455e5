//! Jacobian-vector and Hessian-vector products with the types of their parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{self as ir, Access, Literal, Param, Role};
use ebbtide_runtime::{
    AnyArray, Arg, Array, Array0, Budget, Cancel, Compiled, CompiledGradient, Device, Error, Result, Tiers,
};

use crate::gradient::{Bytes, Differentiable, Gradients, MakeOutput, make_output};
use crate::program::{Name, Program, Source, counted};
use crate::scalar::{Element, Float};

/// A direction of the inputs: how each moves. What is not named stays where it is.
#[derive(Debug, Default)]
pub struct Direction<'a> {
    arrays: BTreeMap<&'static str, &'a AnyArray>,
    scalars: BTreeMap<&'static str, Literal>,
}

impl<'a> Direction<'a> {
    /// Nothing moves.
    pub fn new() -> Direction<'a> {
        Direction::default()
    }

    /// An array moves along another one of its shape.
    pub fn array<T: Element, const R: usize>(
        mut self,
        name: Name<Array<T, R>>,
        along: &'a Array<T, R>,
    ) -> Direction<'a> {
        self.arrays.insert(name.as_str(), along.any());
        self
    }

    /// A scalar moves.
    pub fn scalar<T: Float + Element>(mut self, name: Name<T>, along: T) -> Direction<'a> {
        self.scalars.insert(name.as_str(), ebbtide_runtime::Element::to_literal(along));
        self
    }
}

/// A Jacobian-vector or Hessian-vector product that is being asked for.
pub struct Product<P: Source> {
    program: Result<Arc<ir::Program>, String>,
    of: String,
    of_output: MakeOutput,
    wrt: Vec<(String, MakeOutput)>,
    budget: Budget,
    tiers: Tiers,
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
    pub fn jvp<T: Float + Element, const R: usize>(&self, of: Name<Array<T, R>>) -> Product<P> {
        self.product(of.as_str(), make_output::<Array<T, R>>, Order::First)
    }

    /// How the gradient of a rank-0 output moves when inputs move: a Hessian-vector product.
    pub fn hvp<T: Float + Element>(&self, of: Name<Array0<T>>) -> Product<P> {
        self.product(of.as_str(), make_output::<Array0<T>>, Order::Second)
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
            order,
            source: PhantomData,
        }
    }
}

impl<P: Source> Product<P> {
    /// This input can move.
    pub fn wrt<T: Differentiable>(mut self, name: Name<T>) -> Product<P> {
        self.wrt.push((name.as_str().to_string(), make_output::<T>));
        self
    }

    /// At most so many bytes beyond the caller's arrays and the results (for second order, which is reversed).
    pub fn memory(mut self, bytes: Bytes) -> Product<P> {
        self.budget = Budget::Bytes(bytes.0);
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

    /// For second order: the gradient of the tangent.
    fn request(&self, tangent: &autodiff::Tangent) -> autodiff::Request {
        let of = tangent.dots.get(&self.of).cloned().unwrap_or_else(|| format!("dot_{}", self.of));
        autodiff::Request { of, wrt: self.names(), may_be_zero: true, ..Default::default() }
    }

    /// The product compiled for a device.
    pub fn compile(&self, device: &Device) -> Result<CompiledProduct<P>> {
        let tangent = self.tangent()?;
        let runs = match self.order {
            Order::First => Runs::Forward(Compiled::new(&tangent.program, device)?),
            Order::Second => {
                let request = self.request(&tangent);
                let gradient = CompiledGradient::new(&tangent.program, &request, device, self.budget)?;
                Runs::Reverse(gradient.with_tiers(self.tiers.clone()))
            }
        };
        let outputs = match self.order {
            Order::First => vec![(self.of.clone(), self.of_output)],
            Order::Second => self.wrt.clone(),
        };
        Ok(CompiledProduct {
            tangent: Arc::new(tangent),
            moves: self.names(),
            runs,
            outputs,
            device: device.clone(),
            source: PhantomData,
        })
    }
}

enum Runs {
    Forward(Compiled),
    Reverse(CompiledGradient),
}

/// A product compiled for a device: takes the arguments that the program takes, and a direction.
pub struct CompiledProduct<P: Source> {
    tangent: Arc<autodiff::Tangent>,
    /// The inputs that a direction may name.
    moves: Vec<String>,
    runs: Runs,
    outputs: Vec<(String, MakeOutput)>,
    device: Device,
    source: PhantomData<fn() -> P>,
}

impl<P: Source> CompiledProduct<P> {
    /// Runs the product; the caller's arrays stay as they are.
    ///
    /// Of a `jvp` the result has the tangent of the output, of an `hvp` the product for each input.
    pub fn launch(&self, args: P::Args<'_>, direction: &Direction<'_>) -> Result<Gradients> {
        self.accept(direction)?;
        let mut given = P::arguments(args).into_iter();
        let program = &self.tangent.program;
        // Arrays of its own for all that the program writes, and for directions that nobody named.
        let mut own: Vec<Option<AnyArray>> = Vec::new();
        let mut shared: Vec<Option<&AnyArray>> = Vec::new();
        let mut scalars: Vec<Option<Literal>> = Vec::new();
        let source_args: Vec<Arg<'_>> = given.by_ref().collect();
        let mut next = source_args.iter();
        let mut last_shape: Vec<usize> = Vec::new();
        for param in &program.params {
            let (mut mine, mut lent, mut scalar) = (None, None, None);
            match *param {
                Param::Scalar(s) => {
                    let decl = &program.scalars[s.index()];
                    scalar = Some(match self.source_of(&decl.name) {
                        Some(name) => direction.scalars.get(name).copied().unwrap_or(Literal::zero(decl.ty)),
                        None => match next.next() {
                            Some(Arg::Scalar(literal)) => counted(P::NAME, &decl.name, *literal)?,
                            _ => Literal::zero(decl.ty),
                        },
                    });
                }
                Param::Array(a) => {
                    let decl = program.array(a);
                    let written =
                        decl.role == Role::Param(Access::Write) && matches!(self.runs, Runs::Forward(_));
                    let from = match self.source_of(&decl.name) {
                        Some(name) => self.along(name, direction, &last_shape)?,
                        None => {
                            let array = match next.next() {
                                Some(Arg::Read(array)) => Some(*array),
                                Some(Arg::Write(array)) => Some(&**array),
                                _ => None,
                            };
                            last_shape = array.map_or(Vec::new(), |a| a.shape().to_vec());
                            array
                        }
                    };
                    match from {
                        Some(array) if written => mine = Some(array.try_clone()?),
                        Some(array) => lent = Some(array),
                        // A direction stands right behind the array that it belongs to.
                        None => mine = Some(AnyArray::zeros(&self.device, decl.ty, &last_shape)?),
                    }
                }
            }
            own.push(mine);
            shared.push(lent);
            scalars.push(scalar);
        }
        let mut outputs = Vec::new();
        for (name, make) in &self.outputs {
            outputs.push((name.clone(), make(&self.device, &self.shape(name, &own, &shared))?));
        }
        let mut args: Vec<Arg<'_>> = Vec::new();
        for ((mine, lent), scalar) in own.iter_mut().zip(&shared).zip(&scalars) {
            args.push(match (mine, lent, scalar) {
                (Some(mine), ..) => Arg::Write(mine.any_mut()),
                (None, Some(lent), _) => Arg::Read(lent),
                (None, None, scalar) => Arg::Scalar(scalar.unwrap_or(Literal::from(false))),
            });
        }
        match &self.runs {
            Runs::Reverse(gradient) => {
                args.extend(outputs.iter_mut().map(|(_, output)| Arg::Write(output.array())));
                let ran = gradient.launch(&args)?;
                Ok(Gradients::new(outputs, ran))
            }
            Runs::Forward(compiled) => {
                let _done = compiled.launch(args)?;
                for (name, output) in &mut outputs {
                    let at = self.tangent.dots.get(name).and_then(|dot| self.position(dot));
                    if let Some(Some(found)) = at.map(|k| &own[k]) {
                        output.array().copy_from_bytes(found.bytes())?;
                    }
                }
                Ok(Gradients::new(outputs, ebbtide_runtime::Ran::default()))
            }
        }
    }

    /// The same product, with launches that stop when `cancel` says so; they return an error then, and the caller's arrays
    /// are as they were. Nothing is compiled again.
    pub fn cancel_with(&self, cancel: &Cancel) -> CompiledProduct<P> {
        CompiledProduct {
            tangent: self.tangent.clone(),
            moves: self.moves.clone(),
            runs: match &self.runs {
                Runs::Forward(compiled) => Runs::Forward(compiled.cancel_with(cancel)),
                Runs::Reverse(gradient) => Runs::Reverse(gradient.cancel_with(cancel)),
            },
            outputs: self.outputs.clone(),
            device: self.device.clone(),
            source: PhantomData,
        }
    }

    /// Takes a direction of inputs that can move alone.
    fn accept(&self, direction: &Direction<'_>) -> Result<()> {
        let mut named = direction.arrays.keys().chain(direction.scalars.keys());
        match named.find(|name| !self.moves.iter().any(|moves| moves == *name)) {
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

    fn shape(&self, name: &str, own: &[Option<AnyArray>], shared: &[Option<&AnyArray>]) -> Vec<usize> {
        let Some(k) = self.position(name) else { return Vec::new() };
        own[k].as_ref().or(shared[k]).map_or(Vec::new(), |a| a.shape().to_vec())
    }
}

fn refused<P: Source>(message: String) -> Error {
    Error::Program(ir::Error::Launch { program: P::NAME.to_string(), message })
}

impl<P: Source> fmt::Debug for CompiledProduct<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledProduct({} for {:?})", P::NAME, self.device)
    }
}
