//! Whether a program can yield, as far as its own text tells.

use syn::visit::Visit;
use syn::{Attribute, Block, Expr, ExprCall, Stmt};

/// The statements of the language that look like calls of programs.
const ITEMS: &[&str] = &["swap", "fill", "copy", "matmul", "scan", "compact", "scatter_unique"];

/// Can the program with this body yield? It can where a region has `yield_on`. One that calls another program may: what
/// that one does is not known here.
pub fn can_yield(body: &Block) -> bool {
    let mut search = Search { found: false };
    search.visit_block(body);
    search.found
}

struct Search {
    found: bool,
}

impl<'ast> Visit<'ast> for Search {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_checkpoint = attribute.path().segments.last().is_some_and(|last| last.ident == "checkpoint");
        if let (true, Ok(list)) = (is_checkpoint, attribute.meta.require_list()) {
            self.found |= list.tokens.to_string().contains("yield_on");
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        // Functions compute values, programs are statements.
        if let Stmt::Expr(Expr::Call(ExprCall { func, .. }), _) = stmt {
            let is_item = matches!(&**func, Expr::Path(path)
                if path.path.segments.last().is_some_and(|last| ITEMS.iter().any(|item| last.ident == item)));
            self.found |= !is_item;
        }
        // A method that stands as a statement is a program, unless it combines into an element.
        if let Stmt::Expr(Expr::MethodCall(call), _) = stmt {
            self.found |= call.method != "min_assign" && call.method != "max_assign";
        }
        syn::visit::visit_stmt(self, stmt);
    }
}
