//! Arguments of a call: Python objects, taken apart into arrays and scalars, and made arguments of a launch.

use std::ptr::NonNull;

use ebbtide_ir::{Access, Indices, Literal, Param, Program, Role, Type};
use ebbtide_runtime::{AnyArray, Arg, Device, return_contents};
use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

use crate::device_array::DeviceArray;
use crate::{device, dlpack, errors};

/// In which memory elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Host,
    /// That of the device on which the program runs.
    Device,
}

/// The elements of an array of somebody else, where they are.
#[derive(Clone, Copy)]
pub struct Elements {
    pub ty: Type,
    pub start: *mut u8,
    pub shape: [usize; Indices::MAX_RANK],
    pub rank: usize,
    pub place: Where,
    /// In C order, and aligned.
    pub contiguous: bool,
    pub writeable: bool,
}

impl Elements {
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank]
    }

    fn bytes(&self) -> usize {
        self.shape().iter().product::<usize>() * self.ty.size()
    }

    fn overlaps(&self, other: &Elements) -> bool {
        let (a, b) = (self.start.addr(), other.start.addr());
        a < b + other.bytes() && b < a + self.bytes()
    }
}

/// One array or scalar among the arguments.
#[derive(Clone, Copy)]
pub enum Leaf {
    Array(Elements),
    Float(f64),
    Int(i64),
    Bool(bool),
    /// A scalar of NumPy's, of a type that Python does not have.
    Typed(Literal),
}

// SAFETY: the pointer is used while the objects that own the memory are kept by the caller of the launch.
unsafe impl Send for Leaf {}

impl Leaf {
    /// Its part of a signature: programs are built once for each.
    fn code(&self) -> u8 {
        match self {
            Leaf::Array(e) => 64 + e.ty as u8 * 5 + e.rank as u8,
            Leaf::Float(_) => 1,
            Leaf::Int(_) => 2,
            Leaf::Bool(_) => 3,
            Leaf::Typed(literal) => 8 + literal.ty() as u8,
        }
    }
}

/// The arguments of a call, taken apart, and what must be kept until it ends.
#[derive(Default)]
pub struct Leaves<'py> {
    pub leaves: Vec<Leaf>,
    pub key: Vec<u8>,
    capsules: Vec<Bound<'py, PyAny>>,
    /// The name of the device on which the program runs; `None` is the default one.
    device: Option<String>,
}

static FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl<'py> Leaves<'py> {
    pub fn with_room(leaves: usize, device: Option<&str>) -> Leaves<'py> {
        Leaves {
            leaves: Vec::with_capacity(leaves),
            key: Vec::with_capacity(leaves),
            capsules: Vec::new(),
            device: device.map(str::to_string),
        }
    }

    fn add(&mut self, leaf: Leaf) {
        self.key.push(leaf.code());
        self.leaves.push(leaf);
    }

    /// Adds an object; `path` is its name for messages.
    pub fn push(&mut self, program: &str, path: &str, object: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            let elements = numpy_elements(array).map_err(|why| refused(object, program, path, &why))?;
            self.add(Leaf::Array(elements));
        } else if let Ok(x) = object.cast_exact::<PyFloat>() {
            self.add(Leaf::Float(x.value()));
        } else if let Ok(x) = object.cast::<PyBool>() {
            self.add(Leaf::Bool(x.is_true()));
        } else if let Ok(x) = object.cast::<PyInt>() {
            let x = x.extract().map_err(|_| refused(object, program, path, "is beyond 64 bits"))?;
            self.add(Leaf::Int(x));
        } else {
            return self.push_other(program, path, object);
        }
        Ok(())
    }

    fn push_other(&mut self, program: &str, path: &str, object: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = object.py();
        if object.hasattr("__dataclass_fields__")? {
            let fields = FIELDS.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
                Ok(py.import("ebbtide._types")?.getattr("fields_of")?.unbind())
            })?;
            let names = fields.bind(py).call1((object.get_type(),))?;
            for name in names.cast::<PyTuple>()?.iter() {
                let name = name.cast::<PyString>()?.to_str()?.to_string();
                self.push(program, &format!("{path}.{name}"), &object.getattr(name.as_str())?)?;
            }
            return Ok(());
        }
        if let Ok(ours) = object.cast::<DeviceArray>() {
            let device = device::get(py, self.device.as_deref())?;
            let found = ours.get().elements_for(py, &device)?;
            self.add(Leaf::Array(found.map_err(|why| refused(object, program, path, &why))?));
            return Ok(());
        }
        if object.hasattr("__dlpack__")? {
            let found = dlpack::elements(object, &device::get(py, self.device.as_deref())?)?;
            let (elements, capsule) =
                found.map_err(|why| errors::launch(py, program, &format!("`{path}`: {why}")))?;
            self.capsules.push(capsule);
            self.add(Leaf::Array(elements));
            return Ok(());
        }
        // Scalars of NumPy that are not Python's own.
        if let Ok(dtype) = object.getattr("dtype") {
            let name: String = dtype.getattr("name")?.extract()?;
            let literal = match name.as_str() {
                "float32" => Some(Literal::from(object.extract::<f32>()?)),
                "float64" => Some(Literal::from(object.extract::<f64>()?)),
                "int32" => Some(Literal::from(object.extract::<i32>()?)),
                "int64" => Some(Literal::from(object.extract::<i64>()?)),
                "uint32" => Some(Literal::from(object.extract::<u32>()?)),
                "bool" => Some(Literal::from(object.is_truthy()?)),
                _ => None,
            };
            if let Some(literal) = literal {
                self.add(Leaf::Typed(literal));
                return Ok(());
            }
        }
        // A class of the user's that derives from `float`.
        if let Ok(x) = object.cast::<PyFloat>() {
            self.add(Leaf::Float(x.value()));
            return Ok(());
        }
        let ty = object.get_type().fully_qualified_name()?.to_string();
        let why = format!(
            "is a `{ty}`: programs take NumPy arrays, arrays with `__dlpack__`, numbers and dataclasses of these"
        );
        Err(refused(object, program, path, &why))
    }
}

fn refused(object: &Bound<'_, PyAny>, program: &str, path: &str, why: &str) -> PyErr {
    errors::launch(object.py(), program, &format!("`{path}` {why}"))
}

fn numpy_elements(array: &Bound<'_, PyUntypedArray>) -> Result<Elements, String> {
    let dtype = array.dtype();
    let ty = match dtype.num() {
        0 => Type::Bool,
        5 => Type::I32,
        6 => Type::U32,
        7 if dtype.itemsize() == 8 => Type::I64,
        7 => Type::I32,
        9 => Type::I64,
        11 => Type::F32,
        12 => Type::F64,
        _ => {
            return Err(format!(
                "has elements of type {dtype}; programs know float32, float64, int32, int64, uint32 and bool: convert it \
                 with `.astype(..)`"
            ));
        }
    };
    if dtype.is_native_byteorder() == Some(false) {
        return Err(
            "has its bytes in the order of another machine: convert it with `.astype(..)`".to_string()
        );
    }
    let rank = array.ndim();
    if rank > Indices::MAX_RANK {
        return Err(format!("has {rank} dimensions; arrays of programs have at most {}", Indices::MAX_RANK));
    }
    let mut shape = [0; Indices::MAX_RANK];
    shape[..rank].copy_from_slice(array.shape());
    // SAFETY: the object is an array, alive while it is borrowed; these fields are plain data.
    let (start, flags) = unsafe {
        let raw = &*array.as_array_ptr();
        (raw.fields.data.cast::<u8>(), raw.fields.flags)
    };
    let whole = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    Ok(Elements {
        ty,
        start,
        shape,
        rank,
        place: Where::Host,
        contiguous: flags & whole == whole,
        writeable: flags & NPY_ARRAY_WRITEABLE != 0,
    })
}

/// What the arrays of a launch are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// As the program declares.
    Declared,
    /// To be read: a gradient works on copies.
    Reading,
}

/// One argument of a launch in the form that the engine takes.
pub enum Made {
    Array(AnyArray),
    Scalar(Literal),
}

