//! What the host writes: arguments of gradients, arguments by name, ends of launches, notes of plans.

use ebbtide::__lang::Source;
use ebbtide::Error;
use ebbtide::library::fft;
use ebbtide::prelude::*;

#[program(args = DecayArgs)]
fn decay(u: &mut Array1<f64>, next: &mut Array1<f64>, rate: f64, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            next[i] = u[i] - rate * u[i] * u[i];
        }
        swap(u, next);
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}

#[program(args = AxpyArgs)]
fn axpy<T: Float>(y: &mut Array1<T>, a: T, x: &Array1<T>) {
    for i in par(0..y.len()) {
        y[i] = y[i] + a * x[i];
    }
}

#[program(args = WeighArgs)]
fn weigh(weight: f64, loss: &mut Array0<f64>) {
    fill(loss, weight * weight);
}

fn devices() -> [Device; 2] {
    [Device::interpreter(), crate::cpu()]
}

fn arrays(device: &Device) -> (Array1<f64>, Array1<f64>, Array0<f64>) {
    (device.array(&[1.0, 0.5]).unwrap(), device.zeros([2]).unwrap(), device.zeros([]).unwrap())
}

#[test]
fn gradients_and_plans_take_shared_borrows_of_what_the_program_writes() {
    for device in devices() {
        let (mut u, mut next, mut loss) = arrays(&device);
        let g = decay().value_and_grad(decay::loss).wrt(decay::u).wrt(decay::rate).compile(&device).unwrap();
        let by_ref = g.launch((&u, &next, 0.1, 5, &loss)).unwrap();
        let by_mut = g.launch((&mut u, &mut next, 0.1, 5, &mut loss)).unwrap();
        let mixed = g.launch((&u, &mut next, 0.1, 5, &loss)).unwrap();
        for other in [&by_mut, &mixed] {
            assert_eq!(by_ref.get(decay::u).unwrap().to_vec(), other.get(decay::u).unwrap().to_vec());
            assert_eq!(by_ref.get(decay::rate).unwrap(), other.get(decay::rate).unwrap());
        }
        assert_eq!((u.to_vec(), loss.value()), (vec![1.0, 0.5], 0.0));
        g.plan((&u, &next, 0.1, 5, &loss)).unwrap();
        let in_a_variable = (&mut u, &mut next, 0.1, 5, &mut loss);
        g.plan(g.shared(in_a_variable)).unwrap();
    }
}

#[test]
fn products_take_shared_borrows_of_what_the_program_writes() {
    for device in devices() {
        let (u, next, loss) = arrays(&device);
        let jvp = decay().jvp(decay::loss).wrt(decay::rate).compile(&device).unwrap();
        let moved =
            jvp.launch((&u, &next, 0.1, 5, &loss), &Direction::new().scalar(decay::rate, 1.0)).unwrap();
        let g = decay().grad(decay::loss).wrt(decay::rate).compile(&device).unwrap();
        let slope = g.launch((&u, &next, 0.1, 5, &loss)).unwrap().get(decay::rate).unwrap();
        let along = moved.get(decay::loss).unwrap().value();
        assert!((along - slope).abs() < 1e-12, "{along} {slope}");
    }
}

#[test]
fn arguments_can_be_given_by_name() {
    for device in devices() {
        let (mut u, mut next, mut loss) = arrays(&device);
        let g = decay().grad(decay::loss).wrt(decay::rate).compile(&device).unwrap();
        let by_place = g.launch((&u, &next, 0.1, 5, &loss)).unwrap().get(decay::rate).unwrap();
        let named = DecayArgs { steps: 5, rate: 0.1, u: &mut u, next: &mut next, loss: &mut loss };
        assert_eq!(g.launch(named.into()).unwrap().get(decay::rate).unwrap(), by_place);
        let run = decay().compile(&device).unwrap();
        run.launch(DecayArgs { steps: 0, rate: 0.1, u: &mut u, next: &mut next, loss: &mut loss }.into())
            .unwrap();
        assert_eq!(loss.value(), 1.25);

        let (mut y, x) = (device.array(&[1.0_f32]).unwrap(), device.array(&[3.0_f32]).unwrap());
        axpy::<f32>().compile(&device).unwrap().launch(AxpyArgs { y: &mut y, x: &x, a: 2.0 }.into()).unwrap();
        assert_eq!(y[0], 7.0);
        weigh().compile(&device).unwrap().launch(WeighArgs { loss: &mut loss, weight: 3.0 }.into()).unwrap();
        assert_eq!(loss.value(), 9.0);
    }
}

