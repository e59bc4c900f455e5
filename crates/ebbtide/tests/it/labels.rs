//! Labels that are numbers, what is known of labels, and regions in functions.

use ebbtide::prelude::*;

/// Three stages that add 1, 10 and 100; the second yields.
#[program]
fn numbered(x: &mut Array0<i64>, flag: &mut Array0<i32>) {
    #[checkpoint(1)]
    {
        x[[]] += 1;
    }
    #[checkpoint(2, yield_on = flag)]
    {
        x[[]] += 10;
    }
    #[checkpoint(3)]
    {
        x[[]] += 100;
    }
}

#[derive(Label, Debug, PartialEq)]
enum Stage {
    Other,
}

#[test]
fn c69_labels_may_be_numbers() {
    for device in [crate::cpu(), Device::interpreter()] {
        let program = numbered().compile(&device).unwrap();
        let (mut x, mut flag) = (device.scalar(0i64).unwrap(), device.scalar(7).unwrap());
        let at = program.launch((&mut x, &mut flag)).unwrap().yielded().unwrap();
        assert_eq!((x.value(), at.reason(), at.position().to_string().as_str()), (11, 7, "numbered/2"));
        assert!(at.is(2) && !at.is(1) && !at.is(Stage::Other));
        assert_eq!((at.label::<i32>(), at.label::<Stage>()), (Some(2), None));
        flag.fill(0).unwrap();
        assert!(program.resume(&at, (&mut x, &mut flag)).unwrap().is_done());
        assert_eq!(x.value(), 121);
        x.fill(11).unwrap();
        assert!(program.resume(&at.to(3).unwrap(), (&mut x, &mut flag)).unwrap().is_done());
        assert_eq!(x.value(), 111);
        x.fill(0).unwrap();
        assert!(program.resume_at(3, (&mut x, &mut flag)).unwrap().is_done());
        assert_eq!(x.value(), 100);
        let error = program.resume_at(4, (&mut x, &mut flag)).unwrap_err().to_string();
        assert!(error.contains("no label `4`; its labels are `1`, `2`, `3`"), "{error}");
        // A number is the same in another process.
        let dir = crate::folder::folder();
        at.save(dir.path().join("yield")).unwrap();
        assert_eq!(program.load(dir.path().join("yield")).unwrap().label::<i32>(), Some(2));
    }
}

#[test]
fn c69_a_compiled_program_tells_its_regions_and_where_it_last_yielded() {
    for device in [crate::cpu(), Device::interpreter()] {
        let program = numbered();
        assert_eq!(program.regions().unwrap(), 3);
        let program = program.compile(&device).unwrap();
        assert_eq!(program.last_yield(), None);
        let (mut x, mut flag) = (device.scalar(0i64).unwrap(), device.scalar(0).unwrap());
        assert!(program.launch((&mut x, &mut flag)).unwrap().is_done());
        assert_eq!(program.last_yield(), None);
        flag.fill(1).unwrap();
        let at = program.launch((&mut x, &mut flag)).unwrap().yielded().unwrap();
        assert_eq!(program.last_yield(), Some(at.position()));
        // Another compiled program knows nothing of it; a launch that ends takes nothing back.
        assert_eq!(numbered().compile(&device).unwrap().last_yield(), None);
        flag.fill(0).unwrap();
        assert!(program.resume(&at, (&mut x, &mut flag)).unwrap().is_done());
        assert_eq!(program.last_yield().map(|p| p.to_string()).as_deref(), Some("numbered/2"));
    }
}

/// Newton's steps for a square root, with a label.
#[func]
fn root(x: f64) -> f64 {
    let mut y = 0.5 * (1.0 + x);
    #[checkpoint(5)]
    {
        for _k in 0..6 {
            y = 0.5 * (y + x / y);
        }
    }
    y
}

#[program]
fn roots(x: &mut Array0<f64>) {
    let y = root(x[[]]);
    x[[]] = y;
}

#[test]
fn c69_a_checkpoint_in_a_function_is_a_region_of_programs_and_a_block_of_plain_rust() {
    assert!((root(2.0) - 2.0f64.sqrt()).abs() < 1e-15);
    assert_eq!(roots().regions().unwrap(), 1);
    for device in [crate::cpu(), Device::interpreter()] {
        let mut x = device.scalar(2.0).unwrap();
        let _ = roots().compile(&device).unwrap().launch(&mut x).unwrap();
        assert_eq!(x.value().to_bits(), root(2.0).to_bits());
    }
}

#[program]
fn roots_of_all(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let y = root(x[i]);
        x[i] = y;
    }
}

#[test]
fn c69_a_region_of_a_function_stands_at_program_level() {
    let error = roots_of_all().ir().unwrap_err().to_string();
    assert!(error.contains("region"), "{error}");
}