/// The arguments of one launch.
pub struct Launch {
    pub made: Vec<Made>,
    written: Vec<bool>,
    homes: Vec<*const u8>,
}

// SAFETY: the addresses are compared, never followed.
unsafe impl Send for Launch {}

impl Launch {
    pub fn new(
        py: Python<'_>,
        program: &Program,
        device: &Device,
        leaves: &[Leaf],
        purpose: Use,
    ) -> PyResult<Launch> {
        let fail = |message: String| errors::launch(py, &program.name, &message);
        if leaves.len() != program.params.len() {
            let (given, taken) = (leaves.len(), program.params.len());
            return Err(fail(format!("{given} arguments for {taken} parameters")));
        }
        let mut launch = Launch {
            made: Vec::with_capacity(leaves.len()),
            written: Vec::with_capacity(leaves.len()),
            homes: Vec::new(),
        };
        for (k, (param, leaf)) in program.params.iter().zip(leaves).enumerate() {
            let mut written = false;
            let made = match (param, leaf) {
                (Param::Array(id), Leaf::Array(elements)) => {
                    let decl = program.array(*id);
                    written = purpose == Use::Declared && decl.role == Role::Param(Access::Write);
                    check(&decl.name, elements, written).map_err(fail)?;
                    reachable(device, &decl.name, elements).map_err(fail)?;
                    if written && let Some(other) = overlapping(program, leaves, k) {
                        return Err(fail(format!(
                            "`{}` and `{other}` share memory, and the program writes `{0}`: copy one of them",
                            decl.name
                        )));
                    }
                    if written {
                        launch.homes.push(elements.start);
                    }
                    Made::Array(lend(device, elements).map_err(|error| errors::exception(py, &error))?)
                }
                (Param::Scalar(id), Leaf::Array(_)) => {
                    let name = &program.scalars[id.index()].name;
                    return Err(fail(format!("`{name}` is a scalar, not an array")));
                }
                (Param::Scalar(id), leaf) => {
                    let decl = &program.scalars[id.index()];
                    Made::Scalar(scalar(&decl.name, decl.ty, leaf).map_err(fail)?)
                }
                (Param::Array(id), _) => {
                    let name = &program.array(*id).name;
                    return Err(fail(format!("`{name}` is an array, not a scalar")));
                }
            };
            launch.made.push(made);
            launch.written.push(written);
        }
        Ok(launch)
    }

    /// The arguments as the engine takes them.
    pub fn args(&mut self) -> Vec<Arg<'_>> {
        let each = self.made.iter_mut().zip(&self.written);
        each.map(|(made, written)| match (made, written) {
            (Made::Array(array), true) => Arg::Write(array.any_mut()),
            (Made::Array(array), false) => Arg::Read(array),
            (Made::Scalar(literal), _) => Arg::Scalar(*literal),
        })
        .collect()
    }

    /// Puts the contents of arrays that were swapped where the caller's names for them are.
    pub fn settle(&mut self) -> ebbtide_runtime::Result<()> {
        let each = self.made.iter_mut().zip(&self.written);
        let mut arrays: Vec<&mut AnyArray> = each
            .filter_map(|(made, written)| match made {
                Made::Array(array) if *written => Some(array),
                _ => None,
            })
            .collect();
        return_contents(&mut arrays, &self.homes)
    }
}

/// An array of the engine over elements that the caller keeps.
pub fn lend(device: &Device, elements: &Elements) -> Result<AnyArray, ebbtide_runtime::Error> {
    let start = NonNull::new(elements.start).unwrap_or(NonNull::<u64>::dangling().cast());
    // SAFETY: *Bounds* and *Validity*: the elements were described by their owner, in C order. *Liveness*: the object that
    // owns them is an argument of the call under way, and the array does not outlive that. *Exclusive access*: memory that
    // is written overlaps with no other argument (`overlapping`); that no other thread of Python uses it during the call is
    // the caller's side of the contract, as with every function of NumPy that releases the interpreter's lock.
    // On a device, the library was asked for the order of its stream (`dlpack::elements`), and dropping the array waits.
    unsafe {
        match elements.place {
            Where::Host => AnyArray::from_foreign(device, elements.ty, elements.shape(), start, Box::new(())),
            Where::Device => {
                AnyArray::from_foreign_on_device(device, elements.ty, elements.shape(), start, Box::new(()))
            }
        }
    }
}

