//! What the table rests on: Ebbtide and the hand-written C compute the same, and disagreement is seen.

use std::rc::Rc;
use std::time::Duration;

use ebbtide_cpu::Cache;

use crate::chart;
use crate::compare::{Bench, C, Keep, OURS};
use crate::reference::Reference;
use crate::row::{Kind, Row};
use crate::workloads::{Size, Workload};

fn small(workload: Workload) -> Size {
    let (cells, steps) = match workload {
        Workload::Pointwise | Workload::Seedloop => (20, 11),
        Workload::Burgers | Workload::LongBurgers => (50, 11),
        Workload::Wave => (40, 23),
        Workload::Rnn | Workload::RnnLoops => (64, 19),
    };
    Size { cells, steps }
}

#[test]
fn ebbtide_and_the_c_agree_on_every_workload() {
    let folder = tempfile::tempdir().unwrap();
    let reference = Rc::new(Reference::build().unwrap());
    let bench = Bench { reference, cache: Cache::at(folder.path()), at_least: Duration::ZERO };
    for workload in Workload::ALL {
        for threads in [1, 2] {
            let mut rows = bench.primal(workload, small(workload), threads).unwrap();
            for keep in [Keep::StoreAll, Keep::Sqrt] {
                rows.extend(bench.gradient(workload, small(workload), keep, threads).unwrap());
            }
            assert_eq!(rows.len(), 6);
            for row in rows {
                assert!(row.norm.is_some_and(|norm| norm > 0.0), "{row:?}");
                assert_eq!(row.note, None, "{row:?}");
            }
        }
    }
}

#[test]
fn a_peer_that_finds_something_else_is_marked() {
    let size = Size { cells: 1, steps: 1 };
    let row = |system: &str, loss: f64, norm: f64| {
        let mut row = Row::new("burgers", Kind::Gradient, system, "plain", 1, size);
        (row.loss, row.norm) = (Some(loss), Some(norm));
        row
    };
    let ours = row(OURS, 1.0, 2.0);
    let compared = |loss: f64, norm: f64| {
        let mut other = row(C, loss, norm);
        other.compare(&ours);
        other.note
    };
    assert_eq!(compared(1.000_001, 1.999_99), None);
    assert!(compared(1.000_1, 2.0).is_some());
    assert!(compared(1.0, 2.000_1).is_some());
    assert!(compared(f64::NAN, 2.0).is_some(), "what is not a number agrees with nothing");
}

#[test]
fn lines_are_counted_between_their_markers() {
    for workload in Workload::ALL {
        let (ours, c) = (workload.lines().unwrap(), workload.lines_of_c().unwrap());
        assert!((10..60).contains(&ours) && c > 2 * ours, "{workload:?}: {ours} and {c}");
    }
}

#[test]
fn charts_are_whole_whatever_they_are_given() {
    let series = |points: Vec<(f64, f64)>| [chart::Series { name: "a < b".to_string(), points }];
    for points in [vec![], vec![(1.0, 1.0)], vec![(1.0, 0.0), (1e9, 3e-7)], vec![(f64::NAN, 1.0)]] {
        let svg = chart::lines("title", "x", "y", &series(points));
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.matches("NaN").count() == 0,
            "{svg}"
        );
    }
    let group =
        chart::Group { name: "g".to_string(), bars: vec![("a".to_string(), 0.5), ("b".to_string(), 300.0)] };
    let svg = chart::bars("title", "x", &[group]);
    assert_eq!(svg.matches("<rect").count(), 3, "the background and two bars");
}
