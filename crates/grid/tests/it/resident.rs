//! Exchanges of arrays that stay on their device.

use std::sync::{Arc, Mutex};

use ebbtide::ir::parts::{Way, current};
use ebbtide::ir::{HostArg, Type};
use ebbtide::prelude::*;
use ebbtide_grid::{Grid, Part, Result, Team};
use ebbtide_runtime::{Resident, StridedBox, lend};

use crate::problems::{Bits, ToBits, torus, wave};

/// Memory that the host reaches by boxes alone.
struct Far {
    arrays: Arc<Mutex<Vec<Vec<u8>>>>,
    /// The bytes that were read and written.
    moved: Arc<Mutex<usize>>,
}

impl Resident for Far {
    fn read(&mut self, boxes: &[StridedBox]) -> Result<Vec<u8>, String> {
        let arrays = self.arrays.lock().expect("no panic");
        let row = |piece: StridedBox| piece.rows().map(move |start| (piece.array, start..start + piece.row));
        let rows = boxes.iter().copied().flat_map(row);
        let bytes: Vec<u8> = rows.flat_map(|(array, row)| arrays[array][row].to_vec()).collect();
        *self.moved.lock().expect("no panic") += bytes.len();
        Ok(bytes)
    }

    fn write(&mut self, boxes: &[StridedBox], mut bytes: &[u8]) -> Result<(), String> {
        let mut arrays = self.arrays.lock().expect("no panic");
        *self.moved.lock().expect("no panic") += bytes.len();
        for piece in boxes {
            for start in piece.rows() {
                let (row, rest) = bytes.split_at(piece.row);
                arrays[piece.array][start..start + piece.row].copy_from_slice(row);
                bytes = rest;
            }
        }
        assert!(bytes.is_empty());
        Ok(())
    }
}

/// Two arrays of a part: one number for each cell, and three.
fn arrays(part: &Part) -> (Vec<Vec<i64>>, Vec<Vec<u8>>) {
    let shape: Vec<i64> = part.shape().iter().map(|extent| *extent as i64).collect();
    let deep = [&shape[..], &[3]].concat();
    let fill = |shape: &[i64], by: f64| -> Vec<u8> {
        let count = shape.iter().product::<i64>();
        let number = |k: i64| (by * k as f64 + part.number() as f64).sin();
        (0..count).flat_map(|k| number(k).to_ne_bytes()).collect()
    };
    let contents = vec![fill(&shape, 0.7), fill(&deep, 0.3)];
    (vec![shape, deep], contents)
}

fn exchanged(part: &Part, way: Way, far: bool) -> (Vec<Vec<u8>>, usize) {
    let (shapes, mut contents) = arrays(part);
    let transport = current().expect("it is a part");
    let moved = Arc::new(Mutex::new(0));
    if far {
        let arrays = Arc::new(Mutex::new(contents));
        let mut args: Vec<HostArg<'_>> =
            shapes.iter().map(|shape| HostArg::Write { ty: Type::F64, shape, bytes: &mut [] }).collect();
        let lent = Far { arrays: arrays.clone(), moved: moved.clone() };
        lend(Box::new(lent), || transport.exchange("a test", way, &mut args)).expect("it exchanges");
        contents = arrays.lock().expect("no panic").clone();
    } else {
        let mut args: Vec<HostArg<'_>> = shapes
            .iter()
            .zip(&mut contents)
            .map(|(shape, bytes)| HostArg::Write { ty: Type::F64, shape, bytes })
            .collect();
        transport.exchange("a test", way, &mut args).expect("it exchanges");
    }
    let moved = *moved.lock().expect("no panic");
    (contents, moved)
}

