//! The adjoint of the body of a parallel loop.
//!
//! The body is run forward once more, without its writes, so that its values are at hand; then its statements are
//! taken backwards. Where a branch or an inner loop is reversed, its own statements are run forward again inside
//! it, from what its locals held when it was entered.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    ArrayId, Block, Branch, Claim, Combine, Indices, LocalId, Loop, LoopId, LoopKind, Op, Program, Stmt,
    Store, ValueId, walk,
};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::needed::claims_for;
use crate::analysis::store_forwarding::StoreForwarding;
use crate::error::Error;
use crate::generate::extremes::{Extremes, find};
use crate::plan::shadow_state::Shadows;
use crate::rules::{partials, pull};
use crate::writer::Writer;

mod capture;
mod cotangents;
mod loops;
mod replay;
mod results;
mod window;

use capture::{Around, Capture};
use cotangents::Cotangent;
use replay::{Passes, Replay};
use results::{Results, nested_in_counted_loops};
use window::Window;

pub(crate) use replay::Storage;

/// What an adjoint body is written for.
pub(crate) enum Purpose<'a> {
    /// Everything, but for these loads (gathered elsewhere), and with writes of shadows as said.
    All { gathered: &'a BTreeSet<ValueId>, writes: &'a BTreeMap<ArrayId, ShadowWrite> },
    /// The contribution of one load (numbered in source order) alone.
    Site { number: usize, into: Sink },
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
    passes: HashMap<LoopId, LocalId>,
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
            passes: HashMap::new(),
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

    // ---- forward again

    fn forward(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    let new = match (self.forwarding.forwarded.get(v), *self.source.op(*v)) {
                        (Some(stored), _) => self.mapped(*stored),
                        (None, Op::Load(array, index)) if self.copies.contains_key(&array) => {
                            self.load_copy(w, *v, self.copies[&array], index)?
                        }
                        (None, Op::Load(array, index)) if self.forwarding.compared.contains_key(v) => {
                            self.load_compared(w, *v, array, index)
                        }
                        (None, Op::Get(local)) => match self.locals.get(&local) {
                            Some(new) => w.get(*new),
                            None => w.get(local),
                        },
                        (None, op) => {
                            let decl = self.source.value(*v);
                            let id =
                                w.program.add_value(op.map(|o| self.mapped(o)), decl.ty, decl.site.clone());
                            w.program.values[id.index()].name.clone_from(&decl.name);
                            w.push(Stmt::Let(id));
                            id
                        }
                    };
                    self.map.insert(*v, new);
                }
                Stmt::Declare(local, v) => {
                    let new = w.local(&self.source.locals[local.index()].name, self.mapped(*v));
                    self.locals.insert(*local, new);
                }
                Stmt::Set(local, v) => {
                    let new = self.locals.get(local).copied().unwrap_or(*local);
                    w.push(Stmt::Set(new, self.mapped(*v)));
                }
                Stmt::If(branch) => {
                    let condition = self.mapped(branch.condition);
                    let mut arms = [Block::new(), Block::new()];
                    for (arm, block) in arms.iter_mut().zip([&branch.then, &branch.otherwise]) {
                        self.look_anew();
                        w.begin();
                        self.forward(w, block)?;
                        *arm = w.end();
                    }
                    self.look_anew();
                    let [then, otherwise] = arms;
                    w.push(Stmt::If(Branch { condition, then, otherwise }));
                }
                Stmt::Loop(l) => self.forward_loop(w, l, Passes::Forgotten)?,
                Stmt::Update(how @ (Combine::Min | Combine::Max), s) => self.forward_extreme(w, *how, s),
                Stmt::Store(s) | Stmt::Update(_, s) if self.again && self.copies.contains_key(&s.array) => {}
                Stmt::Store(s) if self.store_in_run(w, None, s) => {}
                Stmt::Update(how, s) if self.store_in_run(w, Some(*how), s) => {}
                Stmt::Store(s) if self.copies.contains_key(&s.array) => {
                    let array = self.copies[&s.array];
                    w.store(array, self.index(s.index), self.mapped(s.value), s.site.clone());
                }
                Stmt::Update(how, s) if self.copies.contains_key(&s.array) => {
                    let (index, value) = (self.index(s.index), self.mapped(s.value));
                    w.push(Stmt::Update(
                        *how,
                        Store { array: self.copies[&s.array], index, value, ..s.clone() },
                    ));
                }
                // Other writes are not repeated.
                _ => {}
            }
        }
        Ok(())
    }

    fn forward_extreme(&mut self, w: &mut Writer, how: Combine, s: &Store) {
        let (index, value) = (self.index(s.index), self.mapped(s.value));
        match self.purpose {
            Purpose::Find(extremes) => {
                if let Some(extreme) = extremes.get(&s.array) {
                    find(w, *extreme, how, &Store { index, value, ..s.clone() });
                }
            }
            Purpose::Count(extremes) => {
                if let Some(extreme) = extremes.get(&s.array) {
                    extreme.count(w, index, value, s.site.clone());
                }
            }
            _ => {}
        }
    }

    // ---- backward

    /// Runs a block forward and then takes its statements backwards.
    fn reverse(&mut self, w: &mut Writer, block: &Block) -> Result<(), Error> {
        self.look_anew();
        // What locals hold when each nested statement is entered.
        let mut entries: HashMap<usize, HashMap<LocalId, ValueId>> = HashMap::new();
        for (k, stmt) in block.iter().enumerate() {
            if stmt.blocks().next().is_some() {
                let mut held: Vec<(LocalId, LocalId)> = self.locals.iter().map(|(l, n)| (*l, *n)).collect();
                held.sort_unstable();
                let entry = held.into_iter().map(|(l, new)| (l, w.get(new))).collect();
                entries.insert(k, entry);
            }
            match stmt {
                // It is reversed below.
                Stmt::Loop(l) => self.forward_loop(w, l, Passes::Kept)?,
                _ => self.forward(w, std::slice::from_ref(stmt))?,
            }
            if let Stmt::Declare(local, _) = stmt
                && self.activity.locals.contains(local)
            {
                let zero = w.real(self.source.locals[local.index()].ty, 0.0);
                let bar = w.local(&format!("d_{}", self.source.locals[local.index()].name), zero);
                self.local_cotangents.insert(*local, bar);
            }
        }
        for (k, stmt) in block.iter().enumerate().rev() {
            match stmt {
                Stmt::Let(v) => self.reverse_value(w, *v)?,
                Stmt::Declare(local, v) | Stmt::Set(local, v) => self.reverse_set(w, *local, *v),
                Stmt::Store(s) => self.reverse_store(w, s),
                Stmt::Update(how, s) => self.reverse_update(w, *how, s),
                Stmt::Claim(claim) => self.reverse_claim(w, claim, block),
                Stmt::If(branch) => self.reverse_branch(w, branch, entries.remove(&k).unwrap_or_default())?,
                Stmt::Loop(l) => self.reverse_loop(w, l, entries.remove(&k).unwrap_or_default())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What flows to a local goes on to what was put into it.
    fn reverse_set(&mut self, w: &mut Writer, local: LocalId, v: ValueId) {
        if let Some(flowing) = self.steady.get(&local).copied() {
            return self.contribute(w, v, flowing);
        }
        let Some(bar) = self.local_cotangents.get(&local).copied() else { return };
        let flowing = w.get(bar);
        if !self.reached.remove(&local) {
            w.mask(flowing);
        }
        self.contribute(w, v, flowing);
        let zero = w.real(w.ty(flowing), 0.0);
        w.push(Stmt::Set(bar, zero));
    }

    fn reverse_value(&mut self, w: &mut Writer, v: ValueId) -> Result<(), Error> {
        if !self.active(v) || !self.inside.contains(&v) {
            return Ok(());
        }
        let Some(bar) = self.take_bar(w, v) else {
            // A shadow that is replaced by what flows here is zero where nothing does.
            if let Op::Load(array, index) = *self.source.op(v)
                && let Purpose::All { writes, .. } = &self.purpose
                && writes.get(&array) == Some(&ShadowWrite::Replace(v))
                && let Some(shadow) = self.shadows.arrays.get(&array)
            {
                let zero = w.real(self.source.ty(v), 0.0);
                w.store(*shadow, self.index(index), zero, None);
            }
            return Ok(());
        };
        if let Some(stored) = self.forwarding.forwarded.get(&v).copied() {
            self.contribute(w, stored, bar);
            return Ok(());
        }
        match *self.source.op(v) {
            Op::Load(array, index) => self.site(w, v, array, index, bar),
            Op::Get(local) if self.steady.contains_key(&local) => {}
            Op::Get(local) => {
                if !w.is_masked(bar) {
                    self.reached.insert(local);
                }
                if let Some(local_bar) = self.local_cotangents.get(&local).copied() {
                    let old = w.get(local_bar);
                    let sum = w.add(old, bar);
                    w.push(Stmt::Set(local_bar, sum));
                }
            }
            op => {
                let operands: Vec<ValueId> = op.operands().collect();
                let mapped = op.map(|o| self.mapped(o));
                for (k, partial) in partials(w, mapped, self.mapped(v)) {
                    if self.active(operands[k]) {
                        let flowing = pull(w, &partial, bar, self.source.ty(operands[k]));
                        self.contribute(w, operands[k], flowing);
                    }
                }
            }
        }
        Ok(())
    }

    fn site(&mut self, w: &mut Writer, v: ValueId, array: ArrayId, index: Indices, bar: ValueId) {
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return };
        match &self.purpose {
            Purpose::Site { number, into } => {
                if self.sites.get(&v) == Some(number) {
                    match into {
                        Sink::Value => self.found = Some(bar),
                        Sink::Local(local) => {
                            let local = *local;
                            let old = w.get(local);
                            let sum = w.add(old, bar);
                            w.push(Stmt::Set(local, sum));
                        }
                    }
                }
            }
            Purpose::Find(_) | Purpose::Count(_) => {}
            Purpose::All { gathered, writes } => {
                if gathered.contains(&v) {
                    return;
                }
                let site = self.source.value(v).site.clone();
                let index = self.index(index);
                if let Some(followed) = self.followed.as_mut().filter(|followed| followed.loads.contains(&v))
                {
                    followed.elements.push((shadow, index));
                }
                match writes.get(&array) {
                    // What flows through it unchanged is there.
                    Some(ShadowWrite::Replace(own))
                        if *own == v && *w.program.op(bar) == Op::Load(shadow, index) => {}
                    Some(ShadowWrite::Replace(own)) if *own == v => w.store(shadow, index, bar, site),
                    _ => w.accumulate(shadow, index, bar, site),
                }
            }
        }
    }

    fn reverse_store(&mut self, w: &mut Writer, s: &Store) {
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return };
        let index = self.index(s.index);
        let bar = w.load(shadow, index, s.site.clone());
        if let Purpose::All { writes, .. } = &self.purpose
            && writes.get(&s.array) == Some(&ShadowWrite::Zero)
        {
            let zero = w.real(w.ty(bar), 0.0);
            w.store(shadow, index, zero, s.site.clone());
        }
        self.contribute(w, s.value, bar);
    }

    /// The shadow of what an iteration took is its own as well.
    fn reverse_claim(&mut self, w: &mut Writer, claim: &Claim, block: &Block) {
        if let Purpose::All { .. } = self.purpose
            && claims_for(block, self.activity)
        {
            w.push(Stmt::Claim(Claim { index: self.index(claim.index), ..claim.clone() }));
        }
    }

    fn reverse_update(&mut self, w: &mut Writer, how: Combine, s: &Store) {
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return };
        let index = self.index(s.index);
        let mut bar = w.load(shadow, index, s.site.clone());
        if how != Combine::Add
            && let Some(extreme) = self.extremes.get(&s.array)
        {
            bar = extreme.part(w, index, self.mapped(s.value), bar);
        }
        self.contribute(w, s.value, bar);
    }

    fn reverse_branch(
        &mut self,
        w: &mut Writer,
        branch: &Branch,
        entry: HashMap<LocalId, ValueId>,
    ) -> Result<(), Error> {
        if !self.touches_active(&branch.then) && !self.touches_active(&branch.otherwise) {
            return Ok(());
        }
        self.prepare(w, &branch.then);
        self.prepare(w, &branch.otherwise);
        let condition = self.mapped(branch.condition);
        let mut arms = Vec::new();
        let before = self.reached.clone();
        let mut after = before.clone();
        let again = std::mem::replace(&mut self.again, true);
        for block in [&branch.then, &branch.otherwise] {
            w.begin();
            let outer = self.enter(w, &entry);
            self.reached.clone_from(&before);
            self.reverse(w, block)?;
            after.retain(|local| self.reached.contains(local));
            self.locals = outer;
            arms.push(w.end());
        }
        self.reached = after;
        self.again = again;
        let otherwise = arms.pop().unwrap_or_default();
        let then = arms.pop().unwrap_or_default();
        w.push(Stmt::If(Branch { condition, then, otherwise }));
        Ok(())
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
