//! Jacobian-vector and Hessian-vector products.

use std::sync::Arc;

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{Literal, Param, Program};
use ebbtide_runtime::{AnyArray, Arg, CompiledGradient, Device};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Leaf, Leaves, lend, reachable, scalar};
use crate::errors;
use crate::gradient::{DerivativeBase, Directory, Gradient, Kind, Results, launched, shape_of, told};
use crate::outputs::Output;
use crate::plan::Plan;

/// The tangent of a program, or the adjoint of that, compiled.
pub struct Product {
    tangent: autodiff::Tangent,
    device: Device,
    gradient: Gradient,
}

/// One argument of the tangent program.
enum Piece {
    Array(AnyArray),
    Scalar(Literal),
}

impl Product {
    pub fn new(
        py: Python<'_>,
        asked: &DerivativeBase,
        program: &Arc<Program>,
        device: &Device,
    ) -> PyResult<Product> {
        let (tangent, made) = errors::detached(py, || -> ebbtide_runtime::Result<_> {
            let tangent = autodiff::tangent(program, &asked.wrt)?;
            let dot = tangent.dots.get(&asked.of).cloned();
            let tangents = tangent.dots.clone();
            let request = match asked.kind() {
                // The value, and its tangent where it has one.
                Kind::Jvp => autodiff::Request {
                    mode: autodiff::Mode::Values,
                    values: [asked.of.clone()].into_iter().chain(dot).collect(),
                    tangents,
                    ..Default::default()
                },
                _ => autodiff::Request {
                    of: dot.unwrap_or_else(|| format!("dot_{}", asked.of)),
                    wrt: asked.wrt.clone(),
                    may_be_zero: true,
                    tangents,
                    ..Default::default()
                },
            };
            let made = CompiledGradient::new(&tangent.program, &request, device, asked.budget())?;
            Ok((tangent, made))
        })?
        .map_err(|error| errors::exception(py, &error))?;
        let made = asked.with_host(py, program, asked.with_tiers(made));
        Ok(Product { tangent, device: device.clone(), gradient: Gradient::new(made) })
    }

    pub fn source(&self) -> Option<String> {
        self.gradient.any().source().map(str::to_string)
    }

    /// What a run with these arguments would do, whatever its direction.
    pub fn plan(&self, py: Python<'_>, source: &Program, leaves: &[Leaf]) -> PyResult<Plan> {
        let mut pieces = self.pieces(py, source, leaves, &[], &Leaves::default())?;
        let plan = self.gradient.any().plan(&arguments(&mut pieces));
        Ok(Plan { plan: plan.map_err(|error| errors::exception(py, &error))? })
    }

    /// Runs the product along a direction: by name, how inputs move.
    pub fn run<'py>(
        &self,
        py: Python<'py>,
        asked: &DerivativeBase,
        (source, leaves): (&Program, &[Leaf]),
        direction: &Bound<'py, PyDict>,
        durable: Option<Directory>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results<'py>> {
        let mut along = Leaves::with_room(direction.len(), asked.device_name());
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
        let output = |name: &String| match shape_of(source, leaves, name) {
            Some((ty, shape)) => Output::zeros(py, &self.device, ty, &shape),
            None => Err(errors::launch(py, &source.name, &format!("there is no parameter `{name}`"))),
        };
        // Of a jvp: the value, and its tangent, which stays zero where nothing flows to it.
        let first = asked.kind() == Kind::Jvp;
        let names = if first { vec![asked.of.clone(), asked.of.clone()] } else { asked.wrt.clone() };
        let mut outputs = names.iter().map(output).collect::<PyResult<Vec<_>>>()?;
        asked.forget_raised();
        let (chosen, watched) = self.gradient.watched();
        let observed = asked.observed(chosen, &watched, progress);
        let compiled = observed.as_ref().unwrap_or(chosen);
        let mut args = arguments(&mut pieces);
        let computed = compiled.program().params.len() - args.len();
        let results = outputs.iter_mut().take(computed);
        args.extend(results.map(|output| Arg::Write(output.array.any_mut())));
        let ran = errors::detached(py, || launched(compiled, &mut args, durable))?;
        drop(args);
        if let Some(raised) = asked.raised() {
            return Err(raised);
        }
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                watched.raised(py)?;
                return Err(errors::exception(py, &error));
            }
        };
        let mut found = outputs.into_iter().map(Output::finish).collect::<PyResult<Vec<_>>>()?;
        let derivatives = if first { found.split_off(1) } else { std::mem::take(&mut found) };
        Ok((found, derivatives, told(py, &ran)?))
    }

    /// The arguments of the tangent program, with zeros for what does not move.
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
                (Param::Array(_), Some(Leaf::Array(elements))) => {
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
                    reachable(&self.device, name, elements).map_err(refuse)?;
                    Piece::Array(lend(&self.device, elements).map_err(failed)?)
                }
                (Param::Array(_), Some(_)) => {
                    return Err(refuse(format!("`{name}` is an array, not a scalar")));
                }
                (Param::Array(a), None) => {
                    let Some((ty, shape)) = of.and_then(|of| shape_of(source, leaves, of)) else {
                        return Err(refuse(format!("`{name}` is missing")));
                    };
                    debug_assert_eq!(ty, program.array(a).ty);
                    Piece::Array(AnyArray::zeros(&self.device, ty, &shape).map_err(failed)?)
                }
            });
        }
        Ok(pieces)
    }
}

fn arguments(pieces: &mut [Piece]) -> Vec<Arg<'_>> {
    let each = pieces.iter_mut();
    each.map(|piece| match piece {
        Piece::Array(array) => Arg::Read(array),
        Piece::Scalar(literal) => Arg::Scalar(*literal),
    })
    .collect()
}
