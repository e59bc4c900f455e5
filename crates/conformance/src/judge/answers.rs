//! The engine's answers, through the runtime's public interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use ebbtide_autodiff::{Optimisation, Request, Tangent, tangent};
use ebbtide_ir::{Access, Literal, Param, Program, Role, Type};
use ebbtide_runtime::{
    AnyArray, Arg, Budget, Compiled, CompiledGradient, Device, Error, Next, OnYield, Result as Ran, Yielded,
};

use super::{Question, Wrong};
use crate::oracle::{Direction, Host, Lent, PATIENCE, Yield};
use crate::{Input, literals, put};

/// A compiled gradient of a question.
#[derive(Clone)]
pub struct Gradient {
    compiled: CompiledGradient,
    seeded: bool,
}

/// What a gradient run gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The output at the end.
    pub value: Vec<Literal>,
    /// The derivatives, by input.
    pub derivatives: Vec<Vec<Literal>>,
}

fn refused(error: Error) -> Wrong {
    Wrong::Refused(error.to_string())
}

/// The bytes of these elements in memory.
fn image(ty: Type, elements: &[Literal]) -> Vec<u8> {
    let mut bytes = vec![0; elements.len() * ty.size()];
    elements.iter().enumerate().for_each(|(k, e)| put(&mut bytes, ty, k, *e));
    bytes
}

/// A device array of these elements.
fn filled(device: &Device, ty: Type, shape: &[usize], elements: &[Literal]) -> Ran<AnyArray> {
    let mut array = AnyArray::zeros(device, ty, shape)?;
    array.copy_from_bytes(&image(ty, elements))?;
    Ok(array)
}

fn of_numbers(device: &Device, ty: Type, shape: &[usize], numbers: &[f64]) -> Ran<AnyArray> {
    let elements: Vec<Literal> = numbers.iter().map(|x| Literal::of(ty, *x)).collect();
    filled(device, ty, shape, &elements)
}

