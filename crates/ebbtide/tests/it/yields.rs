//! Yield and resume with the types of the program and its labels.

use ebbtide::prelude::*;

#[derive(Label, Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Detect,
    Solve,
}

#[derive(Arrays)]
struct World {
    pos: Array2<f32>,
    pairs: Array2<i32>,
    count: Array0<i32>,
    overflow: Array0<i32>,
    residual: Array0<f32>,
}

/// All pairs of discs of diameter 1 that overlap, in order; `overflow` is their number if they have no room.
#[program]
fn detect_pairs(w: &mut World) {
    let mut found: usize = 0;
    for i in 0..w.pos.dim(0) {
        for j in i + 1..w.pos.dim(0) {
            let dx = w.pos[[j, 0]] - w.pos[[i, 0]];
            let dy = w.pos[[j, 1]] - w.pos[[i, 1]];
            if dx * dx + dy * dy < 1.0 {
                if found < w.pairs.dim(0) {
                    w.pairs[[found, 0]] = i as i32;
                    w.pairs[[found, 1]] = j as i32;
                }
                found += 1;
            }
        }
    }
    w.count[[]] = found as i32;
    if found > w.pairs.dim(0) {
        w.overflow[[]] = found as i32;
    }
}

/// Pushes the discs of each pair apart.
#[program]
fn relax(w: &mut World) {
    w.residual[[]] = 0.0;
    for k in 0..w.count[[]] as usize {
        let i = w.pairs[[k, 0]] as usize;
        let j = w.pairs[[k, 1]] as usize;
        let dx = w.pos[[j, 0]] - w.pos[[i, 0]];
        let dy = w.pos[[j, 1]] - w.pos[[i, 1]];
        let gap = (dx * dx + dy * dy).sqrt();
        if gap < 1.0 {
            let push = 0.5 * (1.0 - gap) / gap;
            w.pos[[i, 0]] -= push * dx;
            w.pos[[i, 1]] -= push * dy;
            w.pos[[j, 0]] += push * dx;
            w.pos[[j, 1]] += push * dy;
            w.residual[[]].max_assign(1.0 - gap);
        }
    }
}

#[program]
fn step(w: &mut World) {
    #[checkpoint(Stage::Detect, yield_on = w.overflow)]
    {
        detect_pairs(w);
    }
    loop {
        #[checkpoint(Stage::Solve)]
        {
            relax(w);
        }
        if w.residual[[]] < 1e-4 {
            break;
        }
    }
}

/// Four discs in a row, of which three pairs overlap.
fn world(device: &Device, room: usize) -> World {
    let pos = [0.0, 0.0, 0.5, 0.1, 1.0, -0.1, 1.5, 0.2];
    World {
        pos: device.array_with_shape([4, 2], &pos).unwrap(),
        pairs: device.zeros([room, 2]).unwrap(),
        count: device.scalar(0).unwrap(),
        overflow: device.scalar(0).unwrap(),
        residual: device.scalar(0.0).unwrap(),
    }
}

impl World {
    fn grow_pairs(&mut self, device: &Device) -> ebbtide::__lang::Result<()> {
        self.pairs = device.zeros([2 * self.pairs.dim(0), 2])?;
        Ok(())
    }

    fn bits(&self) -> Vec<u32> {
        self.pos.as_slice().iter().map(|x| x.to_bits()).collect()
    }
}

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

/// What an uninterrupted run leaves behind.
fn uninterrupted(device: &Device) -> Vec<u32> {
    let mut world = world(device, 16);
    let before = world.bits();
    let status = step().compile(device).unwrap().launch(&mut world).unwrap();
    assert_eq!((status, world.count[[]]), (Status::Done, 3));
    assert_ne!(world.bits(), before);
    world.bits()
}

#[test]
fn the_host_grows_a_buffer_and_the_program_goes_on() {
    for device in devices() {
        let step = step().compile(&device).unwrap();
        let mut world = world(&device, 1);
        let mut yields = Vec::new();
        let mut status = step.launch(&mut world).unwrap();
        while let Status::Yielded(at) = status {
            assert!(at.is(Stage::Detect) && !at.is(Stage::Solve));
            assert_eq!(at.label(), Some(Stage::Detect));
            yields.push((at.position().to_string(), at.reason()));
            world.grow_pairs(&device).unwrap();
            world.overflow.fill(0).unwrap();
            status = step.resume(&at, &mut world).unwrap();
        }
        let expected = ("step/Stage::Detect".to_string(), 3);
        assert_eq!(yields, [expected.clone(), expected], "{device:?}");
        assert_eq!(world.bits(), uninterrupted(&device), "{device:?}");
    }
}

#[test]
fn drive_is_the_same_in_one_call() {
    for device in devices() {
        let mut world = world(&device, 1);
        let mut yields = 0;
        let status = step()
            .compile(&device)
            .unwrap()
            .drive(&mut world, |at, world| {
                yields += 1;
                assert!(at.is(Stage::Detect));
                world.grow_pairs(&device)?;
                world.overflow.fill(0)
            })
            .unwrap();
        assert_eq!((status, yields), (Status::Done, 2));
        assert_eq!(world.bits(), uninterrupted(&device), "{device:?}");
    }
}

