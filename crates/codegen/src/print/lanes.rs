//! The elements of the lanes of vectors, as C: how they are loaded, stored, and combined with.

use ebbtide_ir::{ArrayId, Combine, Literal};

use crate::kernel::expr::Expr;
use crate::kernel::name::{Ty, as_wide};
use crate::kernel::stmt::{Element, Manner, Part, Stmt, Stride};
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, Pace, line};
use crate::print::operation::c_ty;
use crate::print::statements::{Context, rows_apart};

impl Emitter<'_> {
    /// Stores what those lanes have that a mask names; the elements of others are left alone.
    pub fn store_lane_by_lane(
        &mut self,
        cx: Context,
        (element, stride, part): (&Element, &Stride, Part),
        ty: Ty,
        (mask, value): (&Expr, &str),
    ) {
        let vector = c_ty(ty);
        let (at, stride, count) = self.place_of_lanes(cx, ty, element, stride, part);
        let here = self.here(mask, ty, cx.pace);
        line!(self, "{{ const {vector} here = {here}, put = {value};");
        let stride = stride.map_or(String::new(), |stride| format!(" * ({stride})"));
        line!(self, "for (int k = 0; k < {count}; k++) if (here[k] != 0) ({at})[k{stride}] = put[k]; }}");
    }

    /// A mask as numbers, of which those are not zero that it names: a mask may be a number of bits.
    fn here(&mut self, mask: &Expr, ty: Ty, pace: Pace) -> String {
        let Ty::Vector(one, _) = ty else { return String::new() };
        let all = |x| Expr::Splat(ty, Box::new(Expr::Literal(Literal::of(one, x))));
        self.expr(&Expr::select(ty, mask.clone(), all(1.0), all(0.0)), pace)
    }

    /// Combines what the lanes have with the one element that they share, or notes it, lane after lane: the order of iterations.
    pub fn combine_lanes(&mut self, cx: Context, stmt: &Stmt, part: Part) {
        let Stmt::Store { element, ty, how: Some(how), value, more, when, manner } = stmt else { return };
        let Ty::Vector(one, lanes) = *ty else { return };
        let (t, vector, array) = (c_type(one), c_ty(*ty), element.array.index());
        let offset = self.offset(cx, element);
        line!(self, "{{ const i64 place = {offset};");
        let count = if part == Part::Tail { "tail".to_string() } else { lanes.to_string() };
        let mut each = format!("for (int k = 0; k < {count}; k++)");
        if let Some(mask) = when {
            let here = self.here(mask, *ty, cx.pace);
            line!(self, "const {vector} here = {here};");
            each += " if (here[k] != 0)";
        }
        let (mut sums, mut notes) = (String::new(), String::new());
        for (k, value) in [value].into_iter().chain(more).enumerate() {
            let value = self.expr(value, cx.pace);
            line!(self, "const {vector} terms{k} = {value};");
            let term = format!("terms{k}[k]");
            sums += &format!(" sum = {};", self.combine(*how, Ty::One(one), "sum", &term));
            if let Manner::Bucket(table) = manner {
                let note = format!("eb_note_{t}(notes, bucket{table}, mask, shift{table}, place, {term})");
                notes += &format!(" if ({note}) goto exit{};", cx.exit);
            }
        }
        if !notes.is_empty() {
            line!(self, "if (noted) {{ {each} {{{notes} }} }} else");
        }
        let all = format!("{{ {t} sum = a{array}[place]; {each} {{{sums} }} a{array}[place] = sum; }}");
        let Some(number) = self.counted_number(element.array).filter(|_| *how == Combine::Add) else {
            return line!(self, "{all} }}");
        };
        // A run may end among these terms: then they are added one by one.
        let terms = 1 + more.len();
        line!(self, "{{ i64 all = 0; {each} all += {terms};");
        line!(self, "if (eb_count_all(f, {number}, place, all)) {all}");
        let adds: String = (0..terms)
            .map(|k| format!(" eb_add_counted_{t}(f, {number}, a{array}, place, terms{k}[k]);"))
            .collect();
        line!(self, "else {each} {{{adds} }} }} }}");
    }

    /// Counts the terms that the elements of lanes have just got, one each. Lanes have elements of their own: where several updates
    /// are one statement, lanes share the element.
    pub fn count_lanes(
        &mut self,
        cx: Context,
        (element, stride, part): (&Element, &Stride, Part),
        ty: Ty,
        when: Option<&Expr>,
    ) {
        let (Ty::Vector(one, _), Some(_)) = (ty, self.counted_number(element.array)) else { return };
        let a = element.array.index();
        let (at, stride, count) = self.place_of_lanes(cx, ty, element, stride, part);
        line!(self, "{{ const i64 first = ({at}) - a{a};");
        let mut each = format!("for (int k = 0; k < {count}; k++)");
        if let Some(mask) = when {
            let here = self.here(mask, ty, cx.pace);
            line!(self, "const {} here = {here};", c_ty(ty));
            each += " if (here[k] != 0)";
        }
        let stride = stride.map_or(String::new(), |stride| format!(" * ({stride})"));
        let counted = self.count_term(element.array, Ty::One(one));
        line!(self, "{each} {{ const i64 place = first + k{stride};{counted} }} }}");
    }

    /// How the elements of all lanes are loaded, and the beginning of how they are stored; those of a mask, where one is given.
    pub fn lanes_of(
        &mut self,
        cx: Context,
        ty: Ty,
        element: &Element,
        (stride, part): (&Stride, Part),
        mask: Option<&str>,
    ) -> (String, String) {
        let (vector, (at, stride, count)) = (c_ty(ty), self.place_of_lanes(cx, ty, element, stride, part));
        if let (Part::Mask, Some(mask)) = (part, mask) {
            return (
                format!("eb_load_where_{vector}({at}, {mask})"),
                format!("eb_store_where_{vector}({at}, {mask}, "),
            );
        }
        match (stride, part) {
            (None, Part::Whole) => (format!("eb_load_{vector}({at})"), format!("eb_store_{vector}({at}, ")),
            (None, Part::Tail | Part::Mask) => {
                (format!("eb_load_part_{vector}({at}, tail)"), format!("eb_store_part_{vector}({at}, tail, "))
            }
            (Some(stride), _) => {
                let place = format!("({at}, {stride}, {count}");
                (format!("eb_gather_{vector}{place})"), format!("eb_put_{vector}{place}, "))
            }
        }
    }

    /// Where each lane has its element, whose index it computes for itself.
    pub fn place_of_each(&mut self, cx: Context, ty: Ty, array: ArrayId, index: &[Expr]) -> String {
        let Ty::Vector(element, lanes) = ty else { return String::new() };
        let integers = c_ty(Ty::Vector(as_wide(element), lanes));
        let each = index.iter().map(|e| self.expr(e, cx.pace)).enumerate();
        each.fold(String::new(), |place, (k, at)| match k {
            0 => at,
            _ => {
                let extent =
                    format!("(({integers}){{0}} + ({})d{}_{k})", c_type(as_wide(element)), array.index());
                format!("({place} * {extent} + {at})")
            }
        })
    }

    /// Where the elements of lanes are: the first one, how far they are apart where they are not side by side, and how many there
    /// are.
    fn place_of_lanes(
        &mut self,
        cx: Context,
        ty: Ty,
        element: &Element,
        stride: &Stride,
        part: Part,
    ) -> (String, Option<String>, String) {
        let array = element.array;
        if let Ty::Vector(ty, lanes) = ty
            && !(ty.is_float() && lanes * ty.size() == self.target.vector_bytes)
        {
            self.others.insert((c_type(ty), lanes));
        }
        let at = format!("a{} + {}", array.index(), self.offset(cx, element));
        let stride = match stride {
            Stride::Same => Some("0".to_string()),
            Stride::Next => None,
            Stride::Apart(stride) => Some(stride.to_string()),
            Stride::Rows(rows) | Stride::Tile { rows, .. } => Some(rows_apart(array, rows)),
        };
        let lanes = if let Ty::Vector(_, lanes) = ty { lanes } else { 1 };
        (at, stride, if part == Part::Tail { "tail".to_string() } else { lanes.to_string() })
    }
}
