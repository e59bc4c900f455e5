//! Where a program yielded.

use std::path::PathBuf;

use ebbtide_ir::Label;
use ebbtide_runtime::Yielded as At;
use pyo3::prelude::*;

use crate::errors;

/// Where a program yielded, and why. It can be resumed there, moved to another label, or stored.
#[pyclass(module = "ebbtide._native", frozen)]
pub struct Yielded {
    pub at: At,
}

pub fn label(family: &str, variant: &str) -> Label {
    Label { family: family.to_string(), variant: variant.to_string() }
}

#[pymethods]
impl Yielded {
    /// The value of the flag.
    #[getter]
    fn reason(&self) -> i64 {
        self.at.reason()
    }

    /// The position in the program, like `simulate/for t=41/Stage::Solve`.
    #[getter]
    fn position(&self) -> String {
        self.at.position().to_string()
    }

    /// The label: the name of its enum and its own.
    #[getter]
    fn label(&self) -> (String, String) {
        let label = self.at.label_name();
        (label.family.clone(), label.variant.clone())
    }

    /// Is it at this member of an enum?
    #[pyo3(name = "is_at")]
    fn is_at(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let variant: String = member.getattr("name")?.extract()?;
        let family = member.get_type().getattr("__name__")?.extract::<String>()?;
        Ok(*self.at.label_name() == label(&family, &variant))
    }

    /// The same yield, moved to another label.
    fn to(&self, py: Python<'_>, member: &Bound<'_, PyAny>) -> PyResult<Yielded> {
        let variant: String = member.getattr("name")?.extract()?;
        let family = member.get_type().getattr("__name__")?.extract::<String>()?;
        let at = self.at.to(label(&family, &variant)).map_err(|error| errors::exception(py, &error))?;
        Ok(Yielded { at })
    }

    /// Writes it to a file, for this process or another one.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.at.save(path).map_err(|error| errors::exception(py, &error))
    }

    fn __repr__(&self) -> String {
        format!("Yielded({} at {})", self.at.reason(), self.at.position())
    }
}
