//! Plans of programs that run on the parts of a grid: all parts follow one.

use ebbtide_ir::Program;

use crate::error::Result;
use crate::gradient::plan::Budget;
use crate::gradient::planner::Need;
use crate::gradient::tiers::Reach;
use crate::launch::parts::{disagreed, gather_words, largest, together};

/// The share of one part in the memory that is free. The parts of a process share a device, those of a machine share its memory. All
/// parts look before the first of them allocates anything.
pub(crate) fn share(program: &Program, free: u64, on_device: bool) -> u64 {
    let Some(transport) = together(program) else { return free };
    let sharing = transport.sharing();
    let parts = if on_device { sharing.process } else { sharing.machine };
    free / parts.max(1) as u64
}

/// What a plan is made from, made the same on all parts: the largest arrays, the least memory.
pub(crate) fn agree(
    program: &Program,
    needs: &mut [(Vec<Need>, u64)],
    budget: &mut Budget,
    free: &mut u64,
) -> Result<()> {
    let Some(transport) = together(program) else { return Ok(()) };
    let at = format!("the plan of `{}`", program.name);
    // Least is largest of what is missing.
    let (kind, bytes) = match *budget {
        Budget::Bytes(bytes) => (vec![1, 0, 0], bytes),
        Budget::StoreAll => (vec![2, 0, 0], 0),
        Budget::Revolve { slots, block } => (vec![3, slots as u64, block], 0),
        Budget::Periodic { period } => (vec![4, period, 0], 0),
        Budget::Auto => (vec![0, 0, 0], 0),
    };
    let mut words = vec![!*free, !bytes];
    let sizes = words.len();
    for (needs, fixed) in needs.iter() {
        words.push(*fixed);
        needs.iter().for_each(|need| sizes_of(need, &mut words));
    }
    let mut exact = kind;
    exact.push(needs.len() as u64);
    for (needs, _) in needs.iter() {
        exact.push(needs.len() as u64);
        needs.iter().for_each(|need| counts_of(need, &mut exact));
    }
    let all = gather_words(&*transport, &at, &exact)?;
    if let Some(part) = all.iter().position(|words| *words != all[0]) {
        let message = format!(
            "parts 0 and {part} would run `{}` for other numbers of iterations or under other kinds of budgets",
            program.name
        );
        return Err(disagreed(part, message));
    }
    let agreed = largest(&*transport, &at, &words)?;
    *free = !agreed[0];
    if let Budget::Bytes(bytes) = budget {
        *bytes = !agreed[1];
    }
    let mut rest = agreed[sizes..].iter().copied();
    for (needs, fixed) in needs.iter_mut() {
        *fixed = rest.next().unwrap_or(*fixed);
        needs.iter_mut().for_each(|need| set_sizes(need, &mut rest));
    }
    Ok(())
}

/// Which gradient program a durable run follows: parts whose directory is still empty follow the others.
pub(crate) fn agree_variant(program: &Program, only: Option<usize>) -> Result<Option<usize>> {
    let Some(transport) = together(program) else { return Ok(only) };
    let at = format!("the gradient program of `{}`", program.name);
    let agreed = largest(&*transport, &at, &[only.map_or(0, |k| 1 + k as u64)])?;
    Ok(agreed[0].checked_sub(1).map(|k| k as usize))
}

/// How fast what is beyond memory is, as part 0 sees it.
pub(crate) fn agree_reach(program: &Program, reach: Option<Reach>) -> Result<Option<Reach>> {
    let Some(transport) = together(program) else { return Ok(reach) };
    let own = reach.map_or_else(Vec::new, Reach::to_words);
    let all = gather_words(&*transport, &format!("the tiers of `{}`", program.name), &own)?;
    Ok(all.first().and_then(|words| Reach::from_words(words)))
}

/// The depth of recursion is that of nesting in the source.
fn sizes_of(need: &Need, words: &mut Vec<u64>) {
    // Positive numbers have the order of their bits.
    words.extend([need.state, need.tape, need.tapes, need.work.max(0.0).to_bits(), need.reused]);
    need.inner.iter().for_each(|inner| sizes_of(inner, words));
}

fn set_sizes(need: &mut Need, words: &mut impl Iterator<Item = u64>) {
    let mut next = || words.next().unwrap_or(0);
    (need.state, need.tape, need.tapes) = (next(), next(), next());
    need.work = f64::from_bits(next());
    need.reused = next();
    need.inner.iter_mut().for_each(|inner| set_sizes(inner, words));
}

fn counts_of(need: &Need, words: &mut Vec<u64>) {
    words.extend([need.id.index() as u64, need.steps.map_or(u64::MAX, |n| n), need.inner.len() as u64]);
    need.inner.iter().for_each(|inner| counts_of(inner, words));
}

/// Does this hold on any part of a launch?
pub(crate) fn any(program: &Program, at: &str, own: bool) -> Result<bool> {
    let Some(transport) = together(program) else { return Ok(own) };
    Ok(largest(&*transport, at, &[u64::from(own)])?[0] != 0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ebbtide_ir::parts::{Collective, Ending, Sharing, Stop, Transport, Way, within};
    use ebbtide_ir::{Builder, HostArg};

    use super::*;

    /// The only part, which says that it shares memory with others.
    struct Crowded;

    impl Transport for Crowded {
        fn part(&self) -> usize {
            0
        }

        fn parts(&self) -> usize {
            1
        }

        fn threads(&self) -> Option<usize> {
            None
        }

        fn sharing(&self) -> Sharing {
            Sharing { process: 3, machine: 12 }
        }

        fn identity(&self) -> String {
            String::new()
        }

        fn gather(&self, _: &str, own: &[u8]) -> std::result::Result<Vec<Vec<u8>>, Stop> {
            Ok(vec![own.to_vec()])
        }

        fn exchange(&self, _: &str, _: Way, _: &mut [HostArg<'_>]) -> std::result::Result<(), String> {
            Ok(())
        }

        fn end(&self, _: &str, _: Ending) -> std::result::Result<(), Stop> {
            Ok(())
        }
    }

    #[test]
    fn parts_plan_with_their_share_of_the_memory() {
        let alone = Builder::new("alone").finish().expect("a program");
        let mut together = alone.clone();
        together.operations.push(Arc::new(Collective::Shared.operation(ebbtide_ir::Rules::default())));
        let shares = |program: &Program| [false, true].map(|on_device| share(program, 1200, on_device));
        assert_eq!(shares(&together), [1200, 1200]);
        within(Some(Arc::new(Crowded)), || {
            assert_eq!(shares(&together), [100, 400]);
            assert_eq!(shares(&alone), [1200, 1200]);
        });
    }
}
