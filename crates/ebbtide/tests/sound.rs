//! Safe Rust that means harm: errors, or arrays that are what their types say (c59).
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use ebbtide::prelude::*;
use ebbtide::{HostView, HostViewMut};
use ebbtide_ir::{self as ir, Access, Bound, Builder, HostArg, Literal, Operation, Rules, Type, Work};
use ebbtide_runtime::{AnyArray, Arg, Compiled, interpreter};

fn devices() -> [Device; 2] {
    [interpreter(), Device::cpu()]
}

#[test]
fn c59_exchanged_loans_exchange_no_arrays() {
    for device in devices() {
        let mut x = device.array(&[1.0, 2.0, 3.0]).unwrap();
        let mut flag = device.array(&[true]).unwrap();
        {
            let (mut a, mut b) = (x.any_mut(), flag.any_mut());
            std::mem::swap(&mut a, &mut b);
            assert!(a.ty() == Type::Bool && b.ty() == Type::F64);
            assert!(a.as_mut_slice::<f64>().is_none());
            a.as_mut_slice::<bool>().unwrap()[0] = false;
        }
        assert_eq!((x.to_vec(), flag.to_vec()), (vec![1.0, 2.0, 3.0], vec![false]));
        // Arrays without types can change places: each knows what it is.
        let (mut one, mut other) = (x.into_any(), flag.into_any());
        std::mem::swap(&mut one, &mut other);
        assert!(Array1::<f64>::from_any(one).is_err());
        assert_eq!(Array1::<f64>::from_any(other).unwrap().to_vec(), [1.0, 2.0, 3.0]);
    }
}

#[test]
fn c59_a_bool_is_never_anything_else() {
    for device in devices() {
        let mut flags = device.array(&[true, false]).unwrap();
        let error = flags.any_mut().copy_from_bytes(&[1, 77]).unwrap_err().to_string();
        assert!(error.contains("byte 1 is 77") && error.contains("0 or 1"), "{error}");
        assert_eq!(flags.to_vec(), [true, false]);
        for bytes in [&[][..], &[1], &[0, 1, 1]] {
            assert!(flags.any_mut().copy_from_bytes(bytes).is_err(), "{bytes:?}");
        }
        flags.any_mut().copy_from_bytes(&[0, 1]).unwrap();
        assert_eq!(flags.to_vec(), [false, true]);
    }
    let mut bytes = [0, 1, 77, 1];
    let read = HostArg::Read { ty: Type::Bool, shape: &[4], bytes: &bytes.clone() };
    assert!(HostView::<bool, 1>::of(&read).is_none());
    let mut write = HostArg::Write { ty: Type::Bool, shape: &[4], bytes: &mut bytes };
    assert!(HostViewMut::<bool, 1>::of(&mut write).is_none());
    // Bytes that are too few, or not where elements can be, are no elements either.
    let words = [0u64; 4].map(u64::to_ne_bytes).concat();
    for bytes in [&words[..8], &words[1..9]] {
        let arg = HostArg::Read { ty: Type::F64, shape: &[if bytes.len() == 8 { 2 } else { 1 }], bytes };
        assert!(HostView::<f64, 1>::of(&arg).is_none_or(|view| view.len() == 1));
    }
    let huge = HostArg::Read { ty: Type::F64, shape: &[1 << 62, 8], bytes: &words };
    assert!(HostView::<f64, 2>::of(&huge).is_none());
}

/// A program whose one operation is this function of an array of `bool` and one of numbers.
fn with_operation(
    function: impl Fn(&mut [HostArg<'_>]) -> Result<(), String> + Send + Sync + 'static,
) -> ir::Program {
    let mut b = Builder::new("hostile");
    let flags = b.array("flags", Type::Bool, 1, Access::Write);
    let other = b.array("other", Type::Bool, 1, Access::Write);
    let work = Work::Host(Arc::new(function));
    let operation = Operation { name: "hostile".into(), work, rules: Rules::none() };
    b.operation(operation, &[Bound::Array(flags, Access::Write), Bound::Array(other, Access::Write)]);
    b.finish().unwrap()
}

#[test]
fn c59_an_operation_cannot_leave_bytes_that_are_no_elements() {
    let write = |args: &mut [HostArg<'_>]| {
        for arg in args {
            if let HostArg::Write { bytes, .. } = arg {
                bytes.fill(77);
            }
        }
    };
    let programs = [
        with_operation(move |args| {
            write(args);
            Ok(())
        }),
        with_operation(move |args| {
            write(args);
            Err("on purpose".to_string())
        }),
        with_operation(move |args| {
            write(args);
            panic!("on purpose")
        }),
        with_operation(move |args| {
            // What was written is taken out of sight.
            write(args);
            args.swap(0, 1);
            args.iter_mut().for_each(|arg| *arg = HostArg::Scalar(Literal::from(false)));
            Ok(())
        }),
    ];
    for device in devices() {
        for program in &programs {
            let compiled = Compiled::new(program, &device).unwrap();
            let (mut flags, mut other) =
                (device.array(&[false; 3]).unwrap(), device.array(&[false; 5]).unwrap());
            let status = compiled.launch(vec![Arg::Write(flags.any_mut()), Arg::Write(other.any_mut())]);
            let error = status.err().map(|error| error.to_string()).unwrap();
            assert!(error.contains("77 into an array of `bool`") || error.contains("on purpose"), "{error}");
            assert!(flags.any().bytes().iter().chain(other.any().bytes()).all(|byte| *byte <= 1));
        }
    }
}

#[test]
fn c59_arguments_that_change_places_are_launch_errors() {
    let mut b = Builder::new("two");
    let x = b.array("x", Type::F64, 1, Access::Write);
    b.array("k", Type::I32, 2, Access::Write);
    let one = b.literal(Literal::from(1.0));
    b.fill(x, one);
    let program = b.finish().unwrap();
    for device in devices() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut x, mut k) = (device.zeros::<f64, 1>([3]).unwrap(), device.zeros::<i32, 2>([2, 2]).unwrap());
        let error = compiled.launch(vec![Arg::Write(k.any_mut()), Arg::Write(x.any_mut())]).err().unwrap();
        assert!(error.to_string().contains("`x` is an Array1<f64>, not an Array2<i32>"), "{error}");
        let mut args = vec![Arg::Write(x.any_mut()), Arg::Write(k.any_mut())];
        args.swap(0, 1);
        assert!(compiled.launch(args).is_err());
    }
}

