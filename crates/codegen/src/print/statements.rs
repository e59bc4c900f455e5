//! The statements of iterations, as C and CUDA C.

use ebbtide_ir::{ArrayId, Combine, Literal, evaluate};

use crate::kernel::expr::Expr;
use crate::kernel::machine::Family;
use crate::kernel::name::{Name, Ty};
use crate::kernel::stmt::{Check, Element, Fault, Manner, Part, Place, Stmt, Stride, Way};
use crate::print::c_types::{c_literal, c_type, word};
use crate::print::emitter::{Emitter, Pace, line};
use crate::print::operation::c_ty;
use crate::print::term_runs::counted_at_place;
use crate::transform::lower::Team;

/// What the text of an iteration needs to know besides its statements.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    /// Where to go after a fault.
    pub exit: usize,
    pub team: Team,
    pub lanes: Lanes,
    pub pace: Pace,
    /// Is a fault raised? Where another text of the same iteration raises it, this one ends.
    pub raises: bool,
    /// Are the tiles of the loop around in registers?
    pub tiles: bool,
    /// What the label ends in behind which iterations are taken one by one.
    pub again: usize,
}

/// Where the 16 sums of a leaf are while it is taken, one iteration at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// One thread has them all.
    InTable,
    /// Each of 16 threads has one.
    InThreads,
    /// Nowhere yet: an iteration keeps its term.
    Later,
}

impl Context {
    /// An iteration that one thread runs often.
    pub fn often(exit: usize) -> Context {
        Context {
            exit,
            team: Team::Alone,
            lanes: Lanes::InTable,
            pace: Pace::Often,
            raises: true,
            tiles: false,
            again: 0,
        }
    }

    /// The same, where it runs seldom.
    pub fn seldom(self) -> Context {
        Context { pace: Pace::Rare, ..self }
    }
}

