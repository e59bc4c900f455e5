//! Stored yields that were made to mislead, with right checksums.

use std::path::Path;

use ebbtide::prelude::*;
use ebbtide_snapshot::Position;
use ebbtide_snapshot::fs::Disks;

use crate::crafted::Parts;
use crate::{Random, cases};

#[derive(Label)]
enum Stage {
    Here,
}

/// Temporaries of several types are alive where it yields, and two are exchanged.
#[program]
fn paused(u: &mut Array1<f64>, stop: &mut Array0<i32>, steps: usize) {
    let n = u.len();
    let mut kept = Array1::<f64>::zeros([n]);
    let mut other = Array1::<f64>::zeros([n]);
    let mut high = Array1::<bool>::zeros([n]);
    for t in 0..steps {
        for i in par(0..n) {
            high[i] = u[i] > 0.5;
            kept[i] += u[i] * (t as f64);
        }
        #[checkpoint(Stage::Here, yield_on = stop)]
        {
            for i in par(0..n) {
                if high[i] {
                    kept[i] += 1.0;
                }
            }
        }
        for i in par(0..n) {
            other[i] = kept[i] * 0.5 + u[i];
        }
        swap(kept, other);
    }
    for i in par(0..n) {
        if high[i] {
            u[i] += kept[i];
        }
    }
}

fn resumed(g: &Compiled<paused>, device: &Device, path: &Path) -> ebbtide::Result<Vec<f64>> {
    let at = g.load(path)?;
    let mut u = device.array(&[0.1, 0.9, 0.4, 0.7])?;
    let mut stop = device.scalar(0)?;
    match g.resume(&at, (&mut u, &mut stop, 3))? {
        Status::Done => Ok(u.to_vec()),
        Status::Yielded(_) => Ok(Vec::new()),
    }
}

#[test]
fn c60_a_crafted_yield_ends_in_a_result_or_an_error() {
    let folder = crate::folder::folder();
    let device = crate::cpu();
    let g = paused().compile(&device).unwrap();
    let mut u = device.array(&[0.1, 0.9, 0.4, 0.7]).unwrap();
    let mut stop = device.scalar(1).unwrap();
    let Status::Yielded(at) = g.launch((&mut u, &mut stop, 3)).unwrap() else { panic!("it did not yield") };
    let path = folder.path().join("yield");
    at.save(&path).unwrap();
    let sound = Parts::of(&Disks, &path);
    let expected = resumed(&g, &device, &path).unwrap();
    let mut random = Random::new(62);
    let (mut count, mut refused) = (0, 0);
    for _ in 0..cases(400) {
        let mut parts = sound.clone();
        let what = match random.below(4) {
            0 => {
                parts.label.program.push('0');
                "another program".to_string()
            }
            1 => {
                parts.position = Position::root();
                "no place".to_string()
            }
            2 => {
                let at = random.below(parts.arrays.len());
                let part = &mut parts.arrays[at];
                let values = [0, 1, 2, 3, 4, 77, 255];
                let (name, bytes) = (part.name.clone(), part.bytes.len());
                if bytes > 0 {
                    // The lowest byte of a word: bounds of loops become other ones, not endless ones.
                    let at = random.below(bytes) / part.dtype.size() * part.dtype.size();
                    part.bytes[at] = values[random.below(values.len())];
                }
                name
            }
            _ => parts.change_structure(&mut random),
        };
        if !parts.write(&Disks, &path) {
            continue;
        }
        count += 1;
        match resumed(&g, &device, &path) {
            Ok(found) => assert!(found.is_empty() || found.len() == expected.len(), "{what}"),
            Err(_) => refused += 1,
        }
    }
    println!("{count} crafted yields, {refused} refused");
    assert!(refused * 3 > count, "{refused} of {count}");
}

#[test]
fn a_yield_of_other_laws_names_the_version_that_resumes_it() {
    let folder = crate::folder::folder();
    let device = crate::cpu();
    let g = paused().compile(&device).unwrap();
    let mut u = device.array(&[0.1, 0.9, 0.4, 0.7]).unwrap();
    let mut stop = device.scalar(1).unwrap();
    let Status::Yielded(at) = g.launch((&mut u, &mut stop, 3)).unwrap() else { panic!("it did not yield") };
    let path = folder.path().join("yield");
    at.save(&path).unwrap();
    let mut parts = Parts::of(&Disks, &path);
    let laws = parts.arrays.iter_mut().find(|part| part.name == "laws").unwrap();
    laws.bytes = 99u32.to_le_bytes().to_vec();
    assert!(parts.write(&Disks, &path));
    let error = g.load(&path).unwrap_err().to_string();
    assert!(
        error.contains("version 99 of the laws") && error.contains("continue it with Ebbtide"),
        "{error}"
    );
}
