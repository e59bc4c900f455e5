use ebbtide_checkpoint::{Dtype, Error, State};

#[test]
fn arrays_of_every_type_come_back_bit_for_bit() {
    let mut state = State::new();
    let doubles = [0.0, -0.0, f64::INFINITY, f64::from_bits(0x7ff8_0000_0000_0123), 1e-310];
    state.put("f64", &doubles).unwrap();
    state.put("f32", &[1.5_f32, f32::MIN_POSITIVE]).unwrap();
    state.put("i32", &[i32::MIN, -1]).unwrap();
    state.put("i64", &[i64::MIN, 1]).unwrap();
    state.put("u8", &[7_u8, 255]).unwrap();
    state.put("u32", &[u32::MAX]).unwrap();
    state.put("u64", &[u64::MAX, 0]).unwrap();
    state.put("bool", &[true, false, true]).unwrap();
    state.put_scalar("scalar", 2.5).unwrap();
    state.put::<f64>("empty", &[]).unwrap();
    state.put_shaped("matrix", &[2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();

    let mut back = [0.0; 5];
    state.get("f64", &mut back).unwrap();
    assert_eq!(back.map(f64::to_bits), doubles.map(f64::to_bits));
    assert_eq!(state.get_vec::<f32>("f32").unwrap(), [1.5, f32::MIN_POSITIVE]);
    assert_eq!(state.get_vec::<i32>("i32").unwrap(), [i32::MIN, -1]);
    assert_eq!(state.get_vec::<i64>("i64").unwrap(), [i64::MIN, 1]);
    assert_eq!(state.get_vec::<u8>("u8").unwrap(), [7, 255]);
    assert_eq!(state.get_vec::<u32>("u32").unwrap(), [u32::MAX]);
    assert_eq!(state.get_vec::<u64>("u64").unwrap(), [u64::MAX, 0]);
    assert_eq!(state.get_vec::<bool>("bool").unwrap(), [true, false, true]);
    assert_eq!(state.scalar::<f64>("scalar").unwrap(), 2.5);
    assert!(state.get_vec::<f64>("empty").unwrap().is_empty());
    let matrix = state.array("matrix").unwrap();
    assert_eq!((matrix.dtype, matrix.shape), (Dtype::I32, &[2, 3][..]));
    assert_eq!(state.arrays().len(), 11);
    assert_eq!(state.bytes(), 40 + 8 + 8 + 16 + 2 + 4 + 16 + 3 + 8 + 24);
}

#[test]
fn mistakes_are_named() {
    let mut state = State::new();
    state.put("u", &[1.0, 2.0]).unwrap();
    let messages = [
        state.put("u", &[1.0]).unwrap_err(),
        state.put("__metadata__", &[1.0]).unwrap_err(),
        state.put_shaped("m", &[2, 2], &[1.0; 3]).unwrap_err(),
        state.put_shaped::<f64>("huge", &[usize::MAX, 2], &[]).unwrap_err(),
        state.get("v", &mut [0.0; 2]).unwrap_err(),
        state.get("u", &mut [0.0_f32; 2]).unwrap_err(),
        state.get("u", &mut [0.0; 3]).unwrap_err(),
        state.scalar::<f64>("u").unwrap_err(),
    ]
    .map(|error: Error| error.to_string());
    assert_eq!(
        messages,
        [
            "the name `u` is taken: every array of a state needs a name of its own",
            "the name `__metadata__` is taken: every array of a state needs a name of its own",
            "array `m` has 3 values, expected as many as shape [2, 2] has",
            "array `huge` has 0 values, expected as many as shape [18446744073709551615, 2] has",
            "there is no array `v` in this state; it has: u",
            "array `u` has elements of type f64, expected f32",
            "array `u` has 2 values, expected room for 3",
            "array `u` has 2 values, expected room for 1",
        ]
    );
}

#[test]
fn a_state_that_is_cleared_is_as_good_as_new() {
    let mut state = State::new();
    state.put("a", &[1.0; 100]).unwrap();
    state.put("b", &[2_i32; 7]).unwrap();
    state.clear();
    assert_eq!((state.bytes(), state.arrays().len()), (0, 0));
    assert!(state.array("a").is_none());
    state.put("b", &[3.0]).unwrap();
    let mut fresh = State::new();
    fresh.put("b", &[3.0]).unwrap();
    assert_eq!(state, fresh);
    assert_eq!(state.clone(), fresh);
}
