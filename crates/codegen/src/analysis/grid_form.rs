//! How a grid of threads takes a parallel loop. Input: the loop, and how its iterations may be dealt out; output: the form of the
//! loops around them.

use ebbtide_ir::{Facts, Par, Program};

use crate::analysis::kept_terms::{SUMS, adds_once, keeps_terms};
use crate::analysis::names::reductions;
use crate::analysis::ordered_updates::{Notes, notes, scattered};
use crate::analysis::sum_chains::{SumChains, sum_chains};
use crate::analysis::team_sums::suits_teams;
use crate::kernel::segment::Manner;

/// The words of memory that the threads of a block share; `EB_BLOCK_WORDS` of the prelude.
pub(crate) const BLOCK_WORDS: usize = 4608;

/// A form of the loops around iterations.
pub(crate) enum GridForm {
    /// Each thread takes a column, and as many rows as it must.
    Bands,
    /// Sixteen threads take an iteration, each a lane of its sums, where there are fewer iterations than threads.
    Teams,
    /// Thirty-two or sixteen threads take an iteration, and the terms of its chains of additions side by side, where iterations are few and
    /// chains long; bands where they are not.
    Chains(SumChains),
    /// All threads take iterations, which keep their terms; then sixteen threads add those of a leaf.
    TermsFirst,
    /// A block takes a leaf: its threads take so many iterations at a time and leave their terms in memory that they share, and
    /// sixteen of them add these, each those of one lane.
    LeafByBlock { tile: usize },
    /// Sixteen threads take a leaf, each the sums of one lane.
    LeafByTeam,
    /// Iterations note what they combine at shared elements.
    Noted(Notes),
    /// One thread takes all iterations in order: what they combine at shared elements cannot be noted.
    OneThread,
}

/// How the iterations of a parallel loop are dealt out.
pub(crate) fn grid_manner(program: &Program, facts: &Facts, par: &Par) -> Manner {
    let sums = !reductions(facts, par).is_empty();
    match scattered(program, facts, par).1 {
        _ if !sums && suits_teams(program, facts, par) => Manner::Teams,
        true if !sums && !sum_chains(program, facts, par).locals.is_empty() => Manner::Teams,
        false => Manner::Ordered,
        true if sums => Manner::Leaves,
        true => Manner::Shares,
    }
}

/// What a form may do with terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// May iterations keep terms of sums for later?
    pub kept: bool,
    /// May they note terms for shared elements?
    pub noted: bool,
    /// May several threads compute the terms of a chain?
    pub chained: bool,
}

/// The form of a loop.
pub(crate) fn grid_form(
    (program, facts): (&Program, &Facts),
    par: &Par,
    manner: Manner,
    terms: Terms,
) -> GridForm {
    let sums = reductions(facts, par).len();
    match manner {
        Manner::Shares | Manner::Tiles(_) => GridForm::Bands,
        Manner::Teams if suits_teams(program, facts, par) => GridForm::Teams,
        Manner::Teams if !terms.chained => GridForm::Bands,
        Manner::Teams => GridForm::Chains(sum_chains(program, facts, par)),
        Manner::Leaves if !terms.kept => GridForm::LeafByTeam,
        Manner::Leaves if keeps_terms(program, facts, par) => GridForm::TermsFirst,
        Manner::Leaves if adds_once(facts, par) && sums <= SUMS => {
            GridForm::LeafByBlock { tile: BLOCK_WORDS / sums }
        }
        Manner::Leaves => GridForm::LeafByTeam,
        Manner::Ordered if !terms.noted => GridForm::OneThread,
        Manner::Ordered => notes(program, facts, par).map_or(GridForm::OneThread, GridForm::Noted),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_prelude_knows_as_many_words() {
        let prelude = include_str!("../prelude/prelude.cu");
        assert!(prelude.contains(&format!("EB_BLOCK_WORDS = {} ", super::BLOCK_WORDS)));
    }
}
