//! Loops that turn tiles of rows round: as many iterations as a vector has lanes at a time.

use std::collections::BTreeSet;

use crate::kernel::name::{Name, Ty};
use crate::kernel::stmt::{Loop, Stmt, Way};
use crate::kernel::tiles::{Tile, index_statements, tiles};
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::operation::c_ty;
use crate::print::statements::{Context, rows_apart};

impl Emitter<'_> {
    /// Prints the iterations of a loop that fill tiles, up to a limit; those that are left remain.
    pub fn whole_tiles(
        &mut self,
        cx: Context,
        l: &Loop,
        (v, limit): (Name, &str),
        iteration: impl FnOnce(&mut Self, Context),
    ) {
        let tiles = tiles(l);
        let Some(Ty::Vector(_, lanes)) = tiles.first().map(|tile| tile.ty) else { return };
        line!(self, "for (; {limit} - {v} >= {lanes};) {{");
        for Tile { number, ty, stored, .. } in &tiles {
            let Ty::Vector(one, lanes) = *ty else { continue };
            self.turned.insert(c_type(one));
            let constant = if *stored { "" } else { "const " };
            line!(self, "{constant}{} *rows{number}; {} tile{number}[{lanes}];", c_type(one), c_ty(*ty));
        }
        line!(self, "{{");
        let needed: BTreeSet<String> = tiles
            .iter()
            .flat_map(|tile| index_statements(&l.body, tile.element).unwrap_or_default())
            .filter_map(|stmt| if let Stmt::Let { name, .. } = stmt { Some(name.to_string()) } else { None })
            .collect();
        for stmt in &l.body {
            if let Stmt::Let { name, .. } = stmt
                && needed.contains(&name.to_string())
            {
                self.body(cx, std::slice::from_ref(stmt));
            }
        }
        for Tile { number, element, way, .. } in &tiles {
            let offset = self.offset(cx, element);
            let back = if *way == Way::Before { format!(" - {}", lanes - 1) } else { String::new() };
            line!(self, "rows{number} = a{} + {offset}{back};", element.array.index());
        }
        line!(self, "}}");
        for Tile { number, element, ty, rows, .. } in tiles.iter().filter(|tile| tile.loaded) {
            let apart = rows_apart(element.array, rows);
            line!(self, "eb_turn_{}(rows{number}, {apart}, tile{number});", c_ty(*ty));
        }
        line!(self, "for (int turn = 0; turn < {lanes}; turn++, {v}++) {{");
        iteration(self, Context { tiles: true, ..cx });
        line!(self, "}}");
        for Tile { number, element, ty, rows, .. } in tiles.iter().filter(|tile| tile.stored) {
            let apart = rows_apart(element.array, rows);
            line!(self, "eb_turn_back_{}(rows{number}, {apart}, tile{number});", c_ty(*ty));
        }
        line!(self, "}}");
    }
}
