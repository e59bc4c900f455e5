//! Checked runs of the interpreter: the first NaN that is written stops them.

use super::Machine;
use crate::syntax::*;

/// What a run checks beyond the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Nothing.
    #[default]
    Usual,
    /// That no NaN is written to an array.
    Numbers,
}

impl<'p> Machine<'p, '_> {
    /// Remembers the statement that the run is in.
    pub(crate) fn within<R>(
        &mut self,
        stmt: &'p Stmt,
        run: impl FnOnce(&mut Self) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.trail.push(stmt);
        let result = run(self)?;
        self.trail.pop();
        Ok(result)
    }

    /// Is what was written to an element a number? It is not asked in usual runs.
    pub(crate) fn check_element(&self, array: ArrayId, at: usize, site: &Option<Site>) -> Result<(), Fault> {
        if self.modes.checks == Checks::Usual || self.is_number(array, at) {
            return Ok(());
        }
        let name = self.program.array(array).name.clone();
        let index = self.element_index(array, at).into();
        Err(Fault::NotANumber { array: name, index, position: self.whereabouts(), site: site.clone() })
    }

    /// The index of an element by its place in the array.
    pub(crate) fn element_index(&self, array: ArrayId, at: usize) -> Vec<i64> {
        let mut index = Vec::new();
        let mut rest = at as i64;
        for extent in self.arrays[array.index()].shape.iter().rev() {
            index.push(rest % extent);
            rest /= extent;
        }
        index.reverse();
        index
    }

    /// Is all that was written to these arrays a number?
    pub(crate) fn check_arrays(&self, arrays: &[ArrayId], site: &Option<Site>) -> Result<(), Fault> {
        if self.modes.checks == Checks::Usual {
            return Ok(());
        }
        for array in arrays.iter().filter(|a| self.program.array(**a).ty.is_float()) {
            let count = self.arrays[array.index()].shape.iter().product::<i64>() as usize;
            for at in 0..count {
                self.check_element(*array, at, site)?;
            }
        }
        Ok(())
    }

    fn is_number(&self, array: ArrayId, at: usize) -> bool {
        let bits = self.read(array, at);
        match self.program.array(array).ty {
            Type::F64 => !f64::from_bits(bits).is_nan(),
            Type::F32 => !f32::from_bits(bits as u32).is_nan(),
            _ => true,
        }
    }

    /// Where the run is, as positions print: `simulate/for t=41/par i=3`.
    pub(crate) fn whereabouts(&self) -> Box<str> {
        let name = |v: ValueId| self.program.value(v).name.clone().unwrap_or_else(|| "_".to_string());
        let value = |v: ValueId| Literal::from_bits(Type::Index, self.bits(v)).to_i64().unwrap_or(0);
        let mut path = self.program.name.clone();
        let mut iterations = self.iterations_done().iter();
        for stmt in &self.trail {
            path.push('/');
            match stmt {
                Stmt::Loop(l) => {
                    let iteration = iterations.next().copied().unwrap_or(0);
                    path += &match l.kind {
                        LoopKind::For { var, .. } => format!("for {}={}", name(var), value(var)),
                        LoopKind::While { .. } => format!("while={iteration}"),
                        LoopKind::Forever => format!("loop={iteration}"),
                    };
                }
                Stmt::Par(par) => {
                    let at: Vec<String> =
                        par.ranges.iter().map(|r| format!("{}={}", name(r.var), value(r.var))).collect();
                    path += &format!("par {}", at.join(" "));
                }
                Stmt::If(branch) if self.bits(branch.condition) != 0 => path += "if/then",
                Stmt::If(_) => path += "if/else",
                Stmt::Region(region) => path += &self.program.labels[region.label.index()].to_string(),
                Stmt::Call(call) => path += &call.name,
                _ => {}
            }
        }
        path.into()
    }
}