/// An error in words where the device cannot use the elements in place.
pub fn reachable(device: &Device, name: &str, elements: &Elements) -> Result<(), String> {
    if elements.place == Where::Host && device.backend().memory().is_some() {
        return Err(format!(
            "`{name}` is in host memory, and this program runs on `{}`: programs work in place and never copy by themselves; \
             pass an array on the GPU (`.cuda()`, `jax.device_put`, `cupy.asarray`, `ebbtide.to_device`)",
            device.name()
        ));
    }
    Ok(())
}

fn check(name: &str, elements: &Elements, written: bool) -> Result<(), String> {
    if !elements.contiguous {
        let copy = match elements.place {
            Where::Host => format!("`np.ascontiguousarray({name})`"),
            Where::Device => format!("`{name}.contiguous()`"),
        };
        return Err(format!(
            "`{name}` is not contiguous in C order: programs work in place and never copy by themselves; pass {copy}{}",
            if written { ", and copy the result back" } else { "" }
        ));
    }
    if written && !elements.writeable {
        return Err(format!("`{name}` is written by the program, and this array is read-only: pass a copy"));
    }
    Ok(())
}

/// The name of another argument that shares memory with argument `k`.
fn overlapping(program: &Program, leaves: &[Leaf], k: usize) -> Option<String> {
    let Leaf::Array(mine) = &leaves[k] else { return None };
    let mut others = program.params.iter().zip(leaves).enumerate().filter(|(other, _)| *other != k);
    others.find_map(|(_, (param, leaf))| match (param, leaf) {
        (Param::Array(id), Leaf::Array(elements)) if mine.overlaps(elements) => {
            Some(program.array(*id).name.clone())
        }
        _ => None,
    })
}

/// A scalar argument in the type of its parameter, where that loses nothing that Python would keep.
pub fn scalar(name: &str, ty: Type, leaf: &Leaf) -> Result<Literal, String> {
    let whole = |x: i64| -> Option<Literal> {
        Some(match ty {
            Type::F32 => Literal::from(x as f32),
            Type::F64 => Literal::from(x as f64),
            Type::I32 => Literal::from(i32::try_from(x).ok()?),
            Type::I64 => Literal::from(x),
            Type::U32 => Literal::from(u32::try_from(x).ok()?),
            Type::Index => Literal::index(x),
            Type::Bool => return None,
        })
    };
    let (made, given) = match *leaf {
        Leaf::Float(x) => match ty {
            Type::F64 => (Some(Literal::from(x)), "a float".to_string()),
            Type::F32 => (Some(Literal::from(x as f32)), "a float".to_string()),
            _ => (None, "a float".to_string()),
        },
        Leaf::Int(x) => (whole(x), format!("the int {x}")),
        Leaf::Bool(x) => ((ty == Type::Bool).then(|| Literal::from(x)), "a bool".to_string()),
        Leaf::Typed(literal) => {
            let made = match literal.to_i64() {
                _ if literal.ty() == ty => Some(literal),
                Some(x) if literal.ty().is_integer() => whole(x),
                _ if literal.ty() == Type::F32 && ty == Type::F64 => {
                    Some(Literal::from(f64::from(f32::from_bits(literal.bits() as u32))))
                }
                _ if literal.ty() == Type::F64 && ty == Type::F32 => {
                    Some(Literal::from(f64::from_bits(literal.bits()) as f32))
                }
                _ => None,
            };
            (made, format!("a NumPy `{}`", literal.ty()))
        }
        Leaf::Array(_) => (None, "an array".to_string()),
    };
    made.ok_or_else(|| format!("`{name}` is `{}`, and {given} does not fit", crate::build::type_name(ty)))
}
