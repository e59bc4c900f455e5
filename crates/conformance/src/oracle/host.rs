//! The host that a yielding program asks.

use std::collections::BTreeMap;

use ebbtide_ir::{Access, Label, Literal, Param, Role};

use super::Stop;
use super::machine::{Machine, Taped};

/// Where and why a program yielded.
#[derive(Clone, Debug)]
pub struct Yield {
    /// The label of the region.
    pub label: Label,
    /// The value of the flag.
    pub reason: i64,
}

/// The arrays that the caller lent for writing, by the names of their parameters. One of rank 1 may get another length.
pub type Lent = BTreeMap<String, Vec<Literal>>;

/// What the host does at a yield: a function of what it is given alone, so that it does the same in every run.
pub type Host<'h> = dyn Fn(&Yield, &mut Lent) + Send + Sync + 'h;

impl<'p> Machine<'p> {
    /// Asks the host, and says whether it changed a shape. What it changes is constant from then on.
    pub(super) fn ask(&mut self, host: &Host<'_>, at: &Yield) -> Result<bool, Stop> {
        let lent = self.program.params.iter().filter_map(|param| match param {
            Param::Array(id) if self.program.array(*id).role == Role::Param(Access::Write) => Some(*id),
            _ => None,
        });
        let ids: Vec<_> = lent.collect();
        let mut arrays = Lent::new();
        for id in &ids {
            let decl = self.program.array(*id);
            let elements = &self.arrays[id.index()].elements;
            let literals = elements.iter().map(|e| Literal::from_bits(decl.ty, e.bits)).collect();
            arrays.insert(decl.name.clone(), literals);
        }
        host(at, &mut arrays);
        let mut reshaped = false;
        for id in ids {
            let decl = self.program.array(id);
            let array = &mut self.arrays[id.index()];
            let elements = &mut array.elements;
            let Some(new) =
                arrays.get(&decl.name).filter(|new| new.len() == elements.len() || decl.rank == 1)
            else {
                return Err(Stop::Fault(format!("the host gave `{}` another length", decl.name)));
            };
            if new.len() != elements.len() {
                array.shape = vec![new.len() as i64];
                elements.resize_with(new.len(), || Taped::constant(0));
                reshaped = true;
            }
            for (element, new) in elements.iter_mut().zip(new) {
                if element.bits != new.bits() {
                    *element = Taped::constant(new.bits());
                }
            }
        }
        Ok(reshaped)
    }
}