impl Question<'_> {
    /// A plain run: all array parameters at the end, every NaN the same.
    pub fn run(&self, device: &Device) -> Result<Vec<(String, Vec<Literal>)>, Wrong> {
        let compiled = Compiled::new(self.program, device).map_err(refused)?;
        self.run_compiled(&compiled).map_err(refused)
    }

    /// As [`Question::run`], of a program that is compiled already.
    pub fn run_compiled(&self, compiled: &Compiled) -> Ran<Vec<(String, Vec<Literal>)>> {
        let mut arrays = self.arrays(compiled.device())?;
        let args = arguments(self.program, self.inputs, &mut arrays);
        let (host, mut yields) = (self.host.clone(), 0);
        let _status = compiled.drive(args, |at, args| match &host {
            Some(host) => {
                yields = patient(&self.program.name, yields)?;
                answer_in_place(self.program, host, at, args);
                Ok(Next::Resume)
            }
            None => Ok(Next::Leave),
        })?;
        let names = self.program.params.iter().filter_map(|param| match param {
            Param::Array(a) => Some(self.program.array(*a).name.clone()),
            Param::Scalar(_) => None,
        });
        Ok(names.zip(arrays.iter().flatten().map(|a| literals(a.ty(), a.bytes()))).collect())
    }

    /// The arrays of all parameters, in order; none for scalars.
    fn arrays(&self, device: &Device) -> Ran<Vec<Option<AnyArray>>> {
        let array = |(param, input): (&Param, &Input)| match param {
            Param::Array(id) => {
                let ty = self.program.array(*id).ty;
                filled(device, ty, input.shape(), &input.elements(ty)).map(Some)
            }
            Param::Scalar(_) => Ok(None),
        };
        self.program.params.iter().zip(self.inputs).map(array).collect()
    }

    /// The gradient, or the `vjp` with [`Question::seed`], compiled.
    pub fn gradient(&self, device: &Device, seeded: bool) -> Result<Gradient, Wrong> {
        self.gradient_without(device, seeded, &[])
    }

    /// As [`Question::gradient`], without these optimisations of the adjoint.
    pub fn gradient_without(
        &self,
        device: &Device,
        seeded: bool,
        without: &[Optimisation],
    ) -> Result<Gradient, Wrong> {
        let request = Request {
            of: self.of.clone(),
            wrt: self.wrt.clone(),
            values: vec![self.of.clone()],
            seeded,
            may_be_zero: true,
            without: without.iter().copied().collect(),
            ..Request::default()
        };
        let compiled = CompiledGradient::new(self.program, &request, device, Budget::StoreAll);
        let mut compiled = compiled.map_err(refused)?;
        if let Some(host) = &self.host {
            compiled = compiled.with_host(on_yield(self.program, host.clone()));
        }
        Ok(Gradient { compiled, seeded })
    }

    /// The tangent of the output along [`Question::direction`].
    pub fn jvp(&self, device: &Device) -> Result<Vec<Literal>, Wrong> {
        let tangent = self.tangent()?;
        let compiled = Compiled::new(&tangent.program, device).map_err(refused)?;
        self.push(&tangent, &compiled).map_err(refused)
    }

    fn tangent(&self) -> Result<Tangent, Wrong> {
        tangent(self.program, &self.wrt).map_err(|error| Wrong::Refused(error.to_string()))
    }

    fn push(&self, tangent: &Tangent, compiled: &Compiled) -> Ran<Vec<Literal>> {
        let program = &tangent.program;
        let inputs = self.tangent_inputs(tangent);
        let mut arrays = Vec::new();
        for (param, input) in program.params.iter().zip(&inputs) {
            arrays.push(match param {
                Param::Array(id) => {
                    let ty = program.array(*id).ty;
                    Some(filled(compiled.device(), ty, input.shape(), &input.elements(ty))?)
                }
                Param::Scalar(_) => None,
            });
        }
        let args = arguments(program, &inputs, &mut arrays);
        let (host, mut yields) = (self.host.clone(), 0);
        let _status = compiled.drive(args, |at, args| match &host {
            Some(host) => {
                yields = patient(&program.name, yields)?;
                answer_tangent(self.program, tangent, host, at, args);
                Ok(Next::Resume)
            }
            None => Ok(Next::Leave),
        })?;
        let dot = tangent.dots.get(&self.of);
        let at = program
            .params
            .iter()
            .position(|param| matches!(param, Param::Array(a) if Some(&program.array(*a).name) == dot));
        let found = at.and_then(|k| arrays[k].as_ref()).map(|a| literals(a.ty(), a.bytes()));
        // An output that does not move at all has no tangent.
        let zeros = || {
            let n = self.input(&self.of).map_or(0, |input| input.shape().iter().product());
            vec![Literal::zero(self.ty(&self.of)); n]
        };
        Ok(found.unwrap_or_else(zeros))
    }

    /// The arguments of the tangent program: those of the program, and the directions.
    fn tangent_inputs(&self, tangent: &Tangent) -> Vec<Input> {
        let along: Direction = self.direction();
        let program = &tangent.program;
        let input = |param: &Param| {
            let (name, ty) = match param {
                Param::Array(a) => (&program.array(*a).name, program.array(*a).ty),
                Param::Scalar(s) => (&program.scalars[s.index()].name, program.scalars[s.index()].ty),
            };
            let source = tangent.dots.iter().find(|(_, dot)| *dot == name).map(|(source, _)| source);
            let Some(source) = source else {
                return self.input(name).cloned().unwrap_or(Input::Scalar(Literal::zero(ty)));
            };
            let shape = self.input(source).map_or(Vec::new(), |input| input.shape().to_vec());
            let n = shape.iter().product();
            let moves = along.get(source).cloned().unwrap_or_else(|| vec![0.0; n]);
            let elements: Vec<Literal> = moves.iter().map(|x| Literal::of(ty, *x)).collect();
            match (param, elements.first()) {
                (Param::Scalar(_), Some(only)) => Input::Scalar(*only),
                _ => Input::Elements(shape, elements),
            }
        };
        program.params.iter().map(input).collect()
    }

    /// The product of the Hessian with [`Question::direction`], by input.
    pub fn hvp(&self, device: &Device, budget: Budget) -> Result<Vec<Vec<Literal>>, Wrong> {
        let tangent = self.tangent()?;
        let Some(dot) = tangent.dots.get(&self.of).cloned() else {
            // An output that does not move has no second derivative either.
            let zeros = |name: &String| {
                let n = self.input(name).map_or(0, |input| input.shape().iter().product());
                vec![Literal::zero(self.ty(name)); n]
            };
            return Ok(self.wrt.iter().map(zeros).collect());
        };
        let request = Request {
            of: dot,
            wrt: self.wrt.clone(),
            may_be_zero: true,
            tangents: tangent.dots.clone(),
            ..Request::default()
        };
        let compiled = CompiledGradient::new(&tangent.program, &request, device, budget).map_err(refused)?;
        let host = self.host.as_ref().map(|host| on_yield(self.program, host.clone()));
        let compiled = match host {
            Some(host) => compiled.with_host(host),
            None => compiled,
        };
        let inputs = self.tangent_inputs(&tangent);
        let given = Question { program: &tangent.program, inputs: &inputs, ..self.clone() };
        given.reverse(&compiled, &[], None).map_err(refused)
    }

    /// Runs a compiled gradient of this question's program: the values of `values`, then the derivatives.
    fn reverse(
        &self,
        compiled: &CompiledGradient,
        values: &[String],
        seed: Option<&AnyArray>,
    ) -> Ran<Vec<Vec<Literal>>> {
        let device = compiled.device();
        let mut arrays = self.arrays(device)?;
        let mut results = Vec::new();
        for name in values.iter().chain(&self.wrt) {
            let shape = self.input(name).map_or(&[][..], |input| input.shape());
            results.push(AnyArray::zeros(device, self.ty(name), shape)?);
        }
        let mut args = arguments(self.program, self.inputs, &mut arrays);
        args.extend(seed.map(Arg::Read));
        args.extend(results.iter_mut().map(|array| Arg::Write(array.any_mut())));
        compiled.launch(&mut args)?;
        drop(args);
        Ok(results.iter().map(|a| literals(a.ty(), a.bytes())).collect())
    }
}

