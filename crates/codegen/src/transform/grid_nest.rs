//! The loops around iterations, for a grid. Input: a parallel loop, the form of its loops and what analyses say of it; output: a tree.

use std::collections::BTreeSet;

use ebbtide_ir::{Facts, Par, Program, ValueId};

use crate::analysis::boundary_conditions::FarFromBoundaries;
use crate::analysis::bounds_proof::{Proof, Prover};
use crate::analysis::columns_side_by_side::columns_side_by_side;
use crate::analysis::grid_form::GridForm;
use crate::analysis::interior::{Decide, Interior, interior};
use crate::analysis::names::{reductions, values_inside};
use crate::analysis::narrow_index::{compared_with, narrow_values};
use crate::analysis::ordered_updates::{Counts, Notes, scattered};
use crate::analysis::sum_chains::SumChains;
use crate::analysis::term_runs::term_runs;
use crate::analysis::work::{all_values, at_once_in_lane, rows_together};
use crate::kernel::grid::{
    Added, Barrier, Cut, For, Grid, Iterations as Run, Kind, Node, Often, Over, Runs, Safe, When,
};
use crate::kernel::name::Name;
use crate::kernel::stmt::{Body, Stmt};
use crate::transform::forms::{Forms, Iterations, Proved};
use crate::transform::lower::{Shared, Team, operand};
use crate::transform::sides::PerSide;
use crate::transform::step::Step;

/// A parallel loop, and what its tree is made from.
#[derive(Clone, Copy)]
pub(crate) struct GridLoop<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub par: &'a Par,
    pub form: &'a GridForm,
}

/// Which iterations need no checks, and what is known of them.
enum Known {
    Proved(Proof),
    Interior(Box<Interior>),
    Nothing,
}

impl GridLoop<'_> {
    /// Its tree.
    pub fn nest(&self, forms: &mut Forms) -> Grid {
        let GridLoop { program, facts, par, form } = *self;
        let sums = reductions(facts, par);
        let exit = forms.fresh.next();
        let known = self.known(forms);
        let (atomics, any_order) = scattered(program, facts, par);
        let mut shared = Shared { atomics, ..Shared::default() };
        if !any_order {
            shared.atomics.clear();
        }
        let mut tables = Vec::new();
        if let GridForm::Noted(notes) = form {
            shared.noted.clone_from(&notes.updates);
            tables.clone_from(&notes.tables);
        }
        let counted = term_runs(program, facts, par);
        if let GridForm::OneThread = form {
            shared.counted_runs.clone_from(&counted.updates);
        }
        let it = Iterations { par, shared: &shared, team: Team::Alone };
        let mut making = Making { of: self, forms, it, known: &known, exit, sums: !sums.is_empty() };
        let (cut, body) = match form {
            GridForm::Bands => (Cut::Bands, making.bands()),
            GridForm::Teams => (Cut::Iterations, making.teams()),
            GridForm::Chains(chains) => (Cut::Bands, making.chains(chains)),
            GridForm::TermsFirst => (Cut::Iterations, making.windows()),
            GridForm::LeafByBlock { tile } => (Cut::Leaves, making.leaves_of_blocks(*tile)),
            GridForm::LeafByTeam => (Cut::Leaves, making.leaves_of_teams()),
            GridForm::Noted(notes) => (Cut::Iterations, making.batches(notes)),
            GridForm::OneThread => (Cut::Leaves, making.one_thread()),
        };
        let safe = match known {
            Known::Proved(proof) => Safe::Proved(proof.tests),
            Known::Interior(interior) => Safe::Interior(interior.interval()),
            Known::Nothing => Safe::Nowhere,
        };
        let reductions = sums.iter().map(|(how, s)| (*how, program.array(s.array).ty)).collect();
        let grid = Grid { ranges: par.ranges.clone(), reductions, tables, safe, cut, body };
        forms.made_grid(&grid);
        grid
    }

    fn known(&self, forms: &mut Forms) -> Known {
        let GridLoop { program, facts, par, .. } = *self;
        let inside = values_inside(par);
        if let Some(proof) = (Prover { program, facts, inside: &inside }).proof(par) {
            return Known::Proved(proof);
        }
        let interior = interior(program, par, &inside, Decide::RowsToo);
        let it = Iterations { par, shared: &Shared::default(), team: Team::Alone };
        // Two texts that do nearly the same would be one too many.
        match forms.leaves_out(Step::Interior) || forms.is_mostly_checked(&it, &interior) {
            true => Known::Nothing,
            false => Known::Interior(Box::new(interior)),
        }
    }
}