#[test]
fn a_program_that_cannot_yield_is_done() {
    fn ends_without_a_status(device: &Device, x: &mut Array1<f64>) -> Result<(), Error> {
        let mut loss = device.zeros([])?;
        // No warning here: `tests/ui/a_yield_must_be_looked_at.rs` holds that.
        weigh().compile(device)?.launch((2.0, &mut loss))?;
        x.fill(loss.value())
    }
    for device in devices() {
        let mut x = device.zeros([3]).unwrap();
        ends_without_a_status(&device, &mut x).unwrap();
        assert_eq!(x.to_vec(), [4.0; 3]);
        let done: Done =
            weigh().compile(&device).unwrap().launch((1.0, &mut device.zeros([]).unwrap())).unwrap();
        assert_eq!((done.is_done(), Status::from(done)), (true, Status::Done));
        assert_eq!(done, Status::Done);
    }
}

#[derive(Label)]
enum Stage {
    Grow,
}

/// Calls programs that cannot yield: its own, a generic one, one of the library.
#[program]
fn calls(weight: f64, x: &mut Array1<f64>, im: &mut Array1<f64>, loss: &mut Array0<f64>) {
    weigh(weight, loss);
    axpy::<f64>(x, weight, im);
    axpy(x, weight, im);
    fft(x, im);
    lend(&mut x[0]);
}

#[func]
fn lend<T: Float>(x: &mut T) {
    *x *= T::of(2.0);
}

#[program]
fn calls_calls<T: Float>(
    weight: f64,
    y: &mut Array1<T>,
    x: &mut Array1<f64>,
    im: &mut Array1<f64>,
    loss: &mut Array0<f64>,
) {
    calls(weight, x, im, loss);
    fill(y, T::of(1.0));
}

#[program]
fn yields<T: Float>(x: &mut Array1<T>, full: &mut Array0<i32>) {
    #[checkpoint(Stage::Grow, yield_on = full)]
    {
        fill(x, T::of(1.0));
    }
}

#[program]
fn calls_what_yields(x: &mut Array1<f64>, full: &mut Array0<i32>) {
    for _t in 0..2 {
        yields(x, full);
    }
}

/// A program of the user's own comes before that of the prelude.
mod own {
    use super::Stage;
    use ebbtide::prelude::*;

    #[program]
    pub fn scan(x: &mut Array1<f64>, full: &mut Array0<i32>) {
        #[checkpoint(Stage::Grow, yield_on = full)]
        {
            fill(x, 1.0);
        }
    }

    #[program]
    pub fn calls_scan(x: &mut Array1<f64>, full: &mut Array0<i32>) {
        scan(x, full);
    }
}

#[program]
fn given<F: Fn(&mut Array1<f64>)>(f: F, x: &mut Array1<f64>) {
    f(x);
}

#[program]
fn ones(x: &mut Array1<f64>) {
    fill(x, 1.0);
}

#[test]
fn a_program_that_calls_others_can_yield_if_one_of_them_can() {
    fn done<P: Source<Ended = Done>>(_: Program<P>) {}
    fn status<P: Source<Ended = Status>>(_: Program<P>) {}
    done(calls());
    done(calls_calls::<f32>());
    status(yields::<f32>());
    status(calls_what_yields());
    status(own::calls_scan());
    // Which program is given is not known where it is called.
    status(given::<ones>());
}

#[test]
fn a_plan_says_that_an_accumulated_output_is_not_zero() {
    for device in devices() {
        let (mut u, next, mut loss) = arrays(&device);
        let g = decay().value_and_grad(decay::loss).wrt(decay::u).compile(&device).unwrap();
        let says = |u: &Array1<f64>, loss: &Array0<f64>| {
            let plan = g.plan((u, &next, 0.1, 5, loss)).unwrap();
            let explained =
                plan.explain().contains("the program adds to `loss`, which is not zero at the start");
            assert_eq!(explained, plan.added_to == ["loss"]);
            explained
        };
        assert!(!says(&u, &loss));
        loss[[]] = 2.0;
        assert!(says(&u, &loss));
        // Arrays that are not asked for as values are nobody's surprise.
        u[0] = 3.0;
        let without = decay().grad(decay::loss).wrt(decay::u).compile(&device).unwrap();
        assert!(without.plan((&u, &next, 0.1, 5, &loss)).unwrap().added_to.is_empty());
        // `fill` before the sum makes it start at zero.
        let whole = weigh().value_and_grad(weigh::loss).wrt(weigh::weight).compile(&device).unwrap();
        assert!(whole.plan((1.0, &loss)).unwrap().added_to.is_empty());
        // It is the value that has what was there before.
        let out = g.launch((&u, &next, 0.0, 0, &loss)).unwrap();
        assert_eq!(out.value(decay::loss).unwrap().value(), 2.0 + 9.0 + 0.25);
    }
}

#[test]
fn bytes_can_be_counted_one_by_one() {
    assert_eq!((Bytes::bytes(1024), Bytes::bytes(3).0), (Bytes::kib(1), 3));
}
