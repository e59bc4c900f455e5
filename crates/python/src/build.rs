//! The untyped builder for the front end that is written in Python, and the programs that it builds.

use std::sync::Arc;

use ebbtide_autodiff as autodiff;
use ebbtide_ir::{
    self as ir, Access, ArrayId, Binary, Combine, Compare, Function, Label, Literal, LocalId, Param, Program,
    ReverseHint, Role, Site, Type, Unary, Undo, ValueId,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// Looks a name up in a table of variants.
fn named<T: Copy>(table: &[(&str, T)], name: &str) -> PyResult<T> {
    let found = table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| PyValueError::new_err(format!("there is no operation `{name}`")))
}

const TYPES: &[(&str, Type)] = &[
    ("f32", Type::F32),
    ("f64", Type::F64),
    ("i32", Type::I32),
    ("i64", Type::I64),
    ("u32", Type::U32),
    ("bool", Type::Bool),
    ("int", Type::Index),
];

const UNARY: &[(&str, Unary)] = &[
    ("neg", Unary::Neg),
    ("not", Unary::Not),
    ("abs", Unary::Abs),
    ("sqrt", Unary::Sqrt),
    ("norm", Unary::Norm),
    ("floor", Unary::Floor),
    ("ceil", Unary::Ceil),
    ("trunc", Unary::Trunc),
];

const BINARY: &[(&str, Binary)] = &[
    ("add", Binary::Add),
    ("sub", Binary::Sub),
    ("mul", Binary::Mul),
    ("div", Binary::Div),
    ("rem", Binary::Rem),
    ("rem_euclid", Binary::RemEuclid),
    ("min", Binary::Min),
    ("max", Binary::Max),
    ("and", Binary::And),
    ("or", Binary::Or),
    ("xor", Binary::Xor),
    ("shl", Binary::Shl),
    ("shr", Binary::Shr),
];

const COMPARE: &[(&str, Compare)] = &[
    ("eq", Compare::Eq),
    ("ne", Compare::Ne),
    ("lt", Compare::Lt),
    ("le", Compare::Le),
    ("gt", Compare::Gt),
    ("ge", Compare::Ge),
];

const COMBINE: &[(&str, Combine)] = &[("add", Combine::Add), ("min", Combine::Min), ("max", Combine::Max)];

pub fn type_name(ty: Type) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == ty).map_or("?", |(name, _)| name)
}

fn values(ids: &[usize]) -> Vec<ValueId> {
    ids.iter().map(|id| ValueId::from_index(*id)).collect()
}

fn value(id: usize) -> ValueId {
    ValueId::from_index(id)
}

fn array(id: usize) -> ArrayId {
    ArrayId::from_index(id)
}

/// Builds a program statement by statement. Values, arrays and variables are numbers.
#[pyclass(module = "ebbtide._native")]
pub struct Builder {
    inner: Option<ir::Builder>,
    file: Arc<str>,
}

impl Builder {
    fn inner(&mut self) -> PyResult<&mut ir::Builder> {
        self.inner.as_mut().ok_or_else(|| PyValueError::new_err("this builder has finished"))
    }
}

#[pymethods]
impl Builder {
    #[new]
    fn new(name: &str) -> Builder {
        Builder { inner: Some(ir::Builder::new(name)), file: Arc::from("") }
    }

    fn at(&mut self, file: &str, line: u32, column: u32) -> PyResult<()> {
        if *self.file != *file {
            self.file = Arc::from(file);
        }
        let site = Site { file: self.file.clone(), line, column };
        self.inner()?.at(site);
        Ok(())
    }

    fn array(&mut self, name: &str, ty: &str, rank: usize, write: bool) -> PyResult<usize> {
        let access = if write { Access::Write } else { Access::Read };
        Ok(self.inner()?.array(name, named(TYPES, ty)?, rank, access).index())
    }

    fn scalar(&mut self, name: &str, ty: &str) -> PyResult<usize> {
        Ok(self.inner()?.scalar(name, named(TYPES, ty)?).index())
    }

    fn temp(&mut self, name: &str, ty: &str, shape: Vec<usize>) -> PyResult<usize> {
        Ok(self.inner()?.temp(name, named(TYPES, ty)?, &values(&shape)).index())
    }

