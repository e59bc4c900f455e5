//! Structs of arrays as parameters.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[derive(Arrays)]
struct Grid<T: Float> {
    u: Array1<T>,
    v: Array1<T>,
    dx: T,
}

#[derive(Arrays)]
struct Simulation {
    grid: Grid<f64>,
    energy: Array0<f64>,
    periodic: bool,
    #[arrays(skip)]
    name: String,
}

#[program]
fn energy(grid: &Grid<f64>, energy: &mut Array0<f64>) {
    for i in par(0..grid.u.len()) {
        energy[[]] += grid.u[i] * grid.u[i] * grid.dx;
    }
}

#[program]
fn advance(s: &mut Simulation, steps: usize) {
    for _t in 0..steps {
        for i in par(0..s.grid.u.len()) {
            s.grid.v[i] = if s.periodic { s.grid.u[i] * 0.5 } else { 0.0 };
        }
        swap(s.grid.u, s.grid.v);
    }
    energy(s.grid, s.energy);
}

#[test]
fn structs_are_taken_apart() {
    check(
        advance(),
        expect![[r#"
        program advance(s.grid.u: &mut Array1<f64>, s.grid.v: &mut Array1<f64>, s.grid.dx: f64, s.energy: &mut Array0<f64>, s.periodic: bool, steps: usize) {
            for _t in 0..steps {
                for i in par(0..s.grid.u.len()) {
                    let mut if_0 = 0.0;
                    if s.periodic {
                        if_0 = s.grid.u[i] * 0.5;
                    } else {
                        if_0 = 0.0;
                    }
                    s.grid.v[i] = if_0;
                }
                swap(s.grid.u, s.grid.v);
            }
            /* energy */ {
                for i_2 in par(0..s.grid.u.len()) {
                    s.energy[[]] += s.grid.u[i_2] * s.grid.u[i_2] * s.grid.dx;
                }
            }
        }
    "#]],
    );
}

#[test]
fn a_struct_is_launched_as_one_argument() {
    let device = Device::interpreter();
    let grid = Grid { u: device.array(&[2.0, 4.0]).unwrap(), v: device.zeros([2]).unwrap(), dx: 0.5 };
    let mut s =
        Simulation { grid, energy: device.scalar(0.0).unwrap(), periodic: true, name: "waves".to_string() };
    let status = advance().compile(&device).unwrap().launch((&mut s, 1)).unwrap();
    assert_eq!((status, s.energy[[]], s.name.as_str()), (Done, 2.5, "waves"));
    assert_eq!((s.grid.u.to_vec(), s.grid.v.to_vec()), (vec![1.0, 2.0], vec![2.0, 4.0]));
}

#[program]
fn only_reads(grid: &Grid<f32>, out: &mut Array0<f32>) {
    out[[]] = grid.dx + grid.u[0];
}

#[test]
fn a_struct_by_reference_is_read() {
    check(
        only_reads(),
        expect![[r#"
        program only_reads(grid.u: &Array1<f32>, grid.v: &Array1<f32>, grid.dx: f32, out: &mut Array0<f32>) {
            out[[]] = grid.dx + grid.u[0];
        }
    "#]],
    );
}

fn simulation(device: &Device, n: usize, name: &str) -> Simulation {
    let u: Vec<f64> = (0..n).map(|i| 1.0 + i as f64).collect();
    let grid = Grid { u: device.array(&u).unwrap(), v: device.zeros([n]).unwrap(), dx: 0.25 };
    Simulation { grid, energy: device.scalar(7.0).unwrap(), periodic: true, name: name.to_string() }
}

/// A file of this test alone.
fn file(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("ebbtide-structs-{}-{name}.safetensors", std::process::id()))
}

#[test]
fn a_struct_comes_back_from_its_file() {
    let device = crate::cpu();
    let path = file("whole");
    let saved = simulation(&device, 3, "saved");
    saved.save(&path).unwrap();
    let mut loaded = simulation(&device, 3, "loaded");
    loaded.grid.u.fill(0.0).unwrap();
    loaded.energy.fill(0.0).unwrap();
    (loaded.grid.dx, loaded.periodic) = (1.0, false);
    loaded.load(&path).unwrap();
    assert_eq!(loaded.grid.u.to_vec(), saved.grid.u.to_vec());
    assert_eq!((loaded.energy[[]], loaded.grid.dx, loaded.periodic), (7.0, 0.25, true));
    // What is skipped is left alone.
    assert_eq!(loaded.name, "loaded");
    // An array is as good as a struct.
    loaded.grid.u.save(&path).unwrap();
    let mut other: Array1<f64> = device.zeros([3]).unwrap();
    other.load(&path).unwrap();
    assert_eq!(other.to_vec(), [1.0, 2.0, 3.0]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_all_that_differs() {
    #[derive(Arrays)]
    struct Other {
        energy: Array0<f32>,
        more: Array1<i32>,
        periodic: bool,
    }
    let device = Device::interpreter();
    let path = file("misfit");
    let other =
        Other { energy: device.scalar(1.0).unwrap(), more: device.zeros([2]).unwrap(), periodic: true };
    other.save(&path).unwrap();
    let mut s = simulation(&device, 3, "s");
    let error = s.load(&path).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "cannot be loaded: it has no `grid.u`; it has no `grid.v`; it has no `grid.dx`; `energy` is `f32` in it, \
             not `f64`; there is no place for its `more`"
        ),
        "{error}"
    );
    simulation(&device, 4, "larger").save(&path).unwrap();
    let error = s.load(&path).unwrap_err().to_string();
    assert!(error.contains("`grid.u` has shape [4] in it, not [3]; `grid.v` has shape [4]"), "{error}");
    assert_eq!((s.grid.u.to_vec(), s.energy[[]]), (vec![1.0, 2.0, 3.0], 7.0), "nothing has changed");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = simulation(&device, 4, "larger").load(&path).unwrap_err().to_string();
    assert!(error.contains("checksum") || error.contains("damaged"), "{error}");
    std::fs::remove_file(&path).unwrap();
    assert!(s.load(&path).unwrap_err().to_string().contains("open"));
}

#[program]
fn weighed(s: &Simulation, weight: f64, loss: &mut Array0<f64>) {
    for i in par(0..s.grid.u.len()) {
        loss[[]] += weight * s.grid.u[i] * s.grid.u[i] * s.grid.dx;
    }
}

#[test]
fn members_of_structs_have_names_with_types() {
    assert_eq!(weighed::s.grid.u.as_str(), "s.grid.u");
    let device = Device::interpreter();
    let (s, mut loss) = (simulation(&device, 3, "s"), device.scalar(0.0).unwrap());
    let g = weighed()
        .grad(weighed::loss)
        .wrt(weighed::s.grid.u)
        .wrt(weighed::s.grid.dx)
        .wrt(weighed::weight)
        .compile(&device)
        .unwrap();
    let out = g.launch((&s, 2.0, &mut loss)).unwrap();
    let du: &Array1<f64> = out.get(weighed::s.grid.u).unwrap();
    let ddx: f64 = out.get(weighed::s.grid.dx).unwrap();
    assert_eq!((du.to_vec(), ddx), (vec![1.0, 2.0, 3.0], 28.0));
    // A member by its name, as an output and as a direction.
    let along = device.array(&[1.0, 0.0, 0.0]).unwrap();
    let jvp = weighed().jvp(weighed::loss).wrt(weighed::s.grid.u).compile(&device).unwrap();
    let direction = Direction::new().array(weighed::s.grid.u, &along);
    let dot = jvp.launch((&s, 2.0, &mut loss), &direction).unwrap();
    assert_eq!(dot.get(weighed::loss).unwrap().value(), 1.0);
}

#[test]
fn arrays_come_from_ndarray_and_go_back() {
    let device = crate::cpu();
    let a = ndarray::arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let mut u: Array2<f64> = device.from_ndarray(&a).unwrap();
    assert_eq!((u.shape(), u[[1, 0]]), ([2, 3], 4.0));
    // Strides are followed.
    let transposed: Array2<f64> = device.from_ndarray(&a.t()).unwrap();
    assert_eq!((transposed.shape(), transposed.to_vec()), ([3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    u.as_ndarray_mut().row_mut(0).fill(0.0);
    assert_eq!(u.as_ndarray().sum(), 15.0);
    assert_eq!(u.to_ndarray(), ndarray::arr2(&[[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]));
    assert_eq!(device.scalar(3u32).unwrap().to_ndarray().into_scalar(), 3);
}

#[derive(Arrays)]
struct Weights<T: Float> {
    inner: Layer,
    gain: T,
    chosen: Array1<i32>,
    active: bool,
    #[arrays(skip)]
    name: String,
}

#[derive(Arrays)]
struct Layer {
    w: Array2<f32>,
    bias: Array1<f64>,
}

#[program]
fn fit(w: &Weights<f64>, x: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let y = w.gain * (w.inner.w[[i, 0]] as f64 * x[i] + w.inner.bias[i]);
        loss[[]] += if w.active { 0.5 * (y - 1.0) * (y - 1.0) } else { 0.0 };
    }
}

fn weights(device: &Device) -> Weights<f64> {
    let inner = Layer {
        w: device.array_with_shape([2, 1], &[0.5, 1.0]).unwrap(),
        bias: device.array(&[0.25, 0.75]).unwrap(),
    };
    let chosen = device.array(&[1, 2, 3]).unwrap();
    Weights { inner, gain: 2.0, chosen, active: true, name: "first".to_string() }
}

#[test]
fn c77_the_gradient_by_a_struct_is_a_struct() {
    for device in [Device::interpreter(), crate::cpu()] {
        let w = weights(&device);
        let (x, loss) = (device.array(&[1.0, -1.0]).unwrap(), device.scalar(0.0).unwrap());
        let g = fit().grad(fit::loss).wrt(fit::w).compile(&device).unwrap();
        let out = g.launch((&w, &x, &loss)).unwrap();
        let dw: Weights<f64> = out.get(fit::w).unwrap();
        // y = 2 · (0.5 + 0.25) and 2 · (−1 + 0.75): the misfits are 0.5 and −1.5.
        assert_eq!(dw.inner.w.to_vec(), [1.0, 3.0]);
        assert_eq!(dw.inner.bias.to_vec(), [1.0, -3.0]);
        assert_eq!(dw.gain, 0.5 * 0.75 + 1.5 * 0.25);
        assert_eq!((dw.chosen.len(), dw.active, dw.name.as_str()), (0, false, ""));
        // Members by themselves are there as well.
        assert_eq!(out.get(fit::w.inner.bias).unwrap().to_vec(), [1.0, -3.0]);
        let product = fit().hvp(fit::loss).wrt(fit::w);
        product.compile(&device).unwrap();
    }
}

#[test]
fn c77_a_step_of_an_optimiser_is_one_line() {
    let device = crate::cpu();
    let mut w = weights(&device);
    let (x, loss) = (device.array(&[1.0, -1.0]).unwrap(), device.scalar(0.0).unwrap());
    let g = fit().value_and_grad(fit::loss).wrt(fit::w).compile(&device).unwrap();
    let mut values = Vec::new();
    for _ in 0..200 {
        let out = g.launch((&w, &x, &loss)).unwrap();
        values.push(out.value(fit::loss).unwrap().value());
        w.zip_leaves(&out.get(fit::w).unwrap(), |w, dw| w - 0.05 * dw).unwrap();
    }
    assert!(values[0] > 1.0 && values[199] < 1e-6, "{} to {}", values[0], values[199]);
    assert_eq!((w.chosen.to_vec(), w.active, w.name.as_str()), (vec![1, 2, 3], true, "first"));

    let paths: Vec<String> = w.leaves().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["inner.w", "inner.bias", "gain"]);
    w.map_leaves(|x| x * 0.0 + 3.0);
    assert_eq!((w.inner.w.to_vec(), w.inner.bias.to_vec(), w.gain), (vec![3.0; 2], vec![3.0; 2], 3.0));
    let mut other = weights(&device);
    other.inner.bias = device.zeros([5]).unwrap();
    assert!(w.zip_leaves(&other, |_, _| 7.0).is_err());
    assert_eq!(w.gain, 3.0, "nothing has changed");
}

#[derive(Arrays)]
struct Epidemic {
    infected: Array1<f64>,
    recovered: Array1<f64>,
    rate: f64,
}

#[program]
fn infect(e: &mut Epidemic, seen: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..e.infected.len()) {
            e.recovered[i] += 0.1 * e.infected[i];
            e.infected[i] += e.rate * e.infected[i];
        }
    }
    for i in par(0..seen.len()) {
        loss[[]] += 0.5 * (e.infected[i] - seen[i]) * (e.infected[i] - seen[i]);
    }
}

#[program]
fn unrelated(e: &Epidemic, k: f64, loss: &mut Array0<f64>) {
    for _i in par(0..e.infected.len()) {
        loss[[]] += k;
    }
}

#[test]
fn c77_members_without_influence_have_derivative_zero() {
    for device in [Device::interpreter(), crate::cpu()] {
        let array = |values: &[f64]| device.array(values).unwrap();
        let e = Epidemic { infected: array(&[1.0, 2.0]), recovered: array(&[0.0, 0.0]), rate: 1.0 };
        let (seen, loss) = (array(&[1.0, 3.0]), device.scalar(0.0).unwrap());
        let g = infect().grad(infect::loss).wrt(infect::e).compile(&device).unwrap();
        let de = g.launch((&e, &seen, 1, &loss)).unwrap().get(infect::e).unwrap();
        assert_eq!(de.infected.to_vec(), [2.0, 2.0]);
        assert_eq!(de.recovered.to_vec(), [0.0, 0.0]);
        assert_eq!(de.rate, 3.0);

        // Asked for by itself, such a member is a mistake, and so is a struct without any influence.
        let alone = infect().grad(infect::loss).wrt(infect::e.recovered).compile(&device);
        let error = alone.err().unwrap().to_string();
        assert!(error.contains("`loss` does not depend on `e.recovered` in program `infect`"), "{error}");
        let none = unrelated().grad(unrelated::loss).wrt(unrelated::e).wrt(unrelated::k).compile(&device);
        let error = none.err().unwrap().to_string();
        assert!(error.contains("`loss` does not depend on `e` in program `unrelated`"), "{error}");
    }
}

struct NoDefault;

#[derive(Arrays)]
struct Named {
    u: Array1<f64>,
    #[arrays(skip)]
    #[allow(dead_code)]
    tag: NoDefault,
}

#[program]
fn squares(s: &Named, loss: &mut Array0<f64>) {
    for i in par(0..s.u.len()) {
        loss[[]] += s.u[i] * s.u[i];
    }
}

#[test]
fn a_field_without_a_default_is_asked_for_by_its_neighbours() {
    let device = Device::interpreter();
    let s = Named { u: device.array(&[1.0, 2.0]).unwrap(), tag: NoDefault };
    let g = squares().grad(squares::loss).wrt(squares::s).compile(&device).unwrap();
    let out = g.launch((&s, &device.scalar(0.0).unwrap())).unwrap();
    let error = out.get(squares::s).err().unwrap().to_string();
    assert!(error.contains("`tag`") && error.contains("Default"), "{error}");
    assert_eq!(out.get(squares::s.u).unwrap().to_vec(), [2.0, 4.0]);
}

#[derive(Arrays)]
struct Points {
    at: Array1<Vec2<f64>>,
    mass: Array1<f64>,
}

#[program]
fn moment(p: &Points, loss: &mut Array0<f64>) {
    for i in par(0..p.at.len()) {
        loss[[]] += p.mass[i] * p.at[i].norm_squared();
    }
}

#[test]
fn the_leaf_of_an_array_of_small_values_has_their_components() {
    for device in [Device::interpreter(), crate::cpu()] {
        let at = device.array(&[Vec2::new(1.0, 2.0), Vec2::new(3.0, -1.0)]).unwrap();
        let mut p = Points { at, mass: device.array(&[1.0, 0.5]).unwrap() };
        let g = moment().grad(moment::loss).wrt(moment::p).compile(&device).unwrap();
        let slopes = g.launch((&p, &device.scalar(0.0).unwrap())).unwrap().get(moment::p).unwrap();
        assert_eq!(slopes.at.to_vec(), [Vec2::new(2.0, 4.0), Vec2::new(3.0, -1.0)]);
        assert_eq!(slopes.mass.to_vec(), [5.0, 10.0]);
        p.zip_leaves(&slopes, |x, slope| x - slope).unwrap();
        assert_eq!(p.at.to_vec(), [Vec2::new(-1.0, -2.0), Vec2::new(0.0, 0.0)]);
        assert_eq!(p.mass.to_vec(), [-4.0, -9.5]);
    }
}
