//! The adjoint of the body of a parallel loop.
//!
//! The body is run forward once more, without its writes, so that its values are at hand; then its statements are
//! taken backwards. Where a branch or an inner loop is reversed, its own statements are run forward again inside
//! it, from what its locals held when it was entered.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{ArrayId, Block, Indices, LocalId, Loop, LoopId, LoopKind, Program, Stmt, ValueId, walk};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::store_forwarding::StoreForwarding;
use crate::error::Error;
use crate::generate::extremes::Extremes;
use crate::plan::shadow_state::Shadows;
use crate::writer::Writer;

mod backward;
mod capture;
mod cotangents;
mod forward;
mod loops;
mod replay;
mod results;
mod segments;
mod window;

use capture::{Around, Capture};
use cotangents::Cotangent;
use replay::Replay;
use results::{Results, nested_in_counted_loops};
use window::Window;

pub(crate) use replay::Storage;

/// What an adjoint body is written for.
pub(crate) enum Purpose<'a> {
    /// Everything, but for these loads (gathered elsewhere), and with writes of shadows as said.
    All { gathered: &'a BTreeSet<ValueId>, writes: &'a BTreeMap<ArrayId, ShadowWrite> },
    /// The contributions of these loads (numbered in source order) alone.
    Sites(Vec<(usize, Sink)>),
    /// Nothing but what the minima and maxima of these arrays become.
    Find(&'a Extremes),
    /// Nothing but the number of values that these minima and maxima are equal to.
    Count(&'a Extremes),
}

/// Where the contribution of a site goes.
#[derive(Clone, Copy)]
pub(crate) enum Sink {
    /// To the caller, as a value of the open block.
    Value,
    /// Added to a local.
    Local(LocalId),
}

/// What happens to the shadow of an array that the body overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShadowWrite {
    /// It is set to zero, element by element.
    Zero,
    /// Nothing: all of it is zero from now on, and whoever uses it next knows.
    Forget,
    /// It is replaced by what flows to this load, the body's own of that element.
    Replace(ValueId),
}

/// Loads, and the elements of shadows that what flows to them is added to.
pub(crate) struct Followed<'a> {
    pub loads: &'a BTreeSet<ValueId>,
    pub elements: &'a mut Vec<(ArrayId, Indices)>,
}

/// Writes adjoint bodies of one parallel loop.
pub(crate) struct Task<'a> {
    pub source: &'a Program,
    pub activity: &'a Activity,
    pub shadows: &'a Shadows,
    pub extremes: &'a Extremes,
    pub purpose: Purpose<'a>,
    /// Values of the source as values of the program being written.
    pub map: HashMap<ValueId, ValueId>,
    pub found: Option<ValueId>,
    inside: BTreeSet<ValueId>,
    cotangents: HashMap<ValueId, Cotangent>,
    locals: HashMap<LocalId, LocalId>,
    local_cotangents: HashMap<LocalId, LocalId>,
    /// Locals whose cotangent is the same in all inner iterations of the loops being reversed, and what it is.
    steady: HashMap<LocalId, ValueId>,
    /// Locals whose cotangent is not zero merely because something was not reached.
    reached: BTreeSet<LocalId>,
    sites: HashMap<ValueId, usize>,
    /// Loads of what the same iteration stored, and what that is.
    forwarding: &'a StoreForwarding,
    /// Of inner loops whose number of inner iterations is data: where it is counted.
    iterations: HashMap<LoopId, LocalId>,
    /// Where the iteration can keep what it finds on its way forward.
    store: Option<Storage<'a>>,
    /// How inner iterations of inner loops find what earlier ones left in locals.
    replays: HashMap<LoopId, Replay>,
    /// What inner loops left in locals, where it is kept.
    results: HashMap<LoopId, Results>,
    /// The loops inside of two others or more that all count.
    nested: BTreeSet<LoopId>,
    /// Are some of the inner iterations of a loop run again that are not reversed yet?
    partial: bool,
    /// The arrays that the body runs over a copy of, and the copies.
    copies: BTreeMap<ArrayId, ArrayId>,
    captures: HashMap<ValueId, Capture>,
    /// What parts of the iteration that are run again ask for, where it has no bound.
    window: Option<Window<'a>>,
    /// Loads whose contributions are to be found again, and where these go.
    followed: Option<Followed<'a>>,
    /// Is a block being run again, so that copies are not what they were any more?
    again: bool,
    /// The loops around what is written now.
    around: Vec<Around>,
    /// How many loops are being reversed around what is written now.
    depth: usize,
}

