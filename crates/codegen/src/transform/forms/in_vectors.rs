//! The forms of iterations in vectors. Input: a body of the interior, and in which lanes it is to run; output: bodies for whole vectors,
//! for several side by side, for parts of one, and for several rows.

use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{Stmt as Source, Type};

use super::{Forms, Iterations, innermost};
use crate::analysis::gathers::Gathers;
use crate::analysis::interior::Interior;
use crate::analysis::lane_order::in_lane_order;
use crate::analysis::names::reductions;
use crate::analysis::rows_side_by_side::RowsSideBySide;
use crate::analysis::vectors::{more_side_by_side, side_by_side};
use crate::kernel::interval::Before;
use crate::kernel::name::{Ty, Variable};
use crate::kernel::stmt::{Body, Part, Stmt};
use crate::transform::ahead::ahead;
use crate::transform::interior::in_interior;
use crate::transform::row_tiles::row_tiles;
use crate::transform::sides::{PerSide, jam, jam_rows};
use crate::transform::step::Step;
use crate::transform::vectorise::{Idle, Iterations as Neighbours, Vectors, vectorise};
use crate::transform::windows::windows;

/// The interior of a loop in vectors.
pub(crate) struct InVectors {
    pub lanes: usize,
    /// So many vectors of iterations side by side, where the body has loops: the most first.
    pub jammed: Vec<(usize, Body)>,
    /// One vector, or those that make up the lanes of a leaf.
    pub whole: Vec<Body>,
    /// The first lanes of one, for the iterations that are left; leaves have whole vectors alone.
    pub tail: Option<Body>,
}

/// The interior of several rows in vectors.
pub(crate) struct RowsInVectors {
    pub rows: usize,
    /// What is computed before the innermost loop.
    pub before: Body,
    /// So many vectors of each row side by side.
    pub jammed: (usize, Body),
    pub whole: Body,
    pub tail: Body,
}

