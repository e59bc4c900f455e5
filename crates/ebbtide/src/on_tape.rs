//! A compiled program as an operation of an eager tape.

use std::collections::HashMap;
use std::sync::Arc;

use ebbtide_ir::{Access, Literal, Param, Role, Type};
use ebbtide_lang::{Name, Program, Source};
use ebbtide_runtime::{AnyArray, Arg, Array, Budget, Compiled, CompiledGradient, Device, Element, Status};
use ebbtide_tape::{InputCotangents, Operation, Point, RuleResult};
use ndarray::{ArrayD, IxDyn};

use crate::{Error, Result};

/// A program that is being made an operation: [`OnTape::on_tape`].
pub struct TapeProgram<P: Source> {
    program: Program<P>,
    output: String,
    inputs: Vec<String>,
    given: HashMap<String, Given>,
    budget: Budget,
}

/// What a parameter that is no input is given.
enum Given {
    Scalar(Literal),
    Array { ty: Type, shape: Vec<usize>, bytes: Vec<u8> },
}

/// Programs as operations of an eager tape over arrays of `ndarray`.
pub trait OnTape<P: Source> {
    /// An operation whose result is what this array holds at the end of the program. Say which arrays are its inputs
    /// ([`TapeProgram::input`]) and what every other parameter is given.
    ///
    /// ```
    /// use ebbtide::prelude::*;
    /// use ebbtide::OnTape;
    /// use ebbtide_tape::Tape;
    /// use ndarray::{ArrayD, arr1};
    ///
    /// #[program]
    /// fn decay(u: &mut Array1<f64>, rate: &Array1<f64>, steps: usize) {
    ///     for _t in 0..steps {
    ///         for i in par(0..u.len()) {
    ///             u[i] -= 0.1 * rate[i] * u[i] * u[i];
    ///         }
    ///     }
    /// }
    ///
    /// let device = Device::best()?;
    /// let decay = decay().on_tape(decay::u).input(decay::u).input(decay::rate).scalar("steps", 100usize)
    ///     .memory(Bytes::kib(16)).compile(&device)?;
    ///
    /// // On the tape it stands between operations of others.
    /// let tape = Tape::<ArrayD<f64>>::new();
    /// let start = tape.leaf(arr1(&[1.0, 2.0]).into_dyn());
    /// let rate = tape.leaf(arr1(&[0.5, 0.25]).into_dyn());
    /// let end = tape.apply(decay, &[&start.sin(), &rate]).unwrap();
    /// let loss = (&end * &end).sum();
    /// let gradients = loss.pullback().unwrap();
    /// assert!(gradients.wrt(&rate).unwrap()[0] < 0.0);
    /// # Ok::<(), ebbtide::Error>(())
    /// ```
    fn on_tape<const R: usize>(self, output: Name<Array<f64, R>>) -> TapeProgram<P>;
}

impl<P: Source> OnTape<P> for Program<P> {
    fn on_tape<const R: usize>(self, output: Name<Array<f64, R>>) -> TapeProgram<P> {
        TapeProgram {
            program: self,
            output: output.as_str().to_string(),
            inputs: Vec::new(),
            given: HashMap::new(),
            budget: Budget::Auto,
        }
    }
}

impl<P: Source> TapeProgram<P> {
    /// The next input of the operation is this array.
    pub fn input<const R: usize>(mut self, name: Name<Array<f64, R>>) -> TapeProgram<P> {
        self.inputs.push(name.as_str().to_string());
        self
    }

    /// A scalar parameter always has this value.
    pub fn scalar(mut self, name: &str, value: impl Into<Literal>) -> TapeProgram<P> {
        self.given.insert(name.to_string(), Given::Scalar(value.into()));
        self
    }

    /// An array parameter always starts from these elements: a constant, or working memory.
    pub fn array<T: Element, const R: usize>(
        mut self,
        name: Name<Array<T, R>>,
        elements: &Array<T, R>,
    ) -> TapeProgram<P> {
        let any = elements.any();
        let given = Given::Array { ty: any.ty(), shape: any.shape().to_vec(), bytes: any.bytes().to_vec() };
        self.given.insert(name.as_str().to_string(), given);
        self
    }

    /// The greatest number of bytes for the gradient of one call, beyond its inputs and results.
    pub fn memory(mut self, bytes: crate::Bytes) -> TapeProgram<P> {
        self.budget = Budget::Bytes(bytes.0);
        self
    }

    /// The operation, compiled for a device. It is cheap to clone.
    pub fn compile(self, device: &Device) -> Result<TapeOperation> {
        let program = self.program.ir()?.clone();
        let request = ebbtide_lang::__autodiff::Request {
            of: self.output.clone(),
            wrt: self.inputs.clone(),
            values: Vec::new(),
            seeded: true,
            ..Default::default()
        };
        let pullback = CompiledGradient::new(&program, &request, device, self.budget)?;
        let forward = Compiled::new(&program, device)?;
        let named = |param: &Param| match param {
            Param::Array(a) => program.array(*a).name.clone(),
            Param::Scalar(s) => program.scalars[s.index()].name.clone(),
        };
        let names: Vec<String> = program.params.iter().map(named).collect();
        for name in &names {
            if !self.inputs.contains(name) && !self.given.contains_key(name) {
                let message = format!(
                    "parameter `{name}` is no input of the operation: say what it is given with `.scalar(\"{name}\", ..)` \
                     or `.array(..)`"
                );
                return Err(Error::Plan { program: program.name.clone(), message });
            }
        }
        for (name, given) in &self.given {
            if let Given::Scalar(literal) = given {
                ebbtide_lang::__counted(&program.name, name, *literal)?;
            }
            if !names.contains(name) {
                let message =
                    format!("there is no parameter `{name}`; its parameters are `{}`", names.join("`, `"));
                return Err(Error::Plan { program: program.name.clone(), message });
            }
        }
        let TapeProgram { output, inputs, given, .. } = self;
        Ok(TapeOperation { parts: Arc::new(Parts { forward, pullback, output, inputs, given }) })
    }
}