    fn name(&mut self, id: usize, name: &str) -> PyResult<()> {
        self.inner()?.name(value(id), name);
        Ok(())
    }

    fn float_literal(&mut self, ty: &str, x: f64) -> PyResult<usize> {
        let literal = Literal::of(named(TYPES, ty)?, x);
        Ok(self.inner()?.literal(literal).index())
    }

    fn int_literal(&mut self, ty: &str, x: i64) -> PyResult<usize> {
        let literal = match named(TYPES, ty)? {
            Type::I32 => Literal::from(x as i32),
            Type::I64 => Literal::from(x),
            Type::U32 => Literal::from(x as u32),
            Type::Bool => Literal::from(x != 0),
            Type::Index => Literal::index(x),
            float => Literal::of(float, x as f64),
        };
        Ok(self.inner()?.literal(literal).index())
    }

    fn dim(&mut self, id: usize, k: usize) -> PyResult<usize> {
        Ok(self.inner()?.dim(array(id), k).index())
    }

    fn unary(&mut self, op: &str, a: usize) -> PyResult<usize> {
        Ok(self.inner()?.unary(named(UNARY, op)?, value(a)).index())
    }

    fn binary(&mut self, op: &str, a: usize, b: usize) -> PyResult<usize> {
        Ok(self.inner()?.binary(named(BINARY, op)?, value(a), value(b)).index())
    }

    fn compare(&mut self, op: &str, a: usize, b: usize) -> PyResult<usize> {
        Ok(self.inner()?.compare(named(COMPARE, op)?, value(a), value(b)).index())
    }

    fn select(&mut self, c: usize, a: usize, b: usize) -> PyResult<usize> {
        Ok(self.inner()?.select(value(c), value(a), value(b)).index())
    }

    fn fma(&mut self, a: usize, b: usize, c: usize) -> PyResult<usize> {
        Ok(self.inner()?.fma(value(a), value(b), value(c)).index())
    }

    fn cast(&mut self, a: usize, ty: &str) -> PyResult<usize> {
        Ok(self.inner()?.cast(value(a), named(TYPES, ty)?).index())
    }

    fn math(&mut self, function: &str, args: Vec<usize>) -> PyResult<usize> {
        let found = Function::ALL.iter().find(|known| known.name() == function);
        let found =
            found.ok_or_else(|| PyValueError::new_err(format!("there is no function `{function}`")))?;
        Ok(self.inner()?.math(*found, &values(&args)).index())
    }

    fn rand(&mut self, ty: &str, seed: usize, counter: usize) -> PyResult<usize> {
        Ok(self.inner()?.rand(named(TYPES, ty)?, value(seed), value(counter)).index())
    }

    fn get(&mut self, local: usize) -> PyResult<usize> {
        Ok(self.inner()?.get(LocalId::from_index(local)).index())
    }

    fn load(&mut self, id: usize, index: Vec<usize>) -> PyResult<usize> {
        Ok(self.inner()?.load(array(id), &values(&index)).index())
    }

    fn store(&mut self, id: usize, index: Vec<usize>, x: usize) -> PyResult<()> {
        self.inner()?.store(array(id), &values(&index), value(x));
        Ok(())
    }

    fn store_unique(&mut self, id: usize, index: Vec<usize>, x: usize) -> PyResult<()> {
        self.inner()?.store_unique(array(id), &values(&index), value(x));
        Ok(())
    }

    fn update(&mut self, how: &str, id: usize, index: Vec<usize>, x: usize) -> PyResult<()> {
        self.inner()?.update(named(COMBINE, how)?, array(id), &values(&index), value(x));
        Ok(())
    }

    fn local(&mut self, name: &str, init: usize) -> PyResult<usize> {
        Ok(self.inner()?.local(name, value(init)).index())
    }

    /// A variable of the front end's own, with a number that tells it from others.
    fn numbered_local(&mut self, name: &str, init: usize) -> PyResult<usize> {
        let builder = self.inner()?;
        let name = format!("{name}_{}", builder.program().locals.len());
        Ok(builder.local(&name, value(init)).index())
    }