#[test]
fn arrays_that_stay_on_their_device_are_exchanged_alike_and_only_halos_move() {
    let grid =
        |extents: &[usize], cut: &[usize]| Grid::new(extents).and_then(|g| g.even(cut)).expect("a grid");
    let grids = [
        grid(&[20], &[3]).halo(2),
        grid(&[9, 12], &[3, 2]).halo(1).and_then(|g| g.periodic(&[true, false])).map(Grid::diagonal),
        grid(&[20, 18, 16], &[2, 1, 2]).halo(1),
    ];
    for grid in grids {
        let grid = grid.expect("a grid");
        for way in [Way::Fill, Way::Add] {
            let work = |part: &Part| {
                let (here, _) = exchanged(part, way, false);
                let (far, moved) = exchanged(part, way, true);
                assert_ne!(here, arrays(part).1);
                assert_eq!(here, far, "part {}", part.number());
                // A fill reads and writes each shared cell once, an addition twice: in the volume two faces of a part, and
                // four numbers in a cell.
                let times = if way == Way::Fill { 2 } else { 4 };
                assert!(
                    grid.dimensions() < 3 || moved == times * (18 * 8 + 10 * 18) * 4 * 8,
                    "{moved} bytes"
                );
                Ok(())
            };
            Team::new(&grid).run(work).expect("it runs");
        }
    }
}

/// Values and gradients of exchanges in a plane and in a volume.
fn bits(device: &Device) -> Vec<Bits> {
    type P = torus<f32>;
    type W = wave<f64>;
    let plane = Grid::new(&[9, 12]).and_then(|g| g.even(&[3, 4])).and_then(|g| g.halo(1));
    let plane = plane.and_then(|g| g.periodic(&[true, true])).map(Grid::diagonal).expect("a grid");
    let gradient =
        torus::<f32>().value_and_grad(P::loss).wrt(P::u).wrt(P::v).compile(device).expect("it compiles");
    let on_plane = |part: &Part| {
        let u = part.fill(device, |[x, y]| (0.3 * x as f32).sin() + 0.1 * y as f32)?;
        let v = part.fill(device, |[x, y]| (0.2 * y as f32).cos() - 0.05 * x as f32)?;
        let (w, loss) = (part.zeros(device)?, device.zeros([])?);
        let out = gradient.launch((&u, &v, &w, &part.place2()?, 6, &loss))?;
        let mut bits = part.gather(out.get(P::u)?)?.bits();
        bits.extend(part.gather(out.get(P::v)?)?.bits());
        bits.extend(vec![out.value(P::loss)?.value()].bits());
        Ok(bits)
    };
    let volume =
        Grid::new(&[6, 8, 5]).and_then(|g| g.even(&[2, 2, 2])).and_then(|g| g.halo(1)).expect("a grid");
    let waves = wave::<f64>().value_and_grad(W::loss).wrt(W::c).compile(device).expect("it compiles");
    let in_volume = |part: &Part| {
        let c = part.fill(device, |[x, y, z]| 0.3 + 0.01 * (x + 2 * y + 3 * z) as f64)?;
        let wavelet: Vec<f64> = (0..12).map(|t| (0.5 * t as f64).sin()).collect();
        let wavelet = device.array(&wavelet)?;
        let (p, q) = (part.zeros(device)?, part.zeros(device)?);
        let (loss, largest) = (device.zeros([])?, device.zeros([])?);
        let out = waves.launch((&p, &q, &c, &wavelet, &part.place3()?, &loss, &largest))?;
        let mut bits = part.gather(out.get(W::c)?)?.bits();
        bits.extend(vec![out.value(W::loss)?.value()].bits());
        Ok(bits)
    };
    [Team::new(&plane).run(on_plane), Team::new(&volume).run(in_volume)]
        .map(|results| results.expect("it runs").remove(0))
        .to_vec()
}

#[test]
#[ignore = "needs CUDA"]
fn halos_on_cuda_have_the_bits_of_the_interpreter() {
    let device = Device::cuda().expect("a GPU");
    assert_eq!(device.name(), "cuda");
    assert_eq!(bits(&device), bits(&Device::interpreter()));
}
