//! Shots that ranks, or groups of them, share out.

use ebbtide_grid::{Alone, Channels, Shots, Wire};

const SHOTS: usize = 7;

/// What a shot gives: numbers whose sum depends on the order.
fn shot(shot: usize) -> ebbtide_grid::Result<Vec<f64>> {
    Ok((0..3).map(|k| ((shot * 7 + k) as f64 * 0.3).sin() * 10f64.powi(shot as i32 % 4)).collect())
}

fn bits(sum: Vec<f64>) -> Vec<u64> {
    sum.into_iter().map(f64::to_bits).collect()
}

/// What all ranks of a world get that is split into groups of these sizes.
fn in_groups(sizes: &[usize]) -> Vec<Vec<u64>> {
    let world = Channels::ranks(sizes.iter().sum());
    let members =
        sizes.iter().enumerate().flat_map(|(group, size)| (0..*size).map(move |rank| (group, rank == 0)));
    std::thread::scope(|scope| {
        let run = |(mut wire, (group, leads)): (Channels, (usize, bool))| {
            scope.spawn(move || {
                let mut shots = Shots::over(&mut wire).in_groups(group, sizes.len(), leads);
                bits(shots.sum(SHOTS, 3, shot).expect("it runs"))
            })
        };
        let running: Vec<_> = world.into_iter().zip(members).map(run).collect();
        running.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

#[test]
fn groups_give_the_bits_of_one_process() {
    let alone = bits(Shots::over(&mut Alone).sum(SHOTS, 3, shot).expect("it runs"));
    for sizes in [vec![1], vec![1, 1], vec![2, 1], vec![1, 3], vec![2, 2, 2]] {
        let all = in_groups(&sizes);
        assert_eq!(all.len(), sizes.iter().sum::<usize>());
        assert!(all.iter().all(|found| *found == alone), "{sizes:?}");
    }
}

#[test]
fn the_least_shot_that_failed_fails_all() {
    let texts = std::thread::scope(|scope| {
        let run = |mut wire: Channels| {
            scope.spawn(move || {
                let rank = Wire::rank(&wire);
                let work = |k: usize| match k {
                    2 | 5 => Err(ebbtide_grid::Error::Part(format!("no data on rank {rank}"))),
                    k => shot(k),
                };
                Shots::over(&mut wire).sum(SHOTS, 3, work).expect_err("it fails").to_string()
            })
        };
        let running: Vec<_> = Channels::ranks(3).into_iter().map(run).collect();
        running.into_iter().map(|rank| rank.join().expect("no panic")).collect::<Vec<String>>()
    });
    assert!(texts.iter().all(|text| text == "shot 2 no data on rank 1"), "{texts:?}");
}
