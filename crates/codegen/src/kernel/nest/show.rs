//! Nests for people. Input: a nest; output: a line for each loop, and the bodies of iterations inside.

use std::fmt::Write as _;

use ebbtide_ir::{ArrayId, Program};

use super::{Ends, First, For, Interiors, Kind, Nest, Node, Order, Over, Proved, Row, Together};
use crate::kernel::show::{block, narrowing, test};

/// The text of a nest.
pub(crate) fn show(program: &Program, nest: &Nest) -> String {
    let mut text = String::new();
    if nest.order == Order::Exchanged {
        text.push_str("by columns: a row is along the first range\n");
    }
    nest.body.iter().for_each(|node| shown(program, node, 0, &mut text));
    if let Some(buckets) = &nest.buckets {
        let names: Vec<&str> = buckets.tables.iter().map(|(a, _)| program.array(*a).name.as_str()).collect();
        let _ = writeln!(
            text,
            "threads, each a run of iterations, with buckets for {}, or one thread",
            names.join(", ")
        );
        shown_row(program, &buckets.row, 1, &mut text);
        let _ = writeln!(text, "label exit{}, then each thread combines its buckets", buckets.exit);
    }
    text
}

/// The depth of recursion is that of the nest.
fn shown(program: &Program, node: &Node, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match node {
        Node::For(l) => for_loop(program, l, depth, out),
        Node::Row(row) => shown_row(program, row, depth, out),
        Node::Iterations(it) => match it.first {
            First::At(0) => block(program, &it.body, depth, out),
            First::At(first) => {
                let _ = writeln!(out, "{indent}from j + {first} on");
                block(program, &it.body, depth + 1, out);
            }
            First::Sides(sides) => {
                let _ = writeln!(out, "{indent}{sides} vectors side by side");
                block(program, &it.body, depth + 1, out);
            }
        },
        Node::Label(exit) => drop(writeln!(out, "{indent}label exit{exit}")),
    }
}

fn for_loop(program: &Program, l: &For, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let kind = match (&l.kind, depth) {
        (Kind::Threads(_), _) => "threads, each a share of".to_string(),
        (Kind::Seq, 0) => "one thread, all".to_string(),
        (Kind::Seq, _) => "for".to_string(),
        (Kind::Lanes(lanes), _) => format!("for {lanes} lanes of"),
    };
    let names = |arrays: &std::collections::BTreeSet<ArrayId>| {
        arrays.iter().map(|a| program.array(*a).name.clone()).collect::<Vec<_>>().join(", ")
    };
    let over = match &l.over {
        Over::Rows(Interiors::OfEach) => "rows".to_string(),
        Over::Rows(Interiors::AtCorners) => {
            "rows, all in the interior if those at the corners are".to_string()
        }
        Over::Rows(Interiors::AtCornersOrAsOne(arrays)) => format!(
            "rows, all in the interior if those at the corners are, and then one row where those of {} lie one behind the other",
            names(arrays)
        ),
        Over::Columns { aligned: 1 } => "columns".to_string(),
        Over::Columns { aligned } => format!("columns, from a multiple of {aligned} on"),
        Over::Leaves => "leaves".to_string(),
        Over::Terms => "iterations that keep their terms, then of the leaves that add them".to_string(),
        Over::Interior { step: 1, .. } => "the interior".to_string(),
        Over::Interior { step, .. } => format!("the interior, {step} iterations at a time"),
        Over::Peeled { stored, least } => format!(
            "the first ones, up to the line of memory behind {}, if there are {least}",
            program.array(stored.array).name
        ),
        Over::Tail => "the rest".to_string(),
    };
    let unrolled = match l.over {
        Over::Interior { unrolled, .. } if unrolled > 1 => format!(", unrolled by {unrolled}"),
        _ => String::new(),
    };
    let _ = writeln!(out, "{indent}{kind} {over}{unrolled}");
    l.body.iter().for_each(|node| shown(program, node, depth + 1, out));
}

fn shown_row(program: &Program, row: &Row, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let narrowings: Vec<String> = row.interval.narrowings.iter().map(|n| narrowing(program, n)).collect();
    let _ = writeln!(out, "{indent}interior: all j where {}", narrowings.join(", "));
    if row.least > 1 {
        let _ = writeln!(out, "{indent}none in rows of fewer than {} iterations", row.least);
    }
    if let Some(Together { rows, least, interval, before, inside }) = &row.together {
        let all: Vec<String> = interval.narrowings.iter().map(|n| narrowing(program, n)).collect();
        let _ = writeln!(
            out,
            "{indent}{rows} rows at a time of at least {least} iterations where {} in all of them",
            all.join(", ")
        );
        block(program, before, depth + 1, out);
        inside.iter().for_each(|l| for_loop(program, l, depth + 1, out));
        let _ = writeln!(out, "{indent}rows one by one");
    }
    if let Some(Proved { tests, narrowings, ends }) = &row.proved {
        let tests: Vec<String> = tests.iter().map(|t| test(program, t)).collect();
        let narrowings: Vec<String> = narrowings.iter().map(|n| narrowing(program, n)).collect();
        let _ = writeln!(out, "{indent}proved: {}", tests.join(", "));
        let _ = writeln!(out, "{indent}  interior then: all j where {}", narrowings.join(", "));
        if let Some(Ends { lanes, body, .. }) = ends {
            let _ = writeln!(out, "{indent}  for the first of {lanes} lanes before it and behind it then");
            block(program, body, depth + 2, out);
        }
    }
    row.inside.iter().for_each(|l| for_loop(program, l, depth, out));
    let _ = writeln!(out, "{indent}for all others");
    block(program, &row.careful, depth + 1, out);
}
