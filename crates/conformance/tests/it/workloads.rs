use ebbtide_conformance::Input;
use ebbtide_ir::Literal;

use crate::devices::check;
use crate::programs;

#[test]
pub fn pointwise_is_the_same_everywhere() {
    for n in [0, 1, 7, 8, 9, 100, 5000] {
        let inputs =
            [Input::Array(vec![n], 1), Input::Array(vec![n], 2), Input::Scalar(Literal::from(11usize))];
        check(&programs::pointwise(), &inputs).unwrap();
    }
}

#[test]
pub fn burgers_is_the_same_everywhere() {
    for n in [1, 2, 3, 17, 64, 1000, 9001] {
        for steps in [0usize, 1, 2, 7] {
            let inputs = [
                Input::Array(vec![n], 1),
                Input::Array(vec![n], 2),
                Input::Scalar(Literal::from(0.1)),
                Input::Scalar(Literal::from(0.01)),
                Input::Scalar(Literal::from(steps)),
            ];
            check(&programs::burgers(), &inputs).unwrap();
        }
    }
}

#[test]
pub fn wave_is_the_same_everywhere() {
    for (n, m) in [(3, 3), (8, 50), (70, 90)] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![n, m], 2),
            Input::Array(vec![n, m], 3),
            Input::Array(vec![9], 4),
            Input::Array(vec![9, m], 5),
            Input::Scalar(Literal::from(9usize)),
        ];
        check(&programs::wave(), &inputs).unwrap();
    }
}

#[test]
pub fn reductions_are_the_same_everywhere() {
    for (n, m) in [(0, 3), (1, 1), (3, 100), (200, 33), (2, 9000), (1500, 20)] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![], 2),
            Input::Array(vec![], 3),
            Input::Array(vec![2], 4),
            Input::Array(vec![], 5),
        ];
        check(&programs::reductions(), &inputs).unwrap();
    }
}

#[test]
pub fn an_index_out_of_bounds_is_an_error_that_names_it() {
    // Nine steps, but a source of five.
    let inputs = [
        Input::Array(vec![8, 8], 1),
        Input::Array(vec![8, 8], 2),
        Input::Array(vec![8, 8], 3),
        Input::Array(vec![5], 4),
        Input::Array(vec![9, 8], 5),
        Input::Scalar(Literal::from(9usize)),
    ];
    let error = check(&programs::wave(), &inputs).unwrap_err();
    assert!(
        error.contains("index 5 is out of bounds for dimension 0 of `source`, whose extent is 5"),
        "{error}"
    );
}

#[test]
pub fn ordered_sums_at_elements_that_data_choose_are_the_same_everywhere() {
    for (n, m, cells) in
        [(0, 3, 5), (1, 1, 1), (3, 100, 7), (1, 33, 1000), (300, 33, 2), (7, 20011, 300), (2, 70000, 1)]
    {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![cells], 2),
            Input::Array(vec![cells], 3),
            Input::Array(vec![cells], 4),
            Input::Array(vec![n, m], 5),
        ];
        check(&programs::deposits(), &inputs).unwrap();
    }
}