#[program]
fn near_the_end(x: &mut Array1<f64>, from: usize, to: usize) {
    for i in par(from..to) {
        x[i] = 1.0;
    }
}

#[test]
fn c59_a_loop_near_the_end_of_the_index_type_is_an_error() {
    for device in devices() {
        let program = near_the_end().compile(&device).unwrap();
        let mut x = device.zeros::<f64, 1>([1000]).unwrap();
        for (from, to) in [((1 << 63) - 2, (1 << 63) - 1), ((1 << 63) - 9, (1 << 63) - 1), (0, (1 << 63) - 1)]
        {
            let error = program.launch((&mut x, from, to)).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains("out of bounds")), "{error:?}");
        }
        for (from, to) in
            [(1 << 63, usize::MAX), ((1 << 63) - 1, 1 << 63), (usize::MAX, usize::MAX), (7, usize::MAX)]
        {
            // Beyond the index type: an error, or no iteration at all.
            let _ = program.launch((&mut x, from, to));
        }
        assert_eq!(x.len(), 1000);
    }
}

#[test]
fn c59_arrays_that_cannot_be_are_errors() {
    for device in devices() {
        for shape in [[usize::MAX, 1], [1 << 62, 4], [0, usize::MAX], [usize::MAX, 0], [1 << 63, 0]] {
            assert!(device.zeros::<bool, 2>(shape).is_err(), "{shape:?}");
            assert!(AnyArray::zeros(&device, Type::F64, &shape).is_err(), "{shape:?}");
        }
        assert!(device.array_with_shape([2, 2], &[1.0; 3]).is_err());
    }
}

#[derive(Label, Clone, Copy, PartialEq, Debug)]
enum Stage {
    Ask,
}

#[program]
fn asking(u: &mut Array1<f64>, flags: &mut Array2<bool>, over: &mut Array0<i32>, loss: &mut Array0<f64>) {
    #[checkpoint(Stage::Ask, yield_on = over, undo)]
    {
        for i in par(0..u.len()) {
            u[i] = 2.0 * u[i];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
    flags[[0, 0]] = true;
}

/// The gradient of `asking` whose host exchanges the flags for these; and the flags afterwards.
fn exchanged(
    device: &Device,
    new: impl Fn(&Array2<bool>) -> ebbtide::Result<Array2<bool>> + Send + Sync + 'static,
) -> (ebbtide::Result<Vec<f64>>, Array2<bool>) {
    let g = asking()
        .grad(asking::loss)
        .wrt(asking::u)
        .on_yield(move |_, host| {
            host.fill(asking::over, 0)?;
            host.with(asking::flags, |flags| {
                *flags = new(flags)?;
                Ok::<(), ebbtide::Error>(())
            })?
        })
        .compile(device)
        .unwrap();
    let mut u = device.array(&[1.0, 2.0]).unwrap();
    let mut flags = device.zeros([2, 2]).unwrap();
    let mut over = device.scalar(1).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let out = g.launch((&mut u, &mut flags, &mut over, &mut loss));
    (out.map(|out| out.get(asking::u).unwrap().to_vec()), flags)
}

#[test]
fn c59_a_host_may_exchange_arrays_for_others_of_any_shape_and_device() {
    for device in devices() {
        // As many bytes in another shape, fewer, and more.
        for shape in [[2, 2], [4, 1], [1, 1], [64, 64]] {
            for other in [device.clone(), Device::interpreter()] {
                let (gradient, flags) = exchanged(&device, move |_| other.zeros(shape));
                assert_eq!(gradient.unwrap(), [8.0, 16.0], "{shape:?}");
                assert_eq!((flags.shape(), flags.to_vec()), ([2, 2], vec![false; 4]), "{shape:?}");
            }
        }
    }
}

#[test]
fn c59_what_safe_rust_cannot_do_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/sound/*.rs");
}