#[test]
fn c26_a_label_is_that_of_its_own_enum() {
    mod other {
        #[derive(ebbtide::Label, Debug, PartialEq)]
        pub enum Phase {
            Detect,
        }
    }
    let device = Device::interpreter();
    let status = step().compile(&device).unwrap().launch(&mut world(&device, 1)).unwrap();
    let at = status.yielded().expect("there is room for one pair only");
    assert_eq!((at.label::<Stage>(), at.label::<other::Phase>()), (Some(Stage::Detect), None));
    assert!(at.is(Stage::Detect) && !at.is(other::Phase::Detect));
    assert_eq!(at.label_name().to_string(), "Stage::Detect");
}

#[test]
fn c42_a_stored_yield_is_loaded_and_resumed() {
    let path = std::env::temp_dir().join(format!("ebbtide-typed-yield-{}", std::process::id()));
    for device in devices() {
        let mut world = world(&device, 1);
        let at = step().compile(&device).unwrap().launch(&mut world).unwrap().yielded().unwrap();
        at.save(&path).unwrap();
        // Built and compiled anew, as another process would.
        let step = step().compile(&device).unwrap();
        let loaded = step.load(&path).unwrap();
        assert_eq!((&loaded, loaded.label()), (&at, Some(Stage::Detect)));
        world.pairs = device.zeros([3, 2]).unwrap();
        world.overflow.fill(0).unwrap();
        assert_eq!(step.resume(&loaded, &mut world).unwrap(), Status::Done);
        assert_eq!(world.bits(), uninterrupted(&device), "{device:?}");

        let error = adds().compile(&device).unwrap().load(&path).unwrap_err().to_string();
        assert!(error.contains("program"), "{error}");
    }
    std::fs::remove_file(path).unwrap();
}

#[derive(Label, Clone, Copy, Debug, PartialEq, Eq)]
enum Digit {
    One,
    Ten,
    Hundred,
}

/// In each pass three stages, which add to a digit each.
#[program]
fn adds(digits: &mut Array1<i32>, stop: &mut Array0<i32>, passes: usize, by: i32) {
    for _pass in 0..passes {
        #[checkpoint(Digit::One)]
        {
            digits[0] += by;
        }
        #[checkpoint(Digit::Ten, yield_on = stop)]
        {
            digits[1] += by;
        }
        #[checkpoint(Digit::Hundred)]
        {
            digits[2] += by;
        }
    }
}

#[test]
fn c32_a_yield_moves_to_another_label() {
    for device in devices() {
        let adds = adds().compile(&device).unwrap();
        for (label, expected) in [(Digit::Ten, [1, 2, 1]), (Digit::Hundred, [1, 1, 1])] {
            let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
            let at = adds.launch((&mut digits, &mut stop, 1, 1)).unwrap().yielded().unwrap();
            assert_eq!(digits.to_vec(), [1, 1, 0]);
            stop.fill(0).unwrap();
            let moved = at.to(label).unwrap();
            assert_eq!((moved.label(), moved.reason()), (Some(label), 1));
            assert_eq!(adds.resume(&moved, (&mut digits, &mut stop, 1, 1)).unwrap(), Status::Done);
            assert_eq!(digits.to_vec(), expected, "{label:?} on {device:?}");
        }
    }
}

#[test]
fn c34_a_program_starts_at_a_label_without_a_yield() {
    for device in devices() {
        let adds = adds().compile(&device).unwrap();
        for (label, expected) in
            [(Digit::One, [2, 2, 2]), (Digit::Ten, [1, 2, 2]), (Digit::Hundred, [1, 1, 2])]
        {
            let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(0).unwrap());
            assert_eq!(adds.resume_at(label, (&mut digits, &mut stop, 2, 1)).unwrap(), Status::Done);
            assert_eq!(digits.to_vec(), expected, "{label:?} on {device:?}");
        }
    }
}

#[test]
fn the_callback_of_drive_changes_scalars_and_says_how_to_go_on() {
    for device in devices() {
        let adds = adds().compile(&device).unwrap();
        let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
        let status = adds
            .drive((&mut digits, &mut stop, 2, 1), |at, (digits, stop, _, by)| {
                assert_eq!(digits.to_vec(), [1, 1, 0]);
                assert_eq!(at.position().to_string(), "adds/for _pass=0/Digit::Ten");
                stop.fill(0)?;
                *by = 10;
                Ok(Next::to(Digit::Hundred))
            })
            .unwrap();
        assert_eq!((status, digits.to_vec()), (Status::Done, vec![11, 11, 20]), "{device:?}");

        let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
        let status = adds.drive((&mut digits, &mut stop, 2, 1), |_, _| Ok(Next::Leave)).unwrap();
        assert_eq!(status.yielded().and_then(|at| at.label()), Some(Digit::Ten));

        let failed =
            adds.drive((&mut digits, &mut stop, 2, 1), |_, (digits, ..)| digits.copy_from_slice(&[1]));
        assert!(failed.is_err(), "the error of the callback comes back");
    }
}