impl<'a> Task<'a> {
    pub fn new(
        source: &'a Program,
        activity: &'a Activity,
        (shadows, extremes): (&'a Shadows, &'a Extremes),
        purpose: Purpose<'a>,
        map: HashMap<ValueId, ValueId>,
        (body, forwarding): (&Block, &'a StoreForwarding),
    ) -> Task<'a> {
        let mut inside = BTreeSet::new();
        walk(body, &mut |stmt| match stmt {
            Stmt::Let(v) => drop(inside.insert(*v)),
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
            _ => {}
        });
        let sites = active_loads(source, activity, body).iter().enumerate().map(|(n, s)| (s.0, n)).collect();
        Task {
            source,
            activity,
            shadows,
            extremes,
            purpose,
            map,
            found: None,
            inside,
            cotangents: HashMap::new(),
            locals: HashMap::new(),
            local_cotangents: HashMap::new(),
            steady: HashMap::new(),
            reached: BTreeSet::new(),
            sites,
            forwarding,
            iterations: HashMap::new(),
            store: None,
            replays: HashMap::new(),
            results: HashMap::new(),
            nested: nested_in_counted_loops(body),
            partial: false,
            copies: BTreeMap::new(),
            captures: HashMap::new(),
            window: None,
            followed: None,
            again: false,
            around: Vec::new(),
            depth: 0,
        }
    }

    /// Lets iterations keep what they find on their way forward, each in its own place.
    pub fn keeping(mut self, store: Option<Storage<'a>>) -> Task<'a> {
        self.store = store;
        self
    }

    /// Lets the body run over copies of these arrays, which it reads after it has written them.
    pub fn over(mut self, copies: BTreeMap<ArrayId, ArrayId>) -> Task<'a> {
        self.copies = copies;
        self
    }

    /// Notes at which elements of shadows what flows to these loads is added.
    pub fn following(mut self, followed: Option<Followed<'a>>) -> Task<'a> {
        self.followed = followed;
        self
    }

    /// Writes the adjoint of a whole body.
    pub fn write(mut self, w: &mut Writer, body: &Block) -> Result<Option<ValueId>, Error> {
        if let Purpose::Find(_) | Purpose::Count(_) = self.purpose {
            self.forward(w, body)?;
            return Ok(None);
        }
        self.make_room(w, body)?;
        // A local that the loop's surroundings declared is the same in all iterations: it is read as it is.
        self.reverse(w, body)?;
        if let Purpose::All { .. } = self.purpose {
            let outer: Vec<ValueId> =
                self.shadows.values.keys().copied().filter(|v| self.cotangents.contains_key(v)).collect();
            for v in outer {
                let bar = self.take_bar(w, v);
                if let (Some(bar), Some(shadow)) = (bar, self.shadows.values.get(&v)) {
                    w.accumulate(*shadow, Writer::no_index(), bar, None);
                }
            }
        }
        Ok(self.found)
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::Unsupported { program: self.source.name.clone(), what: what.to_string() }
    }

    fn mapped(&self, v: ValueId) -> ValueId {
        self.map.get(&v).copied().unwrap_or(v)
    }

    fn index(&self, index: Indices) -> Indices {
        index.map(|v| self.mapped(v))
    }

    fn active(&self, v: ValueId) -> bool {
        self.activity.values.contains(&v)
    }

    /// Starts a nested block with locals of its own that hold what the originals held on entry.
    fn enter(&mut self, w: &mut Writer, entry: &HashMap<LocalId, ValueId>) -> HashMap<LocalId, LocalId> {
        let outer = self.locals.clone();
        let mut held: Vec<(LocalId, ValueId)> = entry.iter().map(|(l, v)| (*l, *v)).collect();
        held.sort_unstable();
        for (local, value) in held {
            let name = self.source.locals[local.index()].name.clone();
            let new = w.local(&name, value);
            self.locals.insert(local, new);
        }
        outer
    }

    /// Is there anything in the block for a cotangent to flow through?
    fn touches_active(&self, block: &Block) -> bool {
        let mut touches = false;
        walk(block, &mut |stmt| {
            touches |= match stmt {
                Stmt::Let(v) => self.active(*v),
                Stmt::Set(local, _) | Stmt::Declare(local, _) => self.activity.locals.contains(local),
                Stmt::Store(s) | Stmt::Update(_, s) => self.shadows.arrays.contains_key(&s.array),
                _ => false,
            };
        });
        touches
    }
}
