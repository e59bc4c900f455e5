//! A segment as a tree: the program around parallel loops, which all threads run alike, with barriers where they must meet.
//!
//! Every thread computes scalars for itself and comes to the same. Elements are written by one thread, or by the threads together,
//! each its part; a barrier stands where one statement may touch what another thread still reads or has just written
//! (`transform::segment` puts it there).

#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod show;
pub(crate) mod verify;

use ebbtide_ir::{ArrayId, Combine, LibraryCall, LocalId, Loop, Par, Push, Region, Store, ValueId};

/// Steps in order.
pub(crate) type Steps<'p> = Vec<Step<'p>>;

/// A step of a segment.
#[derive(Clone, Debug)]
pub(crate) enum Step<'p> {
    /// All threads meet.
    Barrier(Barrier),
    /// Where a resumed run begins: the region that follows.
    Label(&'p Region),
    /// Each thread computes a value for itself.
    Let(ValueId),
    /// Each thread gives a local variable a value.
    Set(LocalId, ValueId),
    /// One thread gives an element a value, or combines it with one.
    Store {
        store: &'p Store,
        how: Option<Combine>,
        by: By,
    },
    /// A fault where the shapes of two arrays differ.
    SameShape(ArrayId, ArrayId),
    /// Two arrays exchange their names.
    Swap(ArrayId, ArrayId),
    /// All elements of an array, a part of them by each thread.
    Whole(Whole),
    If {
        condition: ValueId,
        then: Steps<'p>,
        otherwise: Steps<'p>,
    },
    /// A loop whose iterations all threads run one after the other.
    Loop(TimeLoop<'p>),
    /// Thread 0 runs these steps alone, and puts these local variables where others find them; all threads meet behind it.
    Alone(Steps<'p>, Vec<LocalId>),
    /// Each thread gives local variables the values that thread 0 put there.
    Take(Vec<LocalId>),
    /// A loop that runs inside the parallel loops of its iterations, where that can be, and all threads meet behind it; elsewhere
    /// these steps.
    Interchanged(&'p Loop, Steps<'p>),
    /// The domain of a parallel loop, what it requires, and then these steps.
    Par(&'p Par, Steps<'p>),
    /// The iterations of the parallel loop around it.
    Iterations(&'p Par, Manner),
    /// The sums of leaves of the parallel loop around it are combined into the elements that they are for, by thread 0.
    CombineLeaves(&'p Par),
    /// The same; but all threads come to the sums for themselves, and know them ([`Step::Sum`]).
    CombineForAll(&'p Par),
    /// Each thread gives a value what the element holds that this sum of the last such loop is for, by number.
    Sum(ValueId, &'p Par, usize),
    /// Do the arrays fit a library operation? Then these steps.
    Library(&'p LibraryCall, Steps<'p>),
    /// The operation itself; of a product that waits, each thread keeps the rows of the factors.
    Operation(&'p LibraryCall, Product),
    /// Takes the next place of a tape, and then these steps, in which what is kept is that place.
    Push(&'p Push, Steps<'p>),
    /// The memory of an array is exchanged with a place of its tape, which is taken for it.
    PushExchanged(&'p Push),
    /// The memory of an array is exchanged with the last place of its tape that is taken.
    Pop(ArrayId),
    /// The next place of the packed tapes of a group is looked for.
    NextPlace(usize),
    /// A value goes to that place.
    PushValue(ArrayId, ValueId),
    /// The place is taken.
    TakePlace(usize),
    /// The last place of the packed tapes of a group that is taken is free again.
    LastPlace(usize),
    /// What it holds becomes a value.
    PopValue(ArrayId, ValueId),
    /// An array has a place in which it is kept, for a region that may be undone: these steps, in which what is kept is that place.
    Keep(ArrayId, Steps<'p>),
    /// The same, where the region is undone.
    Restore(ArrayId, Steps<'p>),
    /// A local variable is kept, for a region that may be undone.
    KeepLocal(LocalId),
    /// The launch ends here where the flag of a region is set; before that, these steps undo what the region did.
    Yield {
        region: &'p Region,
        flag: ArrayId,
        undo: Steps<'p>,
    },
    /// A local variable is what it was before the region.
    RestoreLocal(LocalId),
    /// The products that wait for a matrix are multiplied into it, each part by one thread.
    Settle(ArrayId),
}

/// When threads meet at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    Always,
    /// Where nothing proves that the parallel loop before it met no fault: the first one of the program is to be reported.
    UnlessProved,
    /// Where blocks do not keep to their leaves in loops over the domain of this mapping; the threads of each block meet where they do.
    UnlessByLeaves(MappingId),
}

/// How the iterations of a parallel loop are dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Each thread takes a share, where there is enough to share.
    Shares,
    /// Each block takes the elements that it has of this product, and its threads share them.
    Tiles(ProductId),
    /// Teams of threads take an iteration each: others than its owner touch an element.
    Teams,
    /// Leaves of sums are dealt out.
    Leaves,
    /// Sums at shared elements keep the order of iterations.
    Ordered,
}

/// What becomes of all elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// They get this value.
    Fill(ArrayId, ValueId),
    /// They become zero.
    Clear(ArrayId),
    /// They get those of another array.
    Copy { from: ArrayId, to: ArrayId },
    /// They are kept.
    Keep(ArrayId),
    /// They get what is kept of them.
    Restore(ArrayId),
}

/// When the product of a library operation is added to its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// Where the operation stands; so are all operations that are no products.
    AtOnce,
    /// The same; each block takes tiles of it, beginning with the block that comes behind those of another product.
    Tiled { id: ProductId, behind: Option<ProductId> },
    /// With others, behind a loop around it ([`Step::Settle`]).
    Waits,
}

/// A loop around parallel loops.
#[derive(Clone, Debug)]
pub(crate) struct TimeLoop<'p> {
    pub source: &'p Loop,
    /// What comes before the condition of a `while`.
    pub head: Steps<'p>,
    pub body: Steps<'p>,
}

/// A way of dealing out iterations between threads, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MappingId(pub usize);

/// A product of a segment, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProductId(pub usize);

/// Which threads touch elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// Any thread any element.
    Anyone,
    /// Thread 0.
    First,
    /// Each element is touched by the thread that owns it.
    Owner(MappingId),
    /// Each element is touched by the block that has the same element of this product.
    Block(ProductId),
    /// Each element is touched by the block that takes its leaf of sums over the domain of this mapping.
    Leaf(MappingId),
}

impl<'p> Step<'p> {
    /// The steps that stand in it.
    pub fn inner(&self) -> impl Iterator<Item = &Steps<'p>> {
        let [first, second] = match self {
            Step::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Step::Loop(l) => [Some(&l.head), Some(&l.body)],
            Step::Alone(steps, _)
            | Step::Interchanged(_, steps)
            | Step::Par(_, steps)
            | Step::Library(_, steps)
            | Step::Push(_, steps)
            | Step::Keep(_, steps)
            | Step::Restore(_, steps)
            | Step::Yield { undo: steps, .. } => [Some(steps), None],
            _ => [None, None],
        };
        first.into_iter().chain(second)
    }
}

impl TimeLoop<'_> {
    /// Do all threads meet for certain in each iteration?
    pub fn meets(&self) -> bool {
        meet(&self.head) || meet(&self.body)
    }
}

/// Do all threads meet for certain in these steps? A loop may have no iteration. The depth of recursion is that of nesting in the
/// source.
fn meet(steps: &Steps) -> bool {
    steps.iter().any(|step| match step {
        Step::Barrier(barrier) => *barrier == Barrier::Always,
        Step::If { then, otherwise, .. } => meet(then) && meet(otherwise),
        Step::Par(_, steps) | Step::Library(_, steps) | Step::Push(_, steps) | Step::Keep(_, steps) => {
            meet(steps)
        }
        _ => false,
    })
}
