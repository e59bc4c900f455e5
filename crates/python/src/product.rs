//! Jacobian-vector and Hessian-vector products.

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{Access, Literal, Param, Program, Role};
use ebbtide_runtime::{AnyArray, Arg, Compiled, CompiledGradient, Device, Ran};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Leaf, Leaves, lend, scalar};
use crate::errors;
use crate::gradient::{DerivativeBase, Gradient, Kind, Results, shape_of, told};
use crate::interrupt::Watched;
use crate::outputs::{Output, copied};

/// The tangent of a program, or the adjoint of that, compiled.
pub struct Product {
    tangent: autodiff::Tangent,
    device: Device,
    runs: Order,
}

enum Order {
    First(Compiled),
    Second(Box<Gradient>),
}

/// One argument of the tangent program.
enum Piece {
    Own(AnyArray),
    Lent(AnyArray),
    Scalar(Literal),
}

impl Product {
    pub fn new(
        py: Python<'_>,
        asked: &DerivativeBase,
        program: &Program,
        device: &Device,
    ) -> PyResult<Product> {
        let made = errors::detached(py, || -> ebbtide_runtime::Result<Product> {
            let tangent = autodiff::tangent(program, &asked.wrt)?;
            let runs = match asked.kind() {
                Kind::Jvp => Order::First(Compiled::new(&tangent.program, device)?),
                _ => {
                    let of = tangent.dots.get(&asked.of).cloned();
                    let of = of.unwrap_or_else(|| format!("dot_{}", asked.of));
                    let wrt = asked.wrt.clone();
                    let request = autodiff::Request { of, wrt, may_be_zero: true, ..Default::default() };
                    let made = CompiledGradient::new(&tangent.program, &request, device, asked.budget())?;
                    Order::Second(Box::new(Gradient::new(asked.with_tiers(made))))
                }
            };
            Ok(Product { tangent, device: device.clone(), runs })
        })?;
        made.map_err(|error| errors::exception(py, &error))
    }

    pub fn source(&self) -> Option<String> {
        match &self.runs {
            Order::First(compiled) => compiled.source().map(str::to_string),
            Order::Second(gradient) => gradient.any().source().map(str::to_string),
        }
    }