    fn set(&mut self, local: usize, x: usize) -> PyResult<()> {
        self.inner()?.set(LocalId::from_index(local), value(x));
        Ok(())
    }

    fn swap(&mut self, a: usize, b: usize) -> PyResult<()> {
        self.inner()?.swap(array(a), array(b));
        Ok(())
    }

    fn fill(&mut self, a: usize, x: usize) -> PyResult<()> {
        self.inner()?.fill(array(a), value(x));
        Ok(())
    }

    fn copy(&mut self, from: usize, to: usize) -> PyResult<()> {
        self.inner()?.copy(array(from), array(to));
        Ok(())
    }

    fn matmul(&mut self, a: usize, b: usize, c: usize) -> PyResult<()> {
        self.inner()?.matmul(array(a), array(b), array(c));
        Ok(())
    }

    fn scan(&mut self, x: usize, out: usize) -> PyResult<()> {
        self.inner()?.scan(array(x), array(out));
        Ok(())
    }

    fn compact(&mut self, flags: usize, out: usize, count: usize) -> PyResult<()> {
        self.inner()?.compact(array(flags), array(out), array(count));
        Ok(())
    }

    fn begin_if(&mut self, condition: usize) -> PyResult<()> {
        self.inner()?.begin_if(value(condition));
        Ok(())
    }

    fn begin_else(&mut self) -> PyResult<()> {
        self.inner()?.begin_else();
        Ok(())
    }

    fn end_if(&mut self) -> PyResult<()> {
        self.inner()?.end_if();
        Ok(())
    }

    fn end_value_if(&mut self, local: usize) -> PyResult<usize> {
        Ok(self.inner()?.end_value_if(LocalId::from_index(local)).index())
    }

    fn begin_for(&mut self, name: &str, from: usize, to: usize) -> PyResult<usize> {
        Ok(self.inner()?.begin_for(name, value(from), value(to)).index())
    }

    fn begin_while(&mut self) -> PyResult<()> {
        self.inner()?.begin_while();
        Ok(())
    }

    fn while_condition(&mut self, condition: usize) -> PyResult<()> {
        self.inner()?.while_condition(value(condition));
        Ok(())
    }

    fn begin_loop(&mut self) -> PyResult<()> {
        self.inner()?.begin_loop();
        Ok(())
    }

    #[pyo3(signature = (until=None))]
    fn end_loop(&mut self, until: Option<usize>) -> PyResult<()> {
        self.inner()?.end_loop(until.map(value));
        Ok(())
    }

    fn reverse(&mut self, how: &str, number: u64) -> PyResult<()> {
        let hint = match how {
            "store_all" => ReverseHint::StoreAll,
            "periodic" => ReverseHint::Periodic(number),
            "revolve" => ReverseHint::Revolve(number),
            "online" => ReverseHint::Online(number),
            "mixed" => ReverseHint::Mixed(number),
            _ => return Err(PyValueError::new_err(format!("there is no schedule `{how}`"))),
        };
        self.inner()?.reverse(hint);
        Ok(())
    }

    fn relaxed(&mut self) -> PyResult<()> {
        self.inner()?.relaxed();
        Ok(())
    }

    fn begin_par(&mut self, ranges: Vec<(String, usize, usize)>) -> PyResult<Vec<usize>> {
        let ranges: Vec<(&str, ValueId, ValueId)> =
            ranges.iter().map(|(name, from, to)| (name.as_str(), value(*from), value(*to))).collect();
        Ok(self.inner()?.begin_par(&ranges).into_iter().map(ValueId::index).collect())
    }

    fn end_par(&mut self) -> PyResult<()> {
        self.inner()?.end_par();
        Ok(())
    }

    /// `undo` is `None`, or the arrays; all that the region writes for an empty list.
    fn begin_region(
        &mut self,
        family: &str,
        variant: &str,
        flag: Option<usize>,
        undo: Option<Vec<usize>>,
    ) -> PyResult<()> {
        let label = Label { family: family.to_string(), variant: variant.to_string() };
        let undo = match undo {
            None => Undo::Nothing,
            Some(arrays) if arrays.is_empty() => Undo::Everything,
            Some(arrays) => Undo::Arrays(arrays.into_iter().map(array).collect()),
        };
        self.inner()?.begin_region(label, flag.map(array), undo);
        Ok(())
    }