impl Gradient {
    /// Runs it under a budget.
    pub fn launch(&self, question: &Question<'_>, budget: Budget) -> Result<Answer, Wrong> {
        self.try_launch(question, budget).map_err(refused)
    }

    /// As [`Gradient::launch`], with the engine's own error.
    pub fn try_launch(&self, question: &Question<'_>, budget: Budget) -> Ran<Answer> {
        let compiled = self.compiled.with_budget(budget);
        let shape = question.input(&question.of).map_or(&[][..], |input| input.shape());
        let seed = match self.seeded {
            true => Some(of_numbers(compiled.device(), question.ty(&question.of), shape, &question.seed())?),
            false => None,
        };
        let mut found = question.reverse(&compiled, std::slice::from_ref(&question.of), seed.as_ref())?;
        let derivatives = found.split_off(1);
        Ok(Answer { value: found.pop().unwrap_or_default(), derivatives })
    }

    /// The compiled gradient.
    pub fn compiled(&self) -> &CompiledGradient {
        &self.compiled
    }
}

/// One yield more; an error where they do not end.
fn patient(program: &str, yields: u32) -> Ran<u32> {
    if yields == PATIENCE {
        let message = format!("it yielded {PATIENCE} times");
        return Err(Error::Plan { program: program.to_string(), message });
    }
    Ok(yields + 1)
}

/// Arguments of a launch, for the parameters of a program.
fn arguments<'a>(program: &Program, inputs: &[Input], arrays: &'a mut [Option<AnyArray>]) -> Vec<Arg<'a>> {
    let zero = Literal::from(false);
    let argument =
        |((param, input), array): ((&Param, &Input), &'a mut Option<AnyArray>)| match (param, array) {
            (Param::Array(id), Some(array)) => match program.array(*id).role {
                Role::Param(Access::Write) => Arg::Write(array.any_mut()),
                _ => Arg::Read(array),
            },
            _ => Arg::Scalar(match input {
                Input::Scalar(literal) => *literal,
                _ => zero,
            }),
        };
    program.params.iter().zip(inputs).zip(arrays).map(argument).collect()
}

fn yielded(at: &Yielded) -> Yield {
    Yield { label: at.label_name().clone(), reason: at.reason() }
}