impl Emitter<'_> {
    /// Prints statements. The depth of recursion is that of nesting in the source.
    pub fn body(&mut self, cx: Context, body: &[Stmt]) {
        for stmt in body {
            self.note_declared(stmt);
            self.body_statement(cx, stmt);
        }
    }

    fn body_statement(&mut self, cx: Context, stmt: &Stmt) {
        match stmt {
            Stmt::Let { name, ty, .. } if cx.tiles && self.ahead.contains(name) => {
                line!(self, "const {} {name} = ahead_{name}[turn];", c_ty(*ty));
            }
            Stmt::Let { name, ty, value } => {
                let value = self.expr(value, cx.pace);
                line!(self, "const {} {name} = {value};", c_ty(*ty));
            }
            Stmt::Declare { name, ty, value } => {
                let value = self.expr(value, cx.pace);
                line!(self, "{} {name} = {value};", c_ty(*ty));
            }
            Stmt::Assign { name, value, .. } => {
                let value = self.expr(value, cx.pace);
                line!(self, "{name} = {value};");
            }
            Stmt::Load { name, ty, element, when } => self.load(cx, *name, *ty, element, when.as_ref()),
            Stmt::Store { .. } => self.store(cx, stmt),
            Stmt::Strides(array) => {
                let a = array.index();
                (1..self.program.array(*array).rank)
                    .for_each(|k| line!(self, "const nx s{a}_{k} = eb_stride(d{a}_{k});"));
            }
            Stmt::Address { name, ty, element } => {
                let a = element.array.index();
                let index = self.indices(cx, element);
                let sums = index.into_iter().enumerate().fold(String::new(), |at, (k, sum)| match k {
                    0 => sum,
                    _ => format!("({at} * s{a}_{k} + {sum})"),
                });
                line!(self, "{} *const {name} = a{a} + {sums};", c_type(*ty));
            }
            Stmt::Reduce { number, ty, how, value, when, vector } => {
                let value = self.expr(value, cx.pace);
                let when = when.as_ref().map(|when| self.expr(when, cx.pace));
                self.reduce(cx, (*number, *vector), (*how, *ty), value, when);
            }
            // Elements are taken one by one, from all threads.
            Stmt::Claim { element, taken } => {
                let offset = self.offset(cx, element);
                let access = self.access(Some(element.array), &element.site);
                let taken = format!("a{} + {offset}", taken.index());
                let take = match self.family {
                    Family::C => format!("__atomic_exchange_n({taken}, 1, __ATOMIC_RELAXED)"),
                    Family::Cuda => format!("eb_take({taken})"),
                };
                line!(
                    self,
                    "if ({take}) {{ eb_fault(f, EB_TAKEN, {access}, 0, {offset}, 0); goto exit{}; }}",
                    cx.exit
                );
            }
            Stmt::Fault { operand, kind, counters, site } => {
                let operand = self.expr(operand, cx.pace);
                let counters: Vec<String> = counters.iter().map(|c| self.expr(c, cx.pace)).collect();
                let (when, fault) = match kind {
                    Fault::Division(v) => (format!("{operand} == 0"), self.division_fault(*v, &counters)),
                    Fault::DivisionAfterDeferred(v) => {
                        let first = "if (oops) eb_out_of_bounds(f, oops, oops_index, oops_extent); else";
                        (format!("{operand} == 0"), format!("{first} {}", self.division_fault(*v, &counters)))
                    }
                    Fault::Overflow => {
                        let access = self.access(None, site);
                        let when = format!("__builtin_expect({operand} == INT64_MIN, 0)");
                        (when, format!("eb_fault(f, EB_OVERFLOW, {access}, 0, 0, 0);"))
                    }
                };
                let fault = if cx.raises { fault } else { String::new() };
                line!(self, "if ({when}) {{ {fault} goto exit{}; }}", cx.exit);
            }
            Stmt::FallBack { unless, lanes } => {
                let unless = self.expr(unless, cx.pace);
                line!(self, "if (!{unless}) {{ stop = j + {lanes}; goto again{}; }}", cx.again);
            }
            Stmt::DeferFaults => line!(self, "i32 oops = 0; i64 oops_index = 0, oops_extent = 0;"),
            Stmt::RaiseDeferred => line!(
                self,
                "if (oops) {{ eb_out_of_bounds(f, oops, oops_index, oops_extent); goto exit{}; }}",
                cx.exit
            ),
            // A look is one load on a CPU; a GPU looks after a while alone.
            Stmt::Poll => {
                if self.family == Family::C {
                    line!(self, "{}", poll(cx));
                }
            }
            Stmt::Push { array, place, of, value } => {
                let value = self.expr(value, cx.pace);
                line!(self, "q{}.push({}, {value});", array.index(), place_ahead(*place, *of));
            }
            Stmt::Pop { array, place, of, name, .. } => {
                line!(self, "{name} = q{}.pop({});", array.index(), place_ahead(*place, *of));
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.expr(condition, cx.pace);
                line!(self, "if ({condition}) {{");
                self.body(cx, then);
                if !otherwise.is_empty() {
                    line!(self, "}} else {{");
                    self.body(cx, otherwise);
                }
                line!(self, "}}");
            }
            Stmt::Loop(l) => self.inner_loop(cx, l),
        }
    }

    fn indices(&mut self, cx: Context, element: &Element) -> Vec<String> {
        element.index().iter().map(|e| self.expr(e, cx.pace)).collect()
    }

    /// Prints the checks of an element, and gives its offset in its array.
    pub fn offset(&mut self, cx: Context, element: &Element) -> String {
        let (array, names) = (element.array, self.indices(cx, element));
        if let Check::Deferred(ok) = element.check {
            line!(self, "b8 {ok} = 1;");
        }
        if element.check != Check::Proved {
            let access = self.access(Some(array), &element.site);
            for (k, name) in names.iter().enumerate() {
                let extent = format!("d{}_{k}", array.index());
                let remember = |oops| format!("oops = {oops}; oops_index = {name}; oops_extent = {extent};");
                let what = match element.check {
                    Check::Deferred(ok) => {
                        format!("{ok} = 0; if (!oops) {{ {} }}", remember(8 * access + k + 1))
                    }
                    Check::Aside => format!("{} goto fault{};", remember(8 * access + k + 1), cx.exit),
                    Check::AtOnce | Check::Proved if !cx.raises => format!("goto exit{};", cx.exit),
                    Check::AtOnce | Check::Proved => format!(
                        "eb_fault(f, EB_BOUNDS, {access}, {k}, {name}, {extent}); goto exit{};",
                        cx.exit
                    ),
                };
                line!(self, "if ((u64){name} >= (u64){extent}) {{ {what} }}");
            }
        }
        if self.family == Family::Cuda && element.check == Check::Proved {
            // In bounds: what is wanted of the sums fits the narrow type where the array is not enormous.
            let narrow: Vec<String> = names.iter().map(|name| format!("(nx){name}")).collect();
            return flatten(array, &narrow, "(nx)");
        }
        flatten(array, &names, "")
    }

    /// Prints the checks of an element, and gives it as C knows it.
    pub fn element(&mut self, cx: Context, element: &Element) -> String {
        match &element.place {
            Place::From(name, away) => format!("{name}[{}]", distance(element, away)),
            Place::At(index) if self.family == Family::Cuda && element.check == Check::Proved => {
                self.element_of_row(cx, element.array, index)
            }
            _ => format!("a{}[{}]", element.array.index(), self.offset(cx, element)),
        }
    }

    /// An element that exists, as CUDA C knows it. Where the last index is a number, or counts the iterations of a loop, it is added to the
    /// address of the row: elements of a row share that, and a loop goes along it.
    fn element_of_row(&mut self, cx: Context, array: ArrayId, index: &[Expr]) -> String {
        // In bounds: what is wanted of the sums fits the narrow type where the array is not enormous.
        let names: Vec<String> = index.iter().map(|e| format!("(nx){}", self.expr(e, cx.pace))).collect();
        let number = array.index();
        let (Some((last, rest)), Some((e, _))) = (names.split_last(), index.split_last()) else {
            return format!("a{number}[0]");
        };
        let along = match e {
            Expr::Literal(_) => true,
            Expr::Variable(name) => self.running.contains(name),
            _ => false,
        };
        if !along {
            return format!("a{number}[{}]", flatten(array, &names, "(nx)"));
        }
        let last = last.trim_start_matches("(nx)");
        match rest {
            [] => format!("a{number}[{last}]"),
            _ => format!(
                "(a{number} + {} * (nx)d{number}_{})[{last}]",
                flatten(array, rest, "(nx)"),
                rest.len()
            ),
        }
    }

    /// The name of an element that is only read, as it is read.
    pub fn read(&self, element: &Element, text: String) -> String {
        match self.constant.contains(&element.array) {
            true => format!("__ldg(&{text})"),
            false => text,
        }
    }

    fn load(&mut self, cx: Context, name: Name, ty: Ty, element: &Element, when: Option<&Expr>) {
        let t = c_ty(ty);
        if let Some(tile) = vector_of_tile(cx, element, ty) {
            return line!(self, "const {t} {name} = {tile};");
        }
        if let Place::Gathered(index) = &element.place {
            let place = self.place_of_each(cx, ty, element.array, index);
            return line!(self, "const {t} {name} = eb_gather_at_{t}(a{}, {place});", element.array.index());
        }
        if let Place::Lanes { stride, part, .. } = &element.place {
            let mask = when.map(|when| self.expr(when, cx.pace));
            let (load, _) = self.lanes_of(cx, ty, element, (stride, *part), mask.as_deref());
            return line!(self, "const {t} {name} = {load};");
        }
        let text = self.element(cx, element);
        let text = self.read(element, text);
        let when = match element.check {
            Check::Deferred(ok) => Some(ok.to_string()),
            _ => when.map(|when| self.expr(when, cx.pace)),
        };
        match when {
            Some(when) => line!(self, "const {t} {name} = {when} ? {text} : ({t})1;"),
            None => line!(self, "const {t} {name} = {text};"),
        }
    }

    fn store(&mut self, cx: Context, stmt: &Stmt) {
        let Stmt::Store { element, ty, how, value, more, when, manner } = stmt else { return };
        if let Place::Lanes { stride: Stride::Same, part, .. } = &element.place {
            return self.combine_lanes(cx, stmt, *part);
        }
        let more: Vec<String> = more.iter().map(|value| self.expr(value, cx.pace)).collect();
        if let Place::Lanes { stride, part, .. } = &element.place {
            let mask = when.as_ref().map(|when| self.expr(when, cx.pace));
            let (load, (store, end)) = match vector_of_tile(cx, element, *ty) {
                Some(tile) => (tile.clone(), (format!("{tile} = "), "")),
                None => {
                    let (load, store) = self.lanes_of(cx, *ty, element, (stride, *part), mask.as_deref());
                    (load, (store, ")"))
                }
            };
            let mut value = self.expr(value, cx.pace);
            if let Some(how) = how {
                value = self.combine(*how, *ty, &load, &value);
                value = more.iter().fold(value, |sum, term| self.combine(*how, *ty, &sum, term));
            }
            if let Some(mask) = when
                && *manner == Manner::LaneByLane
            {
                return self.store_lane_by_lane(cx, (element, stride, *part), *ty, (mask, &value));
            }
            if let Some(mask) = mask.filter(|_| *part != Part::Mask) {
                value = format!("op_select_{}({mask}, {value}, {load})", c_ty(*ty));
            }
            line!(self, "{store}{value}{end};");
            if *manner == Manner::Counted {
                self.count_lanes(cx, (element, stride, *part), *ty, when.as_ref());
            }
            return;
        }
        let noted =
            matches!(manner, Manner::Noted(_) | Manner::Bucket(_) | Manner::Counted | Manner::CountedFor(_));
        let offset = if noted { self.offset(cx, element) } else { String::new() };
        let text = if offset.is_empty() { self.element(cx, element) } else { String::new() };
        let value = self.expr(value, cx.pace);
        let when = match element.check {
            Check::Deferred(ok) => Some(format!("{ok} && !oops")),
            _ => when.as_ref().map(|when| self.expr(when, cx.pace)),
        };
        let only = when.as_ref().map_or(String::new(), |when| format!("if ({when}) "));
        match (manner, how) {
            (Manner::Noted(table), _) => {
                // There is room but where a fault made an end to counting, which is raised.
                let room = format!("next{table} < end{table}");
                let only = when.as_ref().map_or(room.clone(), |when| format!("{when} && {room}"));
                line!(
                    self,
                    "if ({only}) {{ keys{table}[next{table}] = (nx)({offset}); terms{table}[next{table}++] = {value}; }}"
                );
            }
            (Manner::Bucket(table), _) => {
                let array = element.array;
                let element = format!("a{}[place]", array.index());
                let combined = how.map_or("term".to_string(), |how| self.combine(how, *ty, &element, "term"));
                let t = c_ty(*ty);
                let rarely = if cx.pace == Pace::Rare { "rarely_" } else { "" };
                let note =
                    format!("eb_note_{rarely}{t}(notes, bucket{table}, mask, shift{table}, place, term)");
                let counted = self.count_term(array, *ty);
                for value in [value].iter().chain(&more) {
                    line!(self, "{only}{{ const i64 place = {offset}; const {t} term = {value};");
                    line!(
                        self,
                        "if (noted) {{ if ({note}) goto exit{}; }} else {{ {element} = {combined};{counted} }} }}",
                        cx.exit
                    );
                }
            }
            (Manner::Counted, _) if self.family == Family::Cuda => {
                let number = self.counted_number(element.array).unwrap_or_default();
                for value in [value].iter().chain(&more) {
                    line!(
                        self,
                        "{only}eb_add_counted(runs{number}, counts, {offset}, ({})({value}));",
                        c_ty(*ty)
                    );
                }
            }
            (Manner::CountedFor(away), Some(how)) => {
                let (array, number) = (element.array, self.counted_number(element.array).unwrap_or_default());
                let (a, t) = (array.index(), c_ty(*ty));
                let sum = self.combine(*how, *ty, &format!("a{a}[place]"), &value);
                let all: String = [0].iter().chain(away).fold(String::new(), |all, away| {
                    format!("{all} eb_end_run_{t}(f, {number}, a{a}, place + {away});")
                });
                line!(
                    self,
                    "{only}{{ const i64 place = {offset}; a{a}[place] = {sum}; if ({}) {{{all} }} }}",
                    counted_at_place(number)
                );
            }
            (Manner::Counted, _) => {
                let terms: Vec<String> = [value].into_iter().chain(more).collect();
                self.add_counted(element.array, *ty, (&only, &offset), &terms);
            }
            (Manner::Atomic, Some(how)) => {
                line!(self, "{only}eb_atomic_{}(&{text}, {value});", word(*how));
            }
            (manner, how) => {
                let value = match how {
                    Some(how) => {
                        let sum = self.combine(*how, *ty, &text, &value);
                        more.iter().fold(sum, |sum, term| self.combine(*how, *ty, &sum, term))
                    }
                    None => value,
                };
                if *manner == Manner::Leader {
                    let when = when.map_or(String::new(), |when| format!(" && {when}"));
                    line!(
                        self,
                        "eb_meet_in_team(team); if (eb_leads(team){when}) {text} = {value}; eb_meet_in_team(team);"
                    );
                } else {
                    line!(self, "{only}{text} = {value};");
                }
            }
        }
    }

    /// Adds a term to what a thread, or each lane of its vectors, has summed up.
    fn reduce(
        &mut self,
        cx: Context,
        (number, vector): (usize, usize),
        (how, ty): (Combine, Ty),
        mut value: String,
        when: Option<String>,
    ) {
        // The element itself is checked and combined into once, after the loop.
        if let Ty::Vector(element, _) = ty {
            line!(self, "seen{number} = 1;");
            if let Some(mask) = when {
                let neutral = Literal::from_bits(element, evaluate::neutral(how, element));
                let t = c_ty(ty);
                value = format!("op_select_{t}({mask}, {value}, op_float_{t}({}))", c_literal(neutral));
            }
            if let (Lanes::Later, Ty::Vector(_, lanes)) = (cx.lanes, ty) {
                let at = format!("kept{number} + (j + {} - origin)", vector * lanes);
                return line!(self, "eb_store_{}({at}, {value});", c_ty(ty));
            }
            let name = format!("r{number}_{vector}");
            let combined = self.combine(how, ty, &name, &value);
            return line!(self, "{name} = {combined};");
        }
        let only = when.map_or(String::new(), |when| format!("if ({when}) "));
        line!(self, "{only}seen{number} = 1;");
        let sum = match cx.lanes {
            Lanes::InTable => format!("r{number}.lane[lane]"),
            Lanes::InThreads => format!("r{number}"),
            Lanes::Later => return line!(self, "{only}term{number} = {value};"),
        };
        let combined = self.combine(how, ty, &sum, &value);
        line!(self, "{only}{sum} = {combined};");
    }
}