    fn end_region(&mut self) -> PyResult<()> {
        self.inner()?.end_region();
        Ok(())
    }

    fn begin_call(&mut self, name: &str) -> PyResult<()> {
        self.inner()?.begin_call(name);
        Ok(())
    }

    fn end_call(&mut self) -> PyResult<()> {
        self.inner()?.end_call();
        Ok(())
    }

    /// A run error with this text where the condition does not hold.
    fn assertion(&mut self, condition: usize, text: &str) -> PyResult<()> {
        self.inner()?.assert(value(condition), text);
        Ok(())
    }

    fn flaw(&mut self, message: &str) -> PyResult<()> {
        self.inner()?.flaw("1", message);
        Ok(())
    }

    /// The program, verified.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Ir> {
        let builder = self.inner.take().ok_or_else(|| PyValueError::new_err("this builder has finished"))?;
        let program = builder.finish().map_err(|error| errors::of_ir(py, &error))?;
        Ok(Ir { program: Arc::new(program), items: Arc::default() })
    }
}

/// A program that was built.
#[pyclass(module = "ebbtide._native", frozen)]
#[derive(Clone)]
pub struct Ir {
    pub program: Arc<Program>,
    /// Parameters whose elements are small vectors or matrices, and the last extents of their shapes.
    pub items: Arc<Vec<(usize, Vec<usize>)>>,
}

/// A parameter: its name, its type, its rank (`None` of a scalar), and whether it is written.
type ParamInfo = (String, &'static str, Option<usize>, bool);

#[pymethods]
impl Ir {
    fn __str__(&self) -> String {
        self.program.to_string()
    }

    /// The hash of what the program means, as text.
    #[getter]
    fn hash(&self) -> String {
        self.program.hash().to_string()
    }

    #[getter]
    fn params(&self) -> Vec<ParamInfo> {
        let program = &self.program;
        let info = |param: &Param| match *param {
            Param::Array(a) => {
                let decl = program.array(a);
                let written = decl.role == Role::Param(Access::Write);
                (decl.name.clone(), type_name(decl.ty), Some(decl.rank), written)
            }
            Param::Scalar(s) => {
                let decl = &program.scalars[s.index()];
                (decl.name.clone(), type_name(decl.ty), None, false)
            }
        };
        program.params.iter().map(info).collect()
    }

    /// The same program with multiply-adds.
    fn with_fma(&self) -> Ir {
        let program = Arc::new(ir::passes::fuse_multiply_add(&self.program));
        Ir { program, items: self.items.clone() }
    }

    /// The same program, whose arguments must have these last extents.
    fn with_items(&self, items: Vec<(usize, Vec<usize>)>) -> Ir {
        Ir { program: self.program.clone(), items: Arc::new(items) }
    }

    /// The text of a derivative: of `grad` and `vjp` the adjoint, of `jvp` the tangent, of `hvp` the adjoint of that.
    fn derivative_text(
        &self,
        py: Python<'_>,
        kind: &str,
        of: String,
        wrt: Vec<String>,
        values: Vec<String>,
    ) -> PyResult<String> {
        let failed = |error: autodiff::Error| errors::exception(py, &error.into());
        if kind == "grad" || kind == "vjp" {
            let request = autodiff::Request { of, wrt, values, seeded: kind == "vjp", ..Default::default() };
            let made = autodiff::gradient_to_show(&self.program, &request).map_err(failed)?;
            return Ok(made.program.to_string());
        }
        let tangent = autodiff::tangent(&self.program, &wrt).map_err(failed)?;
        if kind == "jvp" {
            return Ok(tangent.program.to_string());
        }
        let of = tangent.dots.get(&of).cloned().unwrap_or_else(|| format!("dot_{of}"));
        let request = autodiff::Request { of, wrt, may_be_zero: true, ..autodiff::Request::default() };
        let made = autodiff::gradient_to_show(&tangent.program, &request).map_err(failed)?;
        Ok(made.program.to_string())
    }
}
