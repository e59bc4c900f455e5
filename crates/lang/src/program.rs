//! Programs as values.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ebbtide_ir as ir;
use ebbtide_runtime::{Arg, Device, Error, Result, Status};

use crate::compiled::Compiled;
use crate::cx::{Cx, Lines};
use crate::field::Field;

/// A source program: what `#[program]` emits beside the function that gives the [`Program`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a program",
    label = "not a `#[program]` or `#[operation]`"
)]
pub trait Source: 'static {
    /// The name of the program.
    const NAME: &'static str;

    /// The arguments of a launch: the bare parameter if there is one, else the tuple in order.
    type Args<'a>;

    /// The arguments of something that reads arrays alone, as a gradient does: as [`Source::Args`], with `&` everywhere.
    /// A tuple that is written with `&mut u` fits too: Rust turns `&mut u` into `&u` in it.
    type Reads<'a>;

    /// How a launch ends: [`Status`], or [`Done`] where the program cannot yield.
    type Ended: From<Status>;

    /// Builds the program.
    fn build(cx: &Cx);

    /// The derivatives that it brings itself.
    fn rules() -> ir::Rules {
        ir::Rules::none()
    }

    /// The arguments as a list, in the order of the program's parameters, structs taken apart.
    fn arguments<'a>(args: Self::Args<'a>) -> Vec<Arg<'a>>;

    /// The arguments of something that reads arrays alone, as a list.
    fn reads<'a>(args: Self::Reads<'a>) -> Vec<Arg<'a>>;

    /// Arguments that are lent for writing, lent for reading: for a tuple that is in a variable.
    fn shared<'a>(args: Self::Args<'a>) -> Self::Reads<'a>;

    /// The same arguments for one launch of several: what is behind the references is lent until it ends.
    fn reborrow<'b, 'a: 'b>(args: &'b mut Self::Args<'a>) -> Self::Args<'b>;
}

/// A program that takes these parameters, a tuple of [`Given`](crate::Given): what another one can be given to call.
#[diagnostic::on_unimplemented(
    message = "the program `{Self}` does not have the parameters that it is called with here",
    label = "`{Self}` takes other parameters",
    note = "the bound `Fn(..)` of the called program says which parameters there are, with `&`, `&mut` and types"
)]
pub trait Callable<P>: Source {
    /// Expands the program where it is called.
    #[doc(hidden)]
    #[track_caller]
    fn call(params: P);
}

/// A struct of arrays with a program as a method; `NAME` stands for the method's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no program as a method of this name, or not borrowed so",
    label = "no such method",
    note = "a method that programs call has `#[program]` in an `impl` block with `#[programs]`, and `&mut self` needs a struct \
            that is passed by `&mut`"
)]
pub trait Method<const NAME: u64>: Copy {
    /// Its parameters after the struct: a tuple of [`Given`](crate::Given).
    type Params;

    /// Expands the program where it is called.
    #[doc(hidden)]
    #[track_caller]
    fn call(self, params: Self::Params);
}

/// How a launch of a program that cannot yield ends: at its end.
///
/// A program cannot yield if no region has `yield_on`, in it and in the programs that it calls. Methods, and programs among its
/// parameters, count as programs that can. It compares and converts as [`Status::Done`] does, and needs no look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done;

/// How a launch ends: [`Status`] where the program can yield, and [`Done`] where it cannot.
#[doc(hidden)]
pub type Ended<const YIELDS: bool> = <Yielding<YIELDS> as Ending>::Ended;

/// A program, of which is known whether it can yield.
#[doc(hidden)]
#[derive(Debug)]
pub struct Yielding<const YIELDS: bool>;

/// What follows from whether a program can yield.
#[doc(hidden)]
pub trait Ending {
    /// How a launch ends.
    type Ended: From<Status>;
}

impl Ending for Yielding<true> {
    type Ended = Status;
}

impl Ending for Yielding<false> {
    type Ended = Done;
}

/// How deep programs call one another, before nothing is known of their yields. rustc nests 128 constant functions.
#[doc(hidden)]
pub const DEPTH_OF_CALLS: u32 = 64;

