//! The collective operations: their names, and what they do on the host.

use std::sync::Arc;

use super::{Transport, Way, current, reduce, statement};
use crate::syntax::Program;
use crate::syntax::{HostArg, Operation, Rules, Work};
use crate::syntax::{Literal, Type};

/// An operation that all parts execute together.
///
/// Arguments, in order, with what is written in brackets:
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// `[arrays…]`: halos take what their owners hold.
    Exchange,
    /// `[arrays…]`: what is in halos is added to its owners, in the order of the parts' numbers; then halos are zero. It is
    /// the transpose of [`Collective::Exchange`].
    ExchangeAdd,
    /// `[arrays…]`: the sums over all parts, in the order of their numbers.
    AllSum,
    /// `[array] [who]`: the maxima over all parts, and the least part that attains each.
    AllMax,
    /// `[array] [who]`: the minima.
    AllMin,
    /// `who [array]`: the elements of the part that `who` names.
    Choose,
    /// `who [array]`: the sums over all parts on the part that `who` names, zero on the others.
    ChooseTransposed,
    /// `arrays…`: the arrays have the same bytes on all parts.
    Shared,
    /// `value [seed]`: one on part 0, zero on the others. The value must be the same on all parts.
    Seed,
    /// `[derivative] shared`: the sum over all parts of derivatives with respect to what they share: an array or a scalar.
    SumShared,
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 10] = [
        Collective::Exchange,
        Collective::ExchangeAdd,
        Collective::AllSum,
        Collective::AllMax,
        Collective::AllMin,
        Collective::Choose,
        Collective::ChooseTransposed,
        Collective::Shared,
        Collective::Seed,
        Collective::SumShared,
    ];

    /// Its name in programs; no operation of a user can have it.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Exchange => "parts::exchange",
            Collective::ExchangeAdd => "parts::exchange_add",
            Collective::AllSum => "parts::all_sum",
            Collective::AllMax => "parts::all_max",
            Collective::AllMin => "parts::all_min",
            Collective::Choose => "parts::choose",
            Collective::ChooseTransposed => "parts::choose_transposed",
            Collective::Shared => "parts::shared",
            Collective::Seed => "parts::seed",
            Collective::SumShared => "parts::sum_shared",
        }
    }

    /// The collective of this name.
    pub fn named(name: &str) -> Option<Collective> {
        Collective::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// The operation, with these derivatives.
    pub fn operation(self, rules: Rules) -> Operation {
        let work = Work::Host(Arc::new(move |args: &mut [HostArg<'_>]| self.run(args)));
        Operation { name: self.name().to_string(), work, rules }
    }

    fn run(self, args: &mut [HostArg<'_>]) -> Result<(), String> {
        match current() {
            Some(transport) => self.together(&*transport, args),
            None => self.alone(args),
        }
    }

    /// Outside of a run on parts there is one part.
    fn alone(self, args: &mut [HostArg<'_>]) -> Result<(), String> {
        match (self, args) {
            (Collective::Exchange | Collective::ExchangeAdd, _) => Err(
                "it was launched outside of a run on parts: there is no grid whose halos could be exchanged; launch it \
                 inside `Team::run`"
                    .to_string(),
            ),
            (Collective::AllMax | Collective::AllMin, [_, HostArg::Write { bytes, .. }]) => {
                bytes.fill(0);
                Ok(())
            }
            (Collective::Seed, [_, HostArg::Write { ty, bytes, .. }]) => {
                reduce::fill(bytes, Literal::of(*ty, 1.0));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn together(self, transport: &dyn Transport, args: &mut [HostArg<'_>]) -> Result<(), String> {
        let at = statement();
        let gather = |own: &[u8]| transport.gather(&at, own).map_err(|stop| stop.to_string());
        match (self, args) {
            (Collective::Exchange, args) => transport.exchange(&at, Way::Fill, args),
            (Collective::ExchangeAdd, args) => transport.exchange(&at, Way::Add, args),
            (Collective::AllSum, args) => {
                let own: Vec<u8> = args.iter().flat_map(bytes).copied().collect();
                let all = gather(&own)?;
                let mut from = 0;
                for arg in args {
                    let HostArg::Write { ty, bytes, .. } = arg else { continue };
                    let to = from + bytes.len();
                    reduce::sum(*ty, &pieces(&all, from..to)?, bytes);
                    from = to;
                }
                Ok(())
            }
            (Collective::AllMax, [HostArg::Write { ty, bytes, .. }, HostArg::Write { bytes: who, .. }]) => {
                let all = gather(bytes)?;
                reduce::extreme(crate::Combine::Max, *ty, &pieces(&all, 0..bytes.len())?, bytes, who);
                Ok(())
            }
            (Collective::AllMin, [HostArg::Write { ty, bytes, .. }, HostArg::Write { bytes: who, .. }]) => {
                let all = gather(bytes)?;
                reduce::extreme(crate::Combine::Min, *ty, &pieces(&all, 0..bytes.len())?, bytes, who);
                Ok(())
            }
            (Collective::Choose, [HostArg::Read { bytes: who, .. }, HostArg::Write { ty, bytes, .. }]) => {
                let all = gather(bytes)?;
                reduce::choose(ty.size(), &pieces(&all, 0..bytes.len())?, who, bytes);
                Ok(())
            }
            (
                Collective::ChooseTransposed,
                [HostArg::Read { bytes: who, .. }, HostArg::Write { ty, bytes, .. }],
            ) => {
                let all = gather(bytes)?;
                reduce::sum(*ty, &pieces(&all, 0..bytes.len())?, bytes);
                reduce::keep_own(ty.size(), transport.part(), who, bytes);
                Ok(())
            }
            (Collective::Shared, args) => {
                let own: Vec<u8> = args.iter().flat_map(bytes).copied().collect();
                same(&gather(&digest(&own))?, "an array that `shared` names")
            }
            (Collective::Seed, [HostArg::Read { bytes: value, .. }, HostArg::Write { ty, bytes, .. }]) => {
                same(
                    &gather(value)?,
                    "the value that is differentiated (`all_sum` it at the end of the program: the gradient of a run on \
                     parts is that of a value that all parts share)",
                )?;
                let one = if transport.part() == 0 { 1.0 } else { 0.0 };
                reduce::fill(bytes, Literal::of(*ty, one));
                Ok(())
            }
            (Collective::SumShared, [HostArg::Write { ty, bytes: own, .. }, shared]) => {
                let (mut message, what) = match shared {
                    HostArg::Scalar(literal) => (literal.bits().to_ne_bytes().to_vec(), "a scalar"),
                    arg => (digest(bytes(arg)), "an array that `shared` names"),
                };
                let key = message.len();
                message.extend_from_slice(own);
                let all = gather(&message)?;
                let keys: Vec<Vec<u8>> = all.iter().map(|m| m[..key.min(m.len())].to_vec()).collect();
                same(&keys, what)?;
                reduce::sum(*ty, &pieces(&all, key..key + own.len())?, own);
                Ok(())
            }
            _ => Err("its arguments are not those of this collective: this is a flaw of Ebbtide".to_string()),
        }
    }
}

fn bytes<'a>(arg: &'a HostArg<'_>) -> &'a [u8] {
    match arg {
        HostArg::Read { bytes, .. } => bytes,
        HostArg::Write { bytes, .. } => bytes,
        HostArg::Scalar(_) => &[],
    }
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    blake3::hash(bytes).as_bytes().to_vec()
}

/// The same range of what every part sent.
fn pieces(all: &[Vec<u8>], range: std::ops::Range<usize>) -> Result<Vec<&[u8]>, String> {
    let piece = |(part, bytes): (usize, &'_ Vec<u8>)| {
        bytes.get(range.clone()).map(|_| ()).ok_or_else(|| {
            format!(
                "its arrays have another size on part {part}: arrays that are summed over all parts have the same shape \
                 on all of them"
            )
        })
    };
    all.iter().enumerate().try_for_each(piece)?;
    Ok(all.iter().filter_map(|bytes| bytes.get(range.clone())).collect())
}

/// Do all parts say the same?
fn same(all: &[Vec<u8>], what: &str) -> Result<(), String> {
    match all.iter().position(|bytes| Some(bytes) != all.first()) {
        Some(part) => Err(format!("{what} differs between part 0 and part {part}")),
        None => Ok(()),
    }
}

/// Is this the name of a collective?
pub fn is_collective(name: &str) -> bool {
    name.starts_with("parts::")
}

/// Has the program collectives?
pub fn has_collectives(program: &Program) -> bool {
    program.operations.iter().any(|operation| is_collective(&operation.name))
}

/// The type of the numbers of parts in arrays.
pub(super) const WHO: Type = Type::I32;

impl Collective {
    /// The type of the array that says which part attains an extreme.
    pub fn who_type() -> Type {
        WHO
    }
}