/// Lets the host change arrays of a plain run.
fn answer_in_place(program: &Program, host: &Arc<Host<'static>>, at: &Yielded, args: &mut [Arg<'_>]) {
    let named = |param: &Param| match param {
        Param::Array(a) => program.array(*a).name.clone(),
        Param::Scalar(_) => String::new(),
    };
    let mut lent = Lent::new();
    for (param, arg) in program.params.iter().zip(args.iter()) {
        if let Arg::Write(array) = arg {
            lent.insert(named(param), raw(array.ty(), array.bytes()));
        }
    }
    host(&yielded(at), &mut lent);
    for (param, arg) in program.params.iter().zip(args.iter_mut()) {
        if let (Arg::Write(array), Some(new)) = (arg, lent.get(&named(param))) {
            let bytes = image(array.ty(), new);
            array.copy_from_bytes(&bytes).expect("the host gives back as many elements as it got");
        }
    }
}

/// The elements of raw bytes, NaNs as they are.
fn raw(ty: Type, bytes: &[u8]) -> Vec<Literal> {
    let literal = |chunk: &[u8]| {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        Literal::from_bits(ty, u64::from_le_bytes(eight))
    };
    bytes.chunks_exact(ty.size()).map(literal).collect()
}

/// The names of the arrays that the program may write.
fn writable(program: &Program) -> Vec<String> {
    let name = |param: &Param| match param {
        Param::Array(a) if program.array(*a).role == Role::Param(Access::Write) => {
            Some(program.array(*a).name.clone())
        }
        _ => None,
    };
    program.params.iter().filter_map(name).collect()
}

/// The host of a gradient run.
fn on_yield(program: &Program, host: Arc<Host<'static>>) -> Arc<OnYield> {
    let names = writable(program);
    Arc::new(move |at, given| {
        let mut lent = Lent::new();
        for name in &names {
            let array = given.any(name)?;
            lent.insert(name.clone(), raw(array.ty(), array.bytes()));
        }
        host(&yielded(at), &mut lent);
        for (name, new) in &lent {
            let array = given.any(name)?;
            array.copy_from_bytes(&image(array.ty(), new))?;
        }
        Ok(())
    })
}

/// Sets the tangents of elements that the host changed to zero: what it wrote is constant.
fn still(
    before: &Lent,
    after: &Lent,
    dots: &BTreeMap<String, Vec<Literal>>,
) -> BTreeMap<String, Vec<Literal>> {
    let mut still = dots.clone();
    for (name, dot) in &mut still {
        if let (Some(old), Some(new)) = (before.get(name), after.get(name)) {
            for (k, d) in dot.iter_mut().enumerate() {
                if old.get(k) != new.get(k) {
                    *d = Literal::zero(d.ty());
                }
            }
        }
    }
    still
}

/// Lets the host change arrays of a tangent program: what it writes does not move.
fn answer_tangent(
    source: &Program,
    tangent: &Tangent,
    host: &Arc<Host<'static>>,
    at: &Yielded,
    args: &mut [Arg<'_>],
) {
    let program = &tangent.program;
    let position = |name: &str| {
        program.params.iter().position(|p| matches!(p, Param::Array(a) if program.array(*a).name == name))
    };
    let mut lent = Lent::new();
    let mut dots = BTreeMap::new();
    for name in writable(source) {
        if let Some(Arg::Write(array)) = position(&name).map(|k| &args[k]) {
            lent.insert(name.clone(), raw(array.ty(), array.bytes()));
        }
        let dot = tangent.dots.get(&name).and_then(|dot| position(dot));
        if let Some(Arg::Write(array)) = dot.map(|k| &args[k]) {
            dots.insert(name.clone(), raw(array.ty(), array.bytes()));
        }
    }
    let before = lent.clone();
    host(&yielded(at), &mut lent);
    for (name, new) in lent.iter().map(|(name, new)| (Some(name.as_str()), new)).chain(
        still(&before, &lent, &dots)
            .iter()
            .map(|(name, new)| (tangent.dots.get(name).map(String::as_str), new)),
    ) {
        if let Some(Arg::Write(array)) = name.and_then(position).map(|k| &mut args[k]) {
            let bytes = image(array.ty(), new);
            array.copy_from_bytes(&bytes).expect("the host gives back as many elements as it got");
        }
    }
}