/// The making of a tree.
struct Making<'a, 'f, 'p> {
    of: &'a GridLoop<'a>,
    forms: &'f mut Forms<'p>,
    it: Iterations<'a>,
    known: &'a Known,
    /// Where iterations that meet faults continue.
    exit: usize,
    /// Are there sums over all iterations?
    sums: bool,
}

fn run(often: Often, body: Body) -> Node {
    Node::Iterations(Run { often, runs: Runs::Alone, body })
}

/// May an iteration end in the middle, without the others of its team? The depth of recursion is that of nesting in the source.
fn may_end(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| {
        matches!(stmt, Stmt::Fault { .. }) || stmt.blocks().into_iter().any(|block| may_end(block))
    })
}

fn all(kind: Kind, over: Over, body: Vec<Node>) -> Node {
    Node::For(For { kind, over, body })
}

fn either(when: When, then: Vec<Node>, otherwise: Vec<Node>) -> Node {
    Node::If { when, then, otherwise }
}

impl Making<'_, '_, '_> {
    fn bands(&mut self) -> Vec<Node> {
        let (par, exit) = (self.it.par, self.exit);
        let Known::Proved(proof) = self.known else {
            let body = self.iteration();
            return vec![all(Kind::Grid, Over::Bands, body), Node::Label(exit)];
        };
        let narrow = narrow_values(self.of.program, par, &proof.remainders);
        let proved = Proved { exact: &proof.exact, narrow: &narrow, remainders: &proof.remainders };
        let bounds = compared_with(self.of.program, &narrow, &proof.remainders, &values_inside(par), par);
        let rows = rows_together(self.of.program, par);
        let together = (rows > 1).then(|| (rows, self.unchecked(proved, rows)));
        let one = self.unchecked(proved, 1);
        // Seldom run, in loops of its own: what it computes should cost what is often run no registers.
        let careful = run(Often::Seldom, self.forms.careful_aside(&self.it));
        vec![
            either(
                When::Proved,
                vec![all(Kind::Grid, Over::NarrowBands { bounds, together }, one)],
                vec![all(Kind::Grid, Over::Bands, vec![careful])],
            ),
            Node::FaultsAside(exit),
            Node::Label(exit),
        ]
    }

    fn teams(mut self) -> Vec<Node> {
        let it = Iterations { team: Team::Lanes, ..self.it };
        let by_team = |often, body| Node::Iterations(Run { often, runs: Runs::Team, body });
        let in_columns = self.columns(&it);
        let always = in_columns.as_ref().is_some_and(|(_, always, _)| *always);
        let safe = match self.known {
            // Who is proved takes whole rows.
            Known::Proved(_) if always => None,
            Known::Proved(proof) => {
                let proved = Proved::wide(proof);
                Some((When::Proved, self.forms.in_order(&it, proved)))
            }
            Known::Interior(interior) => Some((When::Interior, self.forms.of_interior(&it, interior))),
            Known::Nothing => None,
        };
        let careful = self.forms.checked_at_once(&it);
        let of_team = match safe {
            Some((when, body)) => {
                either(when, vec![by_team(Often::Often, body)], vec![by_team(Often::Seldom, careful)])
            }
            None => by_team(if always { Often::Seldom } else { Often::Often }, careful),
        };
        let of_thread = self.iteration();
        let few = all(Kind::Teams, Over::Iterations, vec![of_team]);
        let many = all(Kind::Grid, Over::Iterations, of_thread);
        let mut nodes = vec![either(When::FewIterations, vec![few], vec![many])];
        if let Some((columns, _, body)) = in_columns {
            let rows = all(Kind::Teams, Over::ShortRows(columns), vec![by_team(Often::Often, body)]);
            nodes = vec![either(When::ShortRows(columns), vec![rows], nodes)];
        }
        nodes.push(Node::Label(self.exit));
        nodes
    }

    /// The columns of a short row side by side, where that is legal and pays: how many they are, whether every row has as many, and
    /// their iterations as one.
    fn columns(&mut self, it: &Iterations) -> Option<(usize, bool, Body)> {
        let Known::Proved(proof) = self.known else { return None };
        if self.forms.leaves_out(Step::JamColumns) {
            return None;
        }
        let shape = columns_side_by_side(self.of.program, it.par)?;
        let body = self.forms.columns_in_order(it, Proved::wide(proof), &shape);
        // One that ends by itself would end those beside it.
        (!may_end(&body)).then_some((shape.columns, shape.always, body))
    }

    /// Bands, but for few iterations with long chains, which teams take where they need no checks.
    fn chains(mut self, chains: &SumChains) -> Vec<Node> {
        let shared = Shared { chains: chains.locals.clone(), ..Shared::default() };
        let it = Iterations { team: Team::Lanes, shared: &shared, ..self.it };
        let of_team = match self.known {
            Known::Proved(proof) => {
                let proved = Proved::wide(proof);
                Some(self.forms.in_order(&it, proved)).filter(|body| !may_end(body))
            }
            _ => None,
        };
        let bands = self.bands();
        let Some(body) = of_team else { return bands };
        let one = Node::Iterations(Run { often: Often::Often, runs: Runs::Team, body });
        let teams = all(Kind::Teams, Over::IterationsWithChains, vec![one]);
        let ranges = chains.bounds.iter().map(|(from, to)| [*from, *to].map(|v| operand(self.of.program, v)));
        // What stands behind the bands is for all.
        let (ends, bands): (Vec<Node>, Vec<Node>) =
            bands.into_iter().partition(|node| matches!(node, Node::Label(_) | Node::FaultsAside(_)));
        let mut nodes = vec![either(When::LongChains(ranges.collect()), vec![teams], bands)];
        nodes.extend(ends);
        nodes
    }

    fn windows(mut self) -> Vec<Node> {
        let kept = Node::Keep(self.iteration());
        let body = vec![
            all(Kind::Grid, Over::OfWindow, vec![kept]),
            Node::Label(self.exit),
            Node::Barrier(Barrier::Grid),
            Node::AddTerms(Added::All),
            Node::Barrier(Barrier::GridBetween),
        ];
        vec![all(Kind::Seq, Over::Windows, body)]
    }

    fn leaves_of_blocks(mut self, tile: usize) -> Vec<Node> {
        let loops = self.several_at_once(
            Kind::OfBlock,
            |at_once| Over::OfTile { at_once },
            |nodes| vec![Node::Keep(nodes)],
        );
        // Terms of the tile before are added until then.
        let mut of_tile = vec![Node::Barrier(Barrier::Block)];
        of_tile.extend(loops);
        // A range may be too long to go through where its first iterations meet a fault.
        let meet = Node::Barrier(Barrier::BlockUnlessFault);
        of_tile.extend([Node::Label(self.exit), meet, Node::AddTerms(Added::All)]);
        let tiles = all(Kind::Seq, Over::Tiles(tile), of_tile);
        vec![all(Kind::Blocks, Over::LeavesInTiles(tile), vec![tiles, Node::EndLeaf])]
    }

    fn leaves_of_teams(mut self) -> Vec<Node> {
        let loops = self.several_at_once(Kind::OfTeam, |at_once| Over::Columns { at_once }, |nodes| nodes);
        let rows = all(Kind::Seq, Over::Rows, loops);
        // Who met a fault comes there: the others wait for its part of the sums.
        vec![all(Kind::Teams, Over::Leaves, vec![rows, Node::Label(self.exit), Node::EndLeaf])]
    }

    fn one_thread(mut self) -> Vec<Node> {
        let columns = all(Kind::Seq, Over::Columns { at_once: None }, self.iteration());
        let mut leaf = vec![all(Kind::Seq, Over::Rows, vec![columns])];
        leaf.extend(self.sums.then_some(Node::EndLeaf));
        vec![all(Kind::One, Over::Leaves, leaf), Node::Label(self.exit)]
    }

    fn batches(mut self, notes: &Notes) -> Vec<Node> {
        let (mut body, over, noting) = match &notes.counts {
            Counts::AtMost(each) => {
                let noting = all(Kind::Grid, Over::OfBatch(each.clone()), self.kept_iteration());
                (Vec::new(), Over::Batches(each.clone()), noting)
            }
            Counts::Computed(counting) => {
                let shared = Shared { noted: notes.updates.clone(), counted: true, ..Shared::default() };
                let (it, exit) = (Iterations { shared: &shared, ..self.it }, self.forms.fresh.next());
                let count = Node::Count(self.forms.lowered(&it, counting, &BTreeSet::new()), exit);
                let noting = all(Kind::Blocks, Over::OfCountedBatch, self.kept_iteration());
                (vec![count, Node::Barrier(Barrier::Grid)], Over::CountedBatches, noting)
            }
        };
        body.extend([noting, Node::Label(self.exit), Node::Barrier(Barrier::Grid)]);
        if over == Over::CountedBatches {
            body.push(self.without_room());
        }
        body.extend(self.sums.then_some(Node::AddTerms(Added::All)));
        body.extend([Node::CombineNoted, Node::Barrier(Barrier::GridBetween)]);
        vec![all(Kind::Seq, over, body)]
    }

    /// One thread runs the first iteration of a batch where it has more terms than can be noted.
    fn without_room(&mut self) -> Node {
        let counted = term_runs(self.of.program, self.of.facts, self.it.par);
        let shared = Shared { counted_runs: counted.updates, ..Shared::default() };
        let exit = self.forms.fresh.next();
        let careful = self.forms.careful(&Iterations { shared: &shared, ..self.it });
        let body = self.keeping(vec![run(Often::Seldom, careful)]);
        let mut nodes = vec![all(Kind::One, Over::FirstOfBatch { exit }, body), Node::Barrier(Barrier::Grid)];
        nodes.extend(self.sums.then_some(Node::AddTerms(Added::First)));
        nodes.push(Node::SkipOne);
        either(When::NoRoom, nodes, Vec::new())
    }

    fn kept_iteration(&mut self) -> Vec<Node> {
        let nodes = self.iteration();
        self.keeping(nodes)
    }

    /// An iteration that keeps its terms of sums, where there are sums.
    fn keeping(&self, nodes: Vec<Node>) -> Vec<Node> {
        if self.sums { vec![Node::Keep(nodes)] } else { nodes }
    }

    /// Iterations one by one, in the form that is right for each; where they need no checks, in a loop of their own, several at
    /// once, since each waits for what it loads.
    fn several_at_once(
        &mut self,
        kind: Kind,
        over: impl Fn(Option<usize>) -> Over,
        each: impl Fn(Vec<Node>) -> Vec<Node>,
    ) -> Vec<Node> {
        let Known::Proved(proof) = self.known else {
            let nodes = self.iteration();
            return vec![all(kind, over(None), each(nodes))];
        };
        let at_once = at_once_in_lane(self.of.program, self.it.par);
        let unchecked = self.unchecked(Proved::wide(proof), 1);
        let careful = vec![run(Often::Seldom, self.forms.careful(&self.it))];
        vec![either(
            When::Proved,
            vec![all(kind, over(Some(at_once)), each(unchecked))],
            vec![all(kind, over(None), each(careful))],
        )]
    }

    /// One iteration in the form that is right for it.
    fn iteration(&mut self) -> Vec<Node> {
        let (when, safe) = match self.known {
            Known::Proved(proof) => {
                let proved = Proved::wide(proof);
                (When::Proved, self.unchecked(proved, 1))
            }
            Known::Interior(interior) => {
                let body = self.forms.of_interior_at_end(&self.it, interior);
                (When::WarpInterior, vec![run(Often::Often, body)])
            }
            Known::Nothing => return vec![run(Often::Often, self.forms.careful(&self.it))],
        };
        vec![either(when, safe, vec![run(Often::Seldom, self.forms.careful(&self.it))])]
    }

    /// So many iterations side by side, without checks: where conditions tell boundaries, in two forms, of which one is for
    /// iterations far from them, in which the conditions are decided.
    fn unchecked(&mut self, proved: Proved, sides: usize) -> Vec<Node> {
        let (it, par) = (self.it, self.it.par);
        let decided = self.forms.far_from_boundaries(par);
        let own = match sides {
            1 => PerSide::default(),
            _ => all_values(par).into(),
        };
        let any = self.forms.proved_form(&it, proved, (&own, sides), &FarFromBoundaries::new());
        let any = vec![run(Often::Often, any)];
        if decided.is_empty() {
            return any;
        }
        let conditions =
            (0..sides).map(|side| self.forms.conditions(&it, proved, &decided, (&own, side))).collect();
        let name = |v: ValueId, side| own.name(Name::value(v), side);
        let of_side = |side| decided.iter().map(move |(v, holds)| (*v, side, *holds));
        let are = (0..sides).flat_map(of_side).map(|(v, side, holds)| (name(v, side), holds)).collect();
        let far = self.forms.proved_form(&it, proved, (&own, sides), &decided);
        vec![either(When::WarpFar { conditions, are }, vec![run(Often::Often, far)], any)]
    }
}