/// Items of the language that stand as statements and never yield.
#[doc(hidden)]
#[macro_export]
macro_rules! never_yields {
    ($($name:ident)*) => {$(
        impl $name {
            #[doc(hidden)]
            pub const fn __cannot_yield(_depth: u32) -> bool {
                true
            }
        }
    )*};
}

impl Done {
    /// The program reached its end.
    pub fn is_done(&self) -> bool {
        true
    }
}

impl From<Status> for Done {
    /// A program of this kind does not yield.
    fn from(_: Status) -> Done {
        Done
    }
}

impl From<Done> for Status {
    fn from(Done: Done) -> Status {
        Status::Done
    }
}

impl PartialEq<Status> for Done {
    fn eq(&self, other: &Status) -> bool {
        *other == Status::Done
    }
}

/// Checks the arguments for a program with these parameters first.
pub(crate) fn checked<'a, P: Source>(program: &ir::Program, args: Vec<Arg<'a>>) -> Result<Vec<Arg<'a>>> {
    for (param, arg) in program.params.iter().zip(&args) {
        if let (ir::Param::Scalar(s), Arg::Scalar(literal)) = (param, arg) {
            counted(P::NAME, &program.scalars[s.index()].name, *literal)?;
        }
    }
    Ok(args)
}

/// A scalar argument of the host. Programs count with signed numbers: a `usize` beyond them would be a negative one.
pub fn counted(program: &str, name: &str, literal: ir::Literal) -> Result<ir::Literal> {
    if literal.ty() != ir::Type::Index || literal.bits() <= i64::MAX as u64 {
        return Ok(literal);
    }
    let message =
        format!("`{name}` is {}, and a `usize` of a program is at most {}", literal.bits(), i64::MAX);
    Err(Error::Program(ir::Error::Launch { program: program.to_string(), message }))
}

/// A program: built when it is first used, printed as text, compiled for a device.
///
/// `P` is the empty type that `#[program] fn p(..)` emits under the function's own name; calling `p()` gives a
/// `Program<p>`.
#[must_use = "a program is compiled for a device and launched: `p().compile(&device)?.launch(args)?`"]
pub struct Program<P: Source> {
    built: OnceLock<Result<Built, ir::Error>>,
    source: PhantomData<fn() -> P>,
}

/// A program that is built: without the lines that it prints, and whether there are any.
#[derive(Clone)]
struct Built {
    program: Arc<ir::Program>,
    prints: bool,
}

impl<P: Source> Program<P> {
    /// The program, not built yet.
    pub const fn new() -> Program<P> {
        Program { built: OnceLock::new(), source: PhantomData }
    }

    /// The name of the program.
    pub fn name(&self) -> &'static str {
        P::NAME
    }

    /// The program in the form that devices run; a build error tells all that is wrong with it.
    pub fn ir(&self) -> Result<&Arc<ir::Program>> {
        self.built().as_ref().map(|built| &built.program).map_err(|error| error.clone().into())
    }

    /// The labels of its checkpoints, each once, in the order in which they stand; those of programs that it calls are among
    /// them.
    pub fn labels(&self) -> Result<&[ir::Label]> {
        Ok(&self.ir()?.labels)
    }

    /// How many labelled regions it has. A label stands once in one source program, and once more for each call of it.
    pub fn regions(&self) -> Result<usize> {
        let (mut blocks, mut regions) = (vec![&self.ir()?.body], 0);
        while let Some(block) = blocks.pop() {
            regions += block.iter().filter(|stmt| matches!(stmt, ir::Stmt::Region(_))).count();
            blocks.extend(block.iter().flat_map(ir::Stmt::blocks));
        }
        Ok(regions)
    }

    fn built(&self) -> &Result<Built, ir::Error> {
        self.built.get_or_init(|| {
            let (program, prints) = Cx::build(P::NAME, Lines::LeftOut, P::build)?;
            Ok(Built { program: Arc::new(program), prints })
        })
    }

    /// The same program with multiply-adds: a product that one sum or difference takes, and nothing else, is rounded once,
    /// together with it, as by `mul_add`.
    ///
    /// Rust does not do this by itself, so neither do programs: written twice, in a program and in plain Rust, a formula
    /// gives the same bits. With multiply-adds it is at least as accurate and needs fewer operations. It is done here,
    /// once, before the program is compiled or differentiated: its gradient takes the very same steps.
    pub fn with_fma(&self) -> Program<P> {
        let fused = self.built().clone().map(|built| {
            let program = Arc::new(ir::passes::fuse_multiply_add(&built.program));
            Built { program, prints: false }
        });
        Program { built: OnceLock::from(fused), source: PhantomData }
    }

    /// The program compiled for a device. What it prints is printed where the device interprets it.
    pub fn compile(&self, device: &Device) -> Result<Compiled<P>> {
        let prints = self.built().as_ref().is_ok_and(|built| built.prints);
        if prints && device.backend().interprets() {
            let (program, _) = Cx::build(P::NAME, Lines::Printed, P::build).map_err(Error::Program)?;
            return Ok(Compiled::new(ebbtide_runtime::Compiled::new(&Arc::new(program), device)?));
        }
        Ok(Compiled::new(ebbtide_runtime::Compiled::new(self.ir()?, device)?))
    }
}

