//! Numbers of values that follow from what a program does, and not from the order in which its values were made.
//!
//! What is kept outside a program (its hash, states in files) speaks of values by these numbers: programs of one hash may have
//! other [`ValueId`]s for the same values.

use super::ids::ValueId;
use super::program::*;

/// The canonical numbers of the values of a program.
///
/// Values are numbered where a walk of the program first comes by them: the shapes of temporaries, then what each statement
/// uses, operands before what is computed from them. A `let` by itself uses nothing, unless it can fail; so a value on which nothing
/// depends has no number.
///
/// ```
/// use ebbtide_ir::{Access, Builder, Literal, Type};
///
/// let mut b = Builder::new("p");
/// let a = b.array("a", Type::F64, 0, Access::Write);
/// let (unused, one) = (b.literal(Literal::from(2.0)), b.literal(Literal::from(1.0)));
/// b.store(a, &[], one);
/// let numbering = b.finish()?.numbering();
/// assert_eq!((numbering.number(one), numbering.number(unused)), (Some(0), None));
/// assert_eq!(numbering.values(), [one]);
/// # Ok::<(), ebbtide_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// By value.
    numbers: Vec<Option<u32>>,
    /// By number.
    values: Vec<ValueId>,
}

impl Numbering {
    /// The number of a value; `None` if nothing depends on it.
    pub fn number(&self, value: ValueId) -> Option<usize> {
        self.numbers.get(value.index()).copied().flatten().map(|number| number as usize)
    }

    /// The values that have a number, in the order of their numbers.
    pub fn values(&self) -> &[ValueId] {
        &self.values
    }
}

impl Program {
    /// The canonical numbers of its values.
    pub fn numbering(&self) -> Numbering {
        let count = self.values.len();
        let numbering = Numbering { numbers: vec![None; count], values: Vec::new() };
        let mut numberer = Numberer { program: self, seen: vec![false; count], numbering };
        for array in &self.arrays {
            if let Role::Temp(shape) = &array.role {
                shape.iter().for_each(|v| numberer.mention(*v));
            }
        }
        walk(&self.body, &mut |stmt| self.mentions(stmt).into_iter().for_each(|v| numberer.mention(v)));
        numberer.numbering
    }

    /// The values that a statement makes necessary, those that it introduces first.
    fn mentions(&self, stmt: &Stmt) -> Vec<ValueId> {
        let mut mentions = match stmt {
            Stmt::Let(v) if self.may_fail(*v) => vec![*v],
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => vec![*var],
            Stmt::Par(par) => par.ranges.iter().map(|range| range.var).collect(),
            Stmt::Forward(f) => vec![f.from, f.to],
            Stmt::If(branch) => self.printed(branch),
            _ => Vec::new(),
        };
        mentions.extend(stmt.uses());
        mentions
    }

    /// The values that a branch prints, where it is one that prints.
    pub(super) fn printed(&self, branch: &Branch) -> Vec<ValueId> {
        let pieces = self.print(branch).map_or(&[][..], |print| &print.pieces);
        let values = |piece: &Piece| match piece {
            Piece::Value(values, _) => values.clone(),
            Piece::Text(_) => Vec::new(),
        };
        pieces.iter().flat_map(values).collect()
    }
}

struct Numberer<'p> {
    program: &'p Program,
    seen: Vec<bool>,
    numbering: Numbering,
}

impl Numberer<'_> {
    /// Numbers a value, and before it those that it is computed from. Expressions may be deep: there is no recursion.
    fn mention(&mut self, value: ValueId) {
        let mut stack = vec![(value, false)];
        while let Some((v, operands_are_numbered)) = stack.pop() {
            let Some(decl) = self.program.values.get(v.index()) else { continue };
            if operands_are_numbered {
                self.numbering.numbers[v.index()] = Some(self.numbering.values.len() as u32);
                self.numbering.values.push(v);
            } else if !std::mem::replace(&mut self.seen[v.index()], true) {
                stack.push((v, true));
                let operands: Vec<ValueId> = decl.op.operands().collect();
                stack.extend(operands.into_iter().rev().map(|operand| (operand, false)));
            }
        }
    }
}