/// Leaves the loop where the host wants the launch to end. A team leaves together: some would wait for others.
pub(crate) fn poll(cx: Context) -> String {
    let stopped = match cx.team {
        Team::Alone => "eb_stopped(f)",
        Team::Lanes => "eb_any_of_team(team, eb_stopped(f))",
    };
    format!("if ({stopped}) goto exit{};", cx.exit)
}

/// Which of the places of a tape that are at hand a push or pop uses (`print::interchanged`).
fn place_ahead(place: u32, of: u32) -> String {
    match of {
        1 => "nth".to_string(),
        of => format!("{of} * nth + {place}"),
    }
}

/// The place of an element in memory, last dimension fastest; `as_type` stands before extents.
pub(crate) fn flatten(array: ArrayId, names: &[String], as_type: &str) -> String {
    let mut offset = String::from("0");
    for (k, name) in names.iter().enumerate() {
        offset = match k {
            0 => name.clone(),
            _ => format!("({offset} * {as_type}d{}_{k} + {name})", array.index()),
        };
    }
    offset
}

/// How many elements apart the elements of neighbouring lanes are, as a C expression.
pub(crate) fn rows_apart(array: ArrayId, rows: &[i64]) -> String {
    let rows: Vec<String> = rows.iter().map(i64::to_string).collect();
    flatten(array, &rows, "")
}

/// The vector of a tile that an iteration has, where tiles are at hand.
fn vector_of_tile(cx: Context, element: &Element, ty: Ty) -> Option<String> {
    match (&element.place, ty) {
        (Place::Lanes { stride: Stride::Tile { number, way, .. }, .. }, Ty::Vector(_, lanes)) if cx.tiles => {
            Some(match way {
                Way::Behind => format!("tile{number}[turn]"),
                Way::Before => format!("tile{number}[{} - turn]", lanes - 1),
            })
        }
        _ => None,
    }
}

/// How many elements away from an address an element is, as a C expression.
fn distance(element: &Element, away: &[i64]) -> String {
    let mut sum: Option<String> = None;
    for (k, away) in away.iter().enumerate() {
        let extent = format!("s{}_{k}", element.array.index());
        sum = match sum {
            None if *away == 0 => None,
            None => Some(away.to_string()),
            Some(sum) => {
                let rows = match sum.as_str() {
                    "1" => extent,
                    "-1" => format!("-{extent}"),
                    _ => format!("({sum}) * {extent}"),
                };
                Some(if *away == 0 { rows } else { format!("{rows} + {away}") })
            }
        };
    }
    sum.unwrap_or_else(|| "0".to_string())
}