/// Holds for nothing: only what is compiled can be launched.
#[diagnostic::on_unimplemented(
    message = "a program is compiled for a device before it is launched: `p().compile(&device)?.launch(args)?`",
    label = "write `.compile(&device)?` before `.launch(..)`",
    note = "a gradient likewise: `p().grad(p::loss).wrt(p::u).compile(&device)?.launch(args)?`; compile once, launch often"
)]
pub trait Launchable {}

/// Holds for nothing: a derivative is asked of a program, not of what was compiled from it.
#[diagnostic::on_unimplemented(
    message = "a derivative is asked of the program, and compiled itself: `p().grad(p::loss).wrt(p::u).compile(&device)?`",
    label = "write `p().grad(..)`, without `.compile(&device)?` before it"
)]
pub trait AskedOfPrograms {}

impl<P: Source> Program<P> {
    /// Programs are compiled first: this is here so that rustc says so.
    #[doc(hidden)]
    pub fn launch<A>(&self, _: A) -> Result<P::Ended>
    where
        Program<P>: Launchable,
    {
        Ok(P::Ended::from(Status::Done))
    }
}

impl<P: Source> Default for Program<P> {
    fn default() -> Program<P> {
        Program::new()
    }
}

/// The readable text form; of a program that cannot be built, what is wrong with it.
impl<P: Source> fmt::Display for Program<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ir() {
            Ok(program) => fmt::Display::fmt(program, f),
            Err(error) => fmt::Display::fmt(&error, f),
        }
    }
}

impl<P: Source> fmt::Debug for Program<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({})", P::NAME)
    }
}

/// The name of a parameter of a program and its type: `objective::loss` is a `Name<Array0<f64>>`.
///
/// Of a struct it has the names of its members: `step::w.pos`, `step::w.grid.u`.
pub struct Name<T> {
    __name: &'static str,
    __type: PhantomData<fn() -> T>,
}

impl<T> Name<T> {
    /// The parameter with this name.
    pub const fn new(name: &'static str) -> Name<T> {
        Name { __name: name, __type: PhantomData }
    }

    /// The name in the source.
    pub const fn as_str(self) -> &'static str {
        self.__name
    }
}

impl<T: Field> Deref for Name<T> {
    type Target = T::Names;

    /// The names of the members.
    fn deref(&self) -> &T::Names {
        // Names are few, and live as long as the programs that they belong to: for ever.
        type Made = HashMap<(TypeId, &'static str), &'static (dyn Any + Send + Sync)>;
        static MADE: Mutex<Option<Made>> = Mutex::new(None);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<T>(), self.__name);
        let names = made
            .get_or_insert_default()
            .entry(key)
            .or_insert_with(|| Box::leak(Box::new(T::names(self.__name))));
        names.downcast_ref().expect("what is kept for a type was made for it")
    }
}

/// The name of a member of what has this name.
pub fn name_of_member<T>(of: &'static str, member: &str) -> Name<T> {
    Name::new(Box::leak(crate::field::member(of, member).into_boxed_str()))
}

impl<T> Clone for Name<T> {
    fn clone(&self) -> Name<T> {
        *self
    }
}

impl<T> Copy for Name<T> {}

impl<T> fmt::Debug for Name<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", self.__name)
    }
}

impl<T> fmt::Display for Name<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.__name)
    }
}
