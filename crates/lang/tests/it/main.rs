//! The typed layer by itself, without the macros: small programs built by calls of `emit`, as macros write them. What they are is
//! their printed text, what they compute the interpreter says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod errors;
mod loops;
mod values;

use ebbtide_ir::Error as Flawed;
use ebbtide_lang::{Arg, Cx, Program, Result, Source, Status};
use ebbtide_runtime::{Compiled, Device};

/// A source program without parameters that a typed launch knows: tests give arguments as a list.
macro_rules! source {
    ($name:ident, $text:literal, |$cx:ident| $body:block) => {
        enum $name {}

        impl ebbtide_lang::Source for $name {
            const NAME: &'static str = $text;
            type Args<'a> = ();
            type Reads<'a> = ();
            type Ended = ebbtide_lang::Status;

            fn build($cx: &ebbtide_lang::Cx) $body

            fn arguments<'a>(_: Self::Args<'a>) -> Vec<ebbtide_lang::Arg<'a>> {
                Vec::new()
            }

            fn reads<'a>(_: Self::Reads<'a>) -> Vec<ebbtide_lang::Arg<'a>> {
                Vec::new()
            }

            fn shared<'a>(_: Self::Args<'a>) -> Self::Reads<'a> {}

            fn reborrow<'b, 'a: 'b>(_: &'b mut Self::Args<'a>) -> Self::Args<'b> {}
        }
    };
}
pub(crate) use source;

/// The printed text of a program.
fn text<P: Source>() -> String {
    Program::<P>::new().ir().unwrap().to_string()
}

/// Why there is no such program, one line for each flaw.
fn flaws<P: Source>() -> String {
    match Program::<P>::new().ir() {
        Err(ebbtide_lang::Error::Program(Flawed::Invalid { flaws, .. })) => {
            flaws.iter().map(|flaw| format!("{} (law {})\n", flaw.message, flaw.law)).collect()
        }
        Err(other) => panic!("{other}"),
        Ok(program) => panic!("it is lawful:\n{program}"),
    }
}

/// Launches a program on a device, to its end.
fn launch<P: Source>(device: &Device, args: Vec<Arg<'_>>) -> Result<()> {
    let status = Compiled::new(Program::<P>::new().ir()?, device)?.launch(args)?;
    assert!(matches!(status, Status::Done), "no test yields");
    Ok(())
}

/// The index `k`.
fn at(cx: &Cx, k: usize) -> ebbtide_lang::Expr<usize> {
    ebbtide_lang::emit::lit(cx, k)
}