    /// Runs the product along a direction: by name, how inputs move.
    pub fn run<'py>(
        &self,
        py: Python<'py>,
        asked: &DerivativeBase,
        source: &Program,
        leaves: &[Leaf],
        direction: &Bound<'py, PyDict>,
    ) -> PyResult<Results<'py>> {
        let mut along = Leaves::default();
        let mut moved: Vec<String> = Vec::new();
        for (name, object) in direction.iter() {
            let name: String = name.extract()?;
            if !asked.wrt.contains(&name) {
                let message =
                    format!("the direction names `{name}`, which cannot move here: ask for it with `wrt`");
                return Err(errors::launch(py, &source.name, &message));
            }
            along.push(&source.name, &name, &object)?;
            moved.push(name);
        }
        if along.leaves.len() != moved.len() {
            return Err(errors::launch(py, &source.name, "a direction is given by arrays and numbers"));
        }
        let mut pieces = self.pieces(py, source, leaves, &moved, &along)?;
        let failed = |error: ebbtide_runtime::Error| errors::exception(py, &error);
        match &self.runs {
            Order::First(compiled) => {
                let watched = Watched::begin();
                let compiled = watched.cancel.as_ref().map_or(compiled.clone(), |c| compiled.cancel_with(c));
                let done = errors::detached(py, || compiled.launch(arguments(&mut pieces)))?;
                if let Err(error) = done {
                    watched.raised(py)?;
                    return Err(failed(error));
                }
                let mut found = Vec::new();
                let dot = self.tangent.dots.get(&asked.of);
                for name in [Some(&asked.of), dot] {
                    let Some(Piece::Own(array)) =
                        name.and_then(|name| self.position(name)).map(|k| &pieces[k])
                    else {
                        let message = format!("`{}` is no array that the program writes", asked.of);
                        return Err(errors::launch(py, &source.name, &message));
                    };
                    let object = copied(py, &self.device, array)?;
                    found.push(object.call_method1("__getitem__", (pyo3::types::PyTuple::empty(py),))?);
                }
                let tangents = found.split_off(1);
                Ok((found, tangents, told(py, &Ran::default())?))
            }
            Order::Second(gradient) => {
                let output = |name: &String| match shape_of(source, leaves, name) {
                    Some((ty, shape)) => Output::zeros(py, &self.device, ty, &shape),
                    None => Err(errors::launch(py, &source.name, &format!("there is no parameter `{name}`"))),
                };
                let mut outputs = asked.wrt.iter().map(output).collect::<PyResult<Vec<_>>>()?;
                let (compiled, watched) = gradient.watched();
                let mut args = arguments(&mut pieces);
                args.extend(outputs.iter_mut().map(|output| Arg::Write(&mut output.array)));
                let ran = errors::detached(py, || compiled.launch(&args))?;
                drop(args);
                let ran = match ran {
                    Ok(ran) => ran,
                    Err(error) => {
                        watched.raised(py)?;
                        return Err(failed(error));
                    }
                };
                let found = outputs.into_iter().map(Output::finish).collect::<PyResult<Vec<_>>>()?;
                Ok((Vec::new(), found, told(py, &ran)?))
            }
        }
    }

    /// The arguments of the tangent program: copies of what it writes, and zeros for what does not move.
    fn pieces<'py>(
        &self,
        py: Python<'py>,
        source: &Program,
        leaves: &[Leaf],
        moved: &[String],
        along: &Leaves<'py>,
    ) -> PyResult<Vec<Piece>> {
        let program = &self.tangent.program;
        let failed = |error: ebbtide_runtime::Error| errors::exception(py, &error);
        let refuse = |message: String| errors::launch(py, &source.name, &message);
        let mut next = leaves.iter();
        let mut pieces = Vec::new();
        for param in &program.params {
            let name = match *param {
                Param::Array(a) => &program.array(a).name,
                Param::Scalar(s) => &program.scalars[s.index()].name,
            };
            let of = self.tangent.dots.iter().find(|(_, dot)| *dot == name).map(|(of, _)| of);
            let leaf = match of {
                None => next.next(),
                Some(of) => moved.iter().position(|moved| moved == of).map(|k| &along.leaves[k]),
            };
            pieces.push(match (*param, leaf) {
                (Param::Scalar(s), leaf) => {
                    let ty = program.scalars[s.index()].ty;
                    let literal = leaf.map_or(Ok(Literal::zero(ty)), |leaf| scalar(name, ty, leaf));
                    Piece::Scalar(literal.map_err(refuse)?)
                }
                (Param::Array(a), Some(Leaf::Array(elements))) => {
                    let found = (elements.ty, elements.shape[..elements.rank].to_vec());
                    let needed = of.and_then(|of| shape_of(source, leaves, of));
                    if let Some((_, shape)) = needed.filter(|needed| *needed != found) {
                        return Err(refuse(format!(
                            "the direction of `{}` has shape {:?} and `{}` elements, `{0}` itself has shape {shape:?}",
                            of.map_or("", String::as_str),
                            found.1,
                            found.0
                        )));
                    }
                    if !elements.contiguous {
                        return Err(refuse(format!("`{name}` is not contiguous in C order")));
                    }
                    let array = lend(&self.device, elements).map_err(failed)?;
                    let written = program.array(a).role == Role::Param(Access::Write)
                        && matches!(self.runs, Order::First(_));
                    match written {
                        true => Piece::Own(array.try_clone().map_err(failed)?),
                        false => Piece::Lent(array),
                    }
                }
                (Param::Array(_), Some(_)) => {
                    return Err(refuse(format!("`{name}` is an array, not a scalar")));
                }
                (Param::Array(a), None) => {
                    let Some((ty, shape)) = of.and_then(|of| shape_of(source, leaves, of)) else {
                        return Err(refuse(format!("`{name}` is missing")));
                    };
                    debug_assert_eq!(ty, program.array(a).ty);
                    Piece::Own(AnyArray::zeros(&self.device, ty, &shape).map_err(failed)?)
                }
            });
        }
        Ok(pieces)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let program = &self.tangent.program;
        program.params.iter().position(|p| matches!(p, Param::Array(a) if program.array(*a).name == name))
    }
}

fn arguments(pieces: &mut [Piece]) -> Vec<Arg<'_>> {
    let each = pieces.iter_mut();
    each.map(|piece| match piece {
        Piece::Own(array) => Arg::Write(array),
        Piece::Lent(array) => Arg::Read(array),
        Piece::Scalar(literal) => Arg::Scalar(*literal),
    })
    .collect()
}
