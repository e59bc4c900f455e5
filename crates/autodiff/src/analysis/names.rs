//! The parameters that a request names.

use ebbtide_ir::{ArrayId, Op, Program, Role, ScalarId};

use crate::analysis::activity::Activity;
use crate::error::Error;
use crate::request::{Request, check_inputs, parameter_names};

/// The parameters that a request names.
pub(crate) struct Names {
    pub of: ArrayId,
    pub arrays: Vec<ArrayId>,
    pub scalars: Vec<ScalarId>,
    pub values: Vec<ArrayId>,
}

impl Names {
    pub fn find(source: &Program, request: &Request) -> Result<Names, Error> {
        let unknown = |name: &str| Error::UnknownName {
            program: source.name.clone(),
            name: name.to_string(),
            known: parameter_names(source),
        };
        let array = |name: &str| {
            let id = source.find_array(name).filter(|id| matches!(source.array(*id).role, Role::Param(_)));
            let id = id.ok_or_else(|| unknown(name))?;
            let ty = source.array(id).ty;
            if ty.is_float() { Ok(id) } else { Err(Error::NotDifferentiable { name: name.to_string(), ty }) }
        };
        check_inputs(source, &request.wrt)?;
        let of = array(&request.of)?;
        if !request.seeded && source.array(of).rank != 0 {
            return Err(Error::NotScalar { name: request.of.clone(), rank: source.array(of).rank });
        }
        let mut names = Names { of, arrays: Vec::new(), scalars: Vec::new(), values: Vec::new() };
        for name in &request.wrt {
            match source.find_scalar(name) {
                Some(id) if !source.scalars[id.index()].ty.is_float() => {
                    let ty = source.scalars[id.index()].ty;
                    return Err(Error::NotDifferentiable { name: name.clone(), ty });
                }
                Some(id) => names.scalars.push(id),
                None => names.arrays.push(array(name)?),
            }
        }
        for name in &request.values {
            names.values.push(source.find_array(name).ok_or_else(|| unknown(name))?);
        }
        Ok(names)
    }

    pub fn check(&self, source: &Program, request: &Request, activity: &Activity) -> Result<(), Error> {
        if request.may_be_zero {
            return Ok(());
        }
        let arrays =
            self.arrays.iter().map(|a| (source.array(*a).name.as_str(), activity.arrays.contains(a)));
        let scalars = self.scalars.iter().map(|s| {
            let active = activity.values.iter().any(|v| *source.op(*v) == Op::Scalar(*s));
            (source.scalars[s.index()].name.as_str(), active)
        });
        let (active, inactive): (Vec<_>, Vec<_>) = arrays.chain(scalars).partition(|(_, active)| *active);
        let unrelated = inactive.into_iter().find_map(|(name, _)| {
            // A member of a struct that was asked for as a whole may have no influence, if another one has.
            match request.structs.iter().find(|path| is_member(name, path)) {
                Some(path) if active.iter().any(|(other, _)| is_member(other, path)) => None,
                Some(path) => Some(path.as_str()),
                None => Some(name),
            }
        });
        match unrelated {
            Some(wrt) => Err(Error::Independent {
                program: source.name.clone(),
                of: request.of.clone(),
                wrt: wrt.to_string(),
            }),
            None => Ok(()),
        }
    }
}

/// Is this the name of a member of the struct at `path`, as `w.grid.u` is of `w` and of `w.grid`?
fn is_member(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}
