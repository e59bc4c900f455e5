//! A call of a program that brings its own derivatives is made one operation before anything else happens, and put back
//! in the end: between the two nothing looks inside.

use std::sync::Arc;

use ebbtide_ir::{
    Access, Block, Bound, Call, LibraryCall, LibraryOp, Operation, OperationId, Program, Ruled, Stmt, Work,
    walk,
};

use crate::error::Error;

/// A call of a program that brings its own derivatives, as one operation.
pub(crate) fn closed(program: &mut Program, name: String, body: Block, ruled: Ruled) -> Stmt {
    let arrays = |wanted: Access| {
        let of = |bound: &Bound| match *bound {
            Bound::Array(array, access) => (access == wanted).then_some(array),
            Bound::Scalar(_) => None,
        };
        ruled.arguments.iter().filter_map(of).collect()
    };
    let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
    program.operations.push(Arc::new(Operation { name, work: Work::Inline(body), rules: ruled.rules }));
    let op = LibraryOp::Custom(OperationId::from_index(program.operations.len() - 1));
    Stmt::Library(LibraryCall { op, reads, writes, arguments: ruled.arguments, site: None })
}

/// Puts the bodies of called programs back in their places.
pub(crate) fn open(program: &mut Program) {
    let operations = std::mem::take(&mut program.operations);
    let mut body = std::mem::take(&mut program.body);
    open_block(&operations, &mut body);
    program.body = body;
    program.operations = operations;
}

/// The depth of recursion is the depth of nesting in the source.
fn open_block(operations: &[Arc<Operation>], block: &mut Block) {
    for stmt in block {
        stmt.blocks_mut().for_each(|inner| open_block(operations, inner));
        if let Stmt::Library(LibraryCall { op: LibraryOp::Custom(id), arguments, .. }) = stmt
            && let Some(Operation { name, work: Work::Inline(body), rules }) =
                operations.get(id.index()).map(|operation| &**operation)
        {
            let ruled = Ruled { arguments: std::mem::take(arguments), rules: *rules };
            *stmt = Stmt::Call(Call { name: name.clone(), body: body.clone(), ruled: Some(ruled) });
        }
    }
}

/// Nothing yields inside a called program that brings its own derivatives, in a differentiated run.
pub(crate) fn refuse_yields(source: &Program) -> Result<(), Error> {
    for operation in &source.operations {
        let Work::Inline(body) = &operation.work else { continue };
        let mut yields = false;
        walk(body, &mut |stmt| yields |= matches!(stmt, Stmt::Region(region) if region.flag.is_some()));
        if yields {
            return Err(Error::Unsupported {
                program: source.name.clone(),
                what: format!("`{}`, which brings its own derivative and can yield,", operation.name),
            });
        }
    }
    Ok(())
}