impl Forms<'_> {
    /// A body of the interior in so many lanes of this type, where `analysis::vectors` has no reason against it.
    pub fn vectors(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        body: &Body,
        (element, lanes): (Type, usize),
    ) -> Option<InVectors> {
        let (program, facts, par) = (self.program, self.facts, it.par);
        if self.leaves_out(Step::Vectorise) {
            return None;
        }
        let along = Neighbours { program, interior, innermost: innermost(par) };
        let (idle, gathers) = (Idle::Present, &Gathers::default());
        let form = |part, vector| Vectors {
            along: &along,
            element,
            lanes,
            part,
            vector,
            at_once: lanes,
            idle,
            gathers,
        };
        let sums = !reductions(facts, par).is_empty();
        let count = if sums { LANES / lanes } else { 1 };
        let whole: Option<Vec<Body>> =
            (0..count).map(|u| self.in_vector(body, form(Part::Whole, u))).collect();
        let whole = whole?;
        let (jammed, tail) = match (sums, &whole[..]) {
            (false, [whole]) => {
                let by_lanes = in_lane_order((program, facts), par, interior);
                let sides = side_by_side((program, facts), par, interior, element, &by_lanes);
                let jammed = match sides.filter(|_| !self.leaves_out(Step::Jam)) {
                    None => Vec::new(),
                    Some(sides) => {
                        let at_once = Vectors { at_once: sides * lanes, ..form(Part::Whole, 0) };
                        let one = match is_partly(whole) {
                            true => self.in_vector(body, at_once)?,
                            false => whole.clone(),
                        };
                        let varying = &interior.varying;
                        let own = PerSide::from((varying.values.clone(), varying.locals.clone()));
                        self.comes_to(Step::Jam);
                        let more = more_side_by_side(par, lanes * element.size());
                        let more = more.filter(|more| *more > sides && !is_partly(whole));
                        let all = more.into_iter().chain([sides]);
                        let all: Vec<(usize, Body)> =
                            all.map(|sides| (sides, jam(one.clone(), &own, sides))).collect();
                        for (_, body) in &all {
                            self.after(Step::Jam, body);
                        }
                        all
                    }
                };
                (jammed, Some(self.in_vector(body, form(Part::Tail, 0))?))
            }
            _ => (Vec::new(), None),
        };
        let ty = Ty::Vector(element, lanes);
        let mut in_tiles = |body| {
            let body = self.step(Step::Windows, body, |body, fresh| windows(body, &facts.affines, ty, fresh));
            let body =
                self.step(Step::RowTiles, body, |body, fresh| row_tiles(body, &facts.affines, ty, fresh));
            self.step(Step::Ahead, body, |body, fresh| ahead(body, ty, fresh))
        };
        let count = jammed.len();
        let in_tiles_too = jammed.into_iter().enumerate().filter_map(|(k, (sides, body))| {
            let tiled = in_tiles(body.clone());
            // What loops hand on or turn round needs the registers that more vectors would have.
            (k + 1 == count || tiled == body).then_some((sides, tiled))
        });
        let jammed = in_tiles_too.collect();
        let whole = whole.into_iter().map(in_tiles).collect();
        Some(InVectors { lanes, jammed, whole, tail })
    }

    /// A body of the interior in so many lanes of this type, with loads at indices from data: whole vectors alone.
    pub fn vectors_with_gathers(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        body: &Body,
        (element, lanes): (Type, usize),
        gathers: &Gathers,
    ) -> Option<InVectors> {
        if [Step::Vectorise, Step::Gathers].iter().any(|step| self.leaves_out(*step)) {
            return None;
        }
        let along = Neighbours { program: self.program, interior, innermost: innermost(it.par) };
        let (part, idle) = (Part::Whole, Idle::Present);
        let form = Vectors { along: &along, element, lanes, part, vector: 0, at_once: lanes, idle, gathers };
        self.comes_to(Step::Vectorise);
        let whole = vectorise(body, form, &mut self.fresh)?;
        self.after(Step::Gathers, &whole);
        Some(InVectors { lanes, jammed: Vec::new(), whole: vec![whole], tail: None })
    }

    /// The first lanes of a vector of iterations anywhere in a row, for loops whose accesses are proved.
    pub fn ends_of_rows(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        (element, lanes): (Type, usize),
    ) -> Option<Body> {
        let program = self.program;
        let body = self.lowered(it, &it.par.body, &interior.exact);
        let body = in_interior(body, program, interior, innermost(it.par));
        let along = Neighbours { program, interior, innermost: innermost(it.par) };
        let idle = Idle::Absent(Variable::Mask(self.fresh.next()).into());
        let (part, vector, at_once) = (Part::Tail, 0, lanes);
        self.comes_to(Step::RowEnds);
        let body = vectorise(
            &body,
            Vectors {
                along: &along,
                element,
                lanes,
                part,
                vector,
                at_once,
                idle,
                gathers: &Gathers::default(),
            },
            &mut self.fresh,
        )?;
        self.after(Step::RowEnds, &body);
        Some(body)
    }

    /// Iterations of several rows side by side, in the interior of the whole domain, in so many lanes of this type: where
    /// `analysis::rows_side_by_side` says that it pays, and no other step has a better form.
    pub fn rows_side_by_side(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        shape: RowsSideBySide,
        (element, lanes): (Type, usize),
    ) -> Option<RowsInVectors> {
        let (program, facts, par) = (self.program, self.facts, it.par);
        if [Step::Interior, Step::Vectorise, Step::Jam, Step::JamRows].iter().any(|s| self.leaves_out(*s)) {
            return None;
        }
        let RowsSideBySide { rows, columns, between } = shape;
        let one = self.hoisted(it, interior);
        let along = Neighbours { program, interior, innermost: innermost(par) };
        let (idle, gathers) = (Idle::Present, &Gathers::default());
        let form =
            |part| Vectors { along: &along, element, lanes, part, vector: 0, at_once: lanes, idle, gathers };
        let whole = self.in_vector(&one, form(Part::Whole))?;
        let tail = self.in_vector(&one, form(Part::Tail))?;
        let varying = &interior.varying;
        let jammed = jam(whole.clone(), &(varying.values.clone(), varying.locals.clone()).into(), columns);
        let mut own = PerSide::from((between.values, between.locals));
        let early = interior.interval().before.into_iter();
        let lets = early.filter_map(|before| match before {
            Before::Value(v) => Some(Source::Let(v)),
            Before::Wrapped { .. } => None,
        });
        let before = self.lowered(it, &lets.collect(), &interior.exact);
        self.comes_to(Step::Vectorise);
        self.comes_to(Step::JamRows);
        let [before, whole, tail] = [before, whole, tail].map(|body| jam_rows(body, &own, rows));
        own.within = columns;
        let jammed = jam_rows(jammed, &own, rows);
        let (before, whole, tail, jammed) = (before?, whole?, tail?, jammed?);
        for body in [&before, &whole, &tail, &jammed] {
            self.after(Step::JamRows, body);
        }
        // Rows whose loops hand elements on, or turn squares of them round, have their best form one by one.
        let ty = Ty::Vector(element, lanes);
        let others = windows(whole.clone(), &facts.affines, ty, &mut self.fresh);
        let others = row_tiles(others, &facts.affines, ty, &mut self.fresh);
        let plain = ahead(others, ty, &mut self.fresh) == whole;
        plain.then_some(RowsInVectors { rows, before, jammed: (columns, jammed), whole, tail })
    }

    fn in_vector(&mut self, body: &Body, form: Vectors) -> Option<Body> {
        self.comes_to(Step::Vectorise);
        let body = vectorise(body, form, &mut self.fresh)?;
        self.after(Step::Vectorise, &body);
        Some(body)
    }
}

/// Has a body loops of which lanes have different iterations? The depth of recursion is that of nesting in the source.
fn is_partly(body: &Body) -> bool {
    let own = |stmt: &Stmt| matches!(stmt, Stmt::Loop(l) if l.partly.is_some());
    body.iter().any(|stmt| own(stmt) || stmt.blocks().into_iter().any(is_partly))
}