#[test]
fn c43_a_launch_that_nobody_waits_for_yields_too() {
    for device in devices() {
        let adds = adds().compile(&device).unwrap();
        let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
        let pending = adds.launch_async((&mut digits, &mut stop, 1, 1)).unwrap();
        let at = pending.wait().unwrap().yielded().unwrap();
        assert!(at.is(Digit::Ten));
        stop.fill(0).unwrap();
        let pending = adds.resume_async(&at, (&mut digits, &mut stop, 1, 1)).unwrap();
        assert_eq!(digits.to_vec(), [1, 2, 1], "reading waits");
        assert_eq!(pending.wait().unwrap(), Status::Done);
    }
}

#[program]
fn never_yields(x: &mut Array0<i32>) {
    #[checkpoint(Digit::One)]
    {
        x[[]] += 1;
    }
    #[checkpoint(Digit::Ten)]
    {
        x[[]] += 10;
    }
}

#[program]
fn no_labels(x: &mut Array0<i32>) {
    x[[]] += 1;
}

#[test]
fn c35_errors_say_what_is_wrong() {
    let device = Device::interpreter();
    let (adds, step) = (adds().compile(&device).unwrap(), step().compile(&device).unwrap());
    let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
    let at = adds.launch((&mut digits, &mut stop, 1, 1)).unwrap().yielded().unwrap();

    let labels =
        "there is no label `Stage::Solve`; its labels are `Digit::One`, `Digit::Ten`, `Digit::Hundred`";
    for error in [
        at.to(Stage::Solve).unwrap_err(),
        adds.resume_at(Stage::Solve, (&mut digits, &mut stop, 1, 1)).unwrap_err(),
        adds.drive((&mut digits, &mut stop, 1, 1), |_, _| Ok(Next::to(Stage::Solve))).unwrap_err(),
    ] {
        assert!(error.to_string().contains(labels), "{error}");
    }
    let error = step.resume(&at, &mut world(&device, 1)).unwrap_err().to_string();
    assert!(error.contains("program `step`") && error.contains("where program `adds` yielded"), "{error}");

    let never = no_labels().compile(&device).unwrap();
    let error = never.resume_at(Digit::One, &mut stop).unwrap_err().to_string();
    assert!(error.contains("it has no labelled region"), "{error}");
}

#[test]
fn c34_a_program_that_never_yields_can_begin_at_its_labels() {
    for device in [Device::interpreter(), crate::cpu()] {
        let never = never_yields().compile(&device).unwrap();
        let mut x = device.scalar(0).unwrap();
        for expected in [1, 2] {
            assert_eq!(never.resume_at(Digit::Ten, &mut x).unwrap(), Status::Done);
            assert_eq!(x.value(), 10 * expected);
        }
        assert_eq!(never.launch(&mut x).unwrap(), Status::Done);
        assert_eq!(x.value(), 31);
    }
}

#[test]
fn a_usize_beyond_what_a_program_counts_to_is_refused_and_nothing_runs() {
    let much = 1usize << 63;
    let expected =
        "`passes` is 9223372036854775808, and a `usize` of a program is at most 9223372036854775807";
    for device in devices() {
        let adds = adds().compile(&device).unwrap();
        let (mut digits, mut stop) = (device.zeros([3]).unwrap(), device.scalar(1).unwrap());
        let at = adds.launch((&mut digits, &mut stop, 1, 1)).unwrap().yielded().unwrap();
        for error in [
            adds.launch((&mut digits, &mut stop, much, 1)).unwrap_err(),
            adds.launch_async((&mut digits, &mut stop, much, 1)).err().unwrap(),
            adds.resume(&at, (&mut digits, &mut stop, much, 1)).unwrap_err(),
            adds.resume_at(Digit::Ten, (&mut digits, &mut stop, much, 1)).unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{device:?}: {error}");
        }
        assert_eq!(digits.to_vec(), [1, 1, 0]);
    }
}

#[program]
fn three(a: &mut Array0<i32>, flag: &mut Array0<i32>) {
    #[checkpoint(Stage::Detect, yield_on = flag)]
    {
        a[[]] += 1;
    }
    for _k in 0..2 {
        inner(a, flag);
    }
    inner(a, flag);
}

#[program]
fn inner(a: &mut Array0<i32>, flag: &mut Array0<i32>) {
    #[checkpoint(Stage::Solve, yield_on = flag)]
    {
        a[[]] += 10;
    }
}

#[test]
fn a_program_says_how_many_regions_it_has_and_their_labels() {
    let program = three();
    let labels: Vec<String> = program.labels().unwrap().iter().map(|label| label.to_string()).collect();
    assert_eq!(labels, ["Stage::Detect", "Stage::Solve"]);
    assert_eq!(program.regions().unwrap(), 3);
    assert_eq!(inner().regions().unwrap(), 1);
    assert_eq!(relax().regions().unwrap(), 0);
}