/// A compiled program as an operation of an eager tape over arrays of `ndarray`.
#[derive(Clone)]
pub struct TapeOperation {
    parts: Arc<Parts>,
}

struct Parts {
    forward: Compiled,
    pullback: CompiledGradient,
    output: String,
    inputs: Vec<String>,
    given: HashMap<String, Given>,
}

impl Parts {
    /// The arrays of the parameters, `None` for scalars.
    fn arrays(&self, inputs: &[Arc<ArrayD<f64>>]) -> RuleResult<Vec<Option<AnyArray>>> {
        let (program, device) = (self.forward.program(), self.forward.device());
        if inputs.len() != self.inputs.len() {
            let (given, wanted) = (inputs.len(), self.inputs.join("`, `"));
            return Err(format!("{given} inputs for an operation on `{wanted}`").into());
        }
        let mut arrays = Vec::with_capacity(program.params.len());
        for param in &program.params {
            let Param::Array(id) = param else {
                arrays.push(None);
                continue;
            };
            let name = &program.array(*id).name;
            arrays.push(Some(match (self.inputs.iter().position(|n| n == name), self.given.get(name)) {
                (Some(k), _) => {
                    let value = inputs.get(k).ok_or("there are fewer inputs than the program takes")?;
                    from_ndarray(device, value)?
                }
                (None, Some(Given::Array { ty, shape, bytes })) => {
                    let mut array = AnyArray::zeros(device, *ty, shape)?;
                    array.copy_from_bytes(bytes)?;
                    array
                }
                _ => return Err(format!("parameter `{name}` is given a scalar, and is an array").into()),
            }));
        }
        Ok(arrays)
    }

    fn scalar(&self, name: &str) -> RuleResult<Literal> {
        match self.given.get(name) {
            Some(Given::Scalar(literal)) => Ok(*literal),
            _ => Err(format!("parameter `{name}` is given an array, and is a scalar").into()),
        }
    }
}

impl Operation<ArrayD<f64>> for TapeOperation {
    fn forward(&self, inputs: &[Arc<ArrayD<f64>>]) -> RuleResult<ArrayD<f64>> {
        let parts = &self.parts;
        let program = parts.forward.program();
        let mut arrays = parts.arrays(inputs)?;
        let mut args = Vec::with_capacity(arrays.len());
        for (param, array) in program.params.iter().zip(&mut arrays) {
            args.push(match (param, array) {
                (Param::Array(id), Some(array)) => match program.array(*id).role {
                    Role::Param(Access::Write) => Arg::Write(array.any_mut()),
                    _ => Arg::Read(array),
                },
                (Param::Scalar(s), _) => Arg::Scalar(parts.scalar(&program.scalars[s.index()].name)?),
                (Param::Array(_), None) => return Err("an array is missing".into()),
            });
        }
        if let Status::Yielded(at) = parts.forward.launch(args)? {
            return Err(format!("the program yielded at {}", at.position()).into());
        }
        let output = program.params.iter().zip(&arrays).find_map(|(param, array)| match (param, array) {
            (Param::Array(id), Some(array)) if program.array(*id).name == parts.output => Some(array),
            _ => None,
        });
        to_ndarray(output.ok_or("the program has no such output")?)
    }

    fn pullback(
        &self,
        at: Point<'_, ArrayD<f64>>,
        cotangent: &ArrayD<f64>,
        inputs: &mut InputCotangents<'_, ArrayD<f64>>,
    ) -> RuleResult {
        let parts = &self.parts;
        let (program, device) = (parts.forward.program(), parts.forward.device());
        let arrays = parts.arrays(at.inputs)?;
        let seed = from_ndarray(device, cotangent)?;
        let mut results = Vec::with_capacity(parts.inputs.len());
        for value in at.inputs {
            results.push(AnyArray::zeros(device, Type::F64, value.shape())?);
        }
        let mut args = Vec::with_capacity(arrays.len() + results.len() + 1);
        for (param, array) in program.params.iter().zip(&arrays) {
            args.push(match (param, array) {
                (Param::Array(_), Some(array)) => Arg::Read(array),
                (Param::Scalar(s), _) => Arg::Scalar(parts.scalar(&program.scalars[s.index()].name)?),
                (Param::Array(_), None) => return Err("an array is missing".into()),
            });
        }
        args.push(Arg::Read(&seed));
        args.extend(results.iter_mut().map(|array| Arg::Write(array.any_mut())));
        parts.pullback.launch(&mut args)?;
        drop(args);
        for (k, result) in results.iter().enumerate() {
            if inputs.wants(k) {
                inputs.add(k, to_ndarray(result)?)?;
            }
        }
        Ok(())
    }
}

fn from_ndarray(device: &Device, value: &ArrayD<f64>) -> RuleResult<AnyArray> {
    let mut array = AnyArray::zeros(device, Type::F64, value.shape())?;
    array.as_mut_slice().unwrap_or_default().iter_mut().zip(value).for_each(|(to, from)| *to = *from);
    Ok(array)
}

fn to_ndarray(array: &AnyArray) -> RuleResult<ArrayD<f64>> {
    let elements: &[f64] = array.as_slice().unwrap_or_default();
    Ok(ArrayD::from_shape_vec(IxDyn(array.shape()), elements.to_vec())?)
}
