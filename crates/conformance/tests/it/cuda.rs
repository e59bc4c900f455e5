//! The contract on CUDA: the tests of the other modules, run on the first GPU.
//!
//! They fail, and are not skipped, where there is none: `cargo test -p ebbtide-conformance --test it -- --ignored cuda::`.
//! With `EBBTIDE_TEST_CUDA=text` the generated text is compiled for compute capability 9.0 and the interpreter runs: that
//! takes NVIDIA's run-time compiler, but no GPU.

use std::sync::OnceLock;

use ebbtide_codegen::Unit;
use ebbtide_cpu::Cache;
use ebbtide_cuda::compiler::{Architecture, Kernels, cubin};
use ebbtide_cuda::{Options, text_device};
use ebbtide_runtime::{Device, interpreter};

use crate::devices::folder;

/// The GPU; for tests that ask for more than one thread, with so many blocks that they must meet across the GPU.
pub fn device(threads: usize) -> Device {
    static DEVICES: [OnceLock<Device>; 3] = [const { OnceLock::new() }; 3];
    let which = [1, 2].iter().position(|t| *t == threads).unwrap_or(2);
    let made = DEVICES[which].get_or_init(|| {
        if std::env::var("EBBTIDE_TEST_CUDA").is_ok_and(|how| how == "text") {
            return text_device(compile_for_cuda);
        }
        let options = Options::new().cache(Cache::at(folder()));
        let options = match which {
            0 => options,
            1 => options.blocks(3),
            _ => options.blocks(97),
        };
        options.build().expect("these tests need a GPU, its driver and NVRTC").0
    });
    made.clone()
}

/// Compiles a text for CUDA, in all its parts.
fn compile_for_cuda(unit: &Unit) -> Result<(), String> {
    let parts = (0..unit.part_count).map(|part| (Kernels::Segments, Some(part)));
    for (kernels, part) in parts.chain([(Kernels::Segments, None), (Kernels::Batch, None)]) {
        let target = Architecture { kernels, part, ..Architecture::of(9, 0) };
        cubin(&unit.source, &target, &Cache::at(folder()))?;
    }
    Ok(())
}

/// Tests of other modules, run on CUDA.
macro_rules! on_cuda {
    ($($module:ident { $($test:ident,)* })*) => {$(
        mod $module {
            use crate::$module as tests;

            $(
                #[test]
                #[ignore = "needs CUDA"]
                fn $test() {
                    crate::devices::with_cuda(tests::$test);
                }
            )*
        }
    )*};
}

#[test]
#[ignore = "needs CUDA"]
fn the_same_bits_come_of_programs_whose_optional_steps_are_left_out() {
    crate::c_text::without_optional_steps(&["--ignored"], "cuda::");
}

on_cuda! {
    boundaries {
        conditions_over_indices_are_the_same_everywhere,
        neighbours_in_three_dimensions_are_the_same_everywhere,
    }
    c_text {
        programs_of_golden_texts_are_the_same_on_the_interpreter_and_on_their_target,
        golden_texts_that_yield_or_reverse_are_the_same_on_the_interpreter_and_on_their_target,
    }
    cancel {
        a_launch_that_never_ends_is_stopped_and_its_arrays_can_be_used_again,
        inner_loops_of_few_passes_do_not_put_an_end_off,
        one_switch_stops_all_launches_that_have_it,
        a_wish_that_comes_after_the_end_changes_nothing,
        a_launch_is_stopped_while_others_are_compiled,
        a_gradient_that_never_ends_is_stopped_and_can_be_launched_again,
    }
    cases {
        runs_of_case_files_leave_on_a_device_what_the_files_say,
    }
    extremes {
        c59_indices_near_the_ends_of_their_type_are_errors_or_lawful,
        c59_temporaries_with_extents_near_the_ends_of_their_type_are_errors_or_lawful,
        c59_arrays_without_elements_are_like_any_other,
    }
    gradients {
        gradients_have_the_same_bits_under_every_budget_on_every_device,
        gradients_have_the_same_bits_wherever_states_are_kept,
    }
    hostile {
        hostile_data_is_clean_under_sanitisers,
        hostile_data_is_an_error_or_lawful_never_a_crash,
        shapes_that_do_not_fit_are_errors,
        huge_arrays_are_errors,
        a_loop_with_very_many_reductions_is_like_any_other,
    }
    interchange {
        own_elements_are_the_same_everywhere,
        own_elements_of_a_plane_are_the_same_everywhere,
        own_elements_are_checked_in_every_pass,
        gradients_of_own_elements_have_the_same_bits_under_every_budget_on_every_device,
    }
    library {
        products_have_the_same_bits_on_every_device_for_every_shape,
        products_of_a_few_tiles_have_the_same_bits_on_every_device,
        products_of_many_tiles_have_the_same_bits_on_every_device,
        a_product_is_what_the_law_says,
        chunks_of_a_product_are_added_in_order,
        products_of_subnormal_numbers_have_the_same_bits_on_every_device,
        scans_add_one_element_after_the_other,
        compact_counts_all_and_writes_what_has_room,
        shapes_that_do_not_fit_are_run_errors_that_say_what_fits,
        flags_are_made_and_read_by_parallel_loops,
        operations_take_their_place_between_parallel_loops,
        gradients_through_library_operations_have_the_same_bits_under_every_budget_on_every_device,
    }
    loops {
        c18_loop_runs_at_least_once_and_while_may_run_never,
        c19_conditions_compare_elements_counters_and_booleans,
        c20_nests_three_deep_siblings_and_run_once_work,
        c21_scalar_statements_run_once_per_pass_and_once_outside,
        c22_other_arrays_and_sizes_do_not_recompile,
        c23_bounds_may_depend_on_data_written_in_the_same_launch,
    }
    operations {
        operations_of_the_host_stand_between_loops_in_loops_and_in_branches,
        an_operation_that_fails_is_an_error_that_names_it,
        gradients_through_operations_of_the_host_have_the_same_bits_under_every_budget,
    }
    sum_chains {
        chains_of_additions_are_the_same_everywhere,
        a_chain_that_meets_a_fault_is_an_error_everywhere,
    }
    swaps {
        a_parameter_that_is_swapped_with_a_temporary_keeps_its_memory,
        a_launch_that_is_not_waited_for_brings_them_back_too,
        where_the_program_yields_parameters_are_at_home_and_temporaries_kept,
        a_launch_that_fails_leaves_arrays_that_can_be_used_again,
    }
    traces {
        c48_random_traces_equal_the_model_natively,
        c48_random_traces_equal_the_model_on_two_threads,
    }
    meetings {
        a_source_and_receivers_are_the_same_wherever_they_are,
        a_domain_without_elements_leaves_the_source_to_somebody,
        a_source_or_receivers_out_of_bounds_are_errors_that_say_so,
        loops_over_one_domain_and_single_elements_follow_each_other,
        loops_from_element_to_element_are_the_same_everywhere,
        a_fault_of_one_thread_alone_is_the_fault_of_all,
        gradients_of_loops_from_element_to_element_are_the_same_everywhere,
    }
    workloads {
        pointwise_is_the_same_everywhere,
        burgers_is_the_same_everywhere,
        wave_is_the_same_everywhere,
        reductions_are_the_same_everywhere,
        an_index_out_of_bounds_is_an_error_that_names_it,
        ordered_sums_at_elements_that_data_choose_are_the_same_everywhere,
        ordered_sums_with_as_many_terms_as_data_say_are_the_same_everywhere,
        a_count_of_terms_that_is_out_of_bounds_is_an_error_that_names_it,
        ordered_sums_whose_elements_come_in_order_are_the_same_everywhere,
        ordered_sums_at_different_elements_are_the_same_everywhere,
        sums_of_a_time_loop_are_the_same_everywhere,
        products_beside_sums_of_all_kinds_are_the_same_everywhere,
        loops_over_elements_of_products_are_the_same_everywhere,
        columns_of_short_rows_are_the_same_everywhere,
        functions_that_iterations_share_are_the_same_everywhere,
        quotients_and_roots_in_sums_are_the_same_everywhere,
        sums_over_long_iterations_are_the_same_everywhere,
        sums_beside_ordered_sums_are_the_same_everywhere,
    }
    yields {
        c26_labels_come_back_as_enum_and_variant,
        c27_code_outside_labelled_regions_is_skipped_and_run_like_any_other,
        c28_a_flag_of_zero_completes,
        c29_after_a_yield_nothing_more_runs_and_every_loop_is_left,
        c30_the_first_flag_in_execution_order_wins,
        c31_the_flag_is_the_hosts_and_level_triggered,
        c32_resume_skips_what_came_before_and_runs_the_region_again,
        c33_in_loops_the_skip_applies_to_the_resumed_pass_alone,
        c34_moves_keep_shared_iterations_and_start_others_anew,
        c34_resume_at_needs_no_yield_and_asks_no_condition,
        c34_other_arguments_at_resume_are_those_of_the_program_from_there_on,
        c35_errors_say_what_is_wrong,
        c35_ill_formed_regions_are_build_errors,
        c35_a_label_at_several_positions_is_listed,
        c36_flags_and_counters_may_be_members_of_structs,
        c37_a_yield_of_one_program_affects_no_other,
        c38_resume_is_exact_after_a_nested_loop,
        c38_resume_is_exact_after_a_loop,
        c38_resume_is_exact_after_a_sibling_loop,
        c39_a_yielded_pass_consumes_no_counter,
        c40_a_loop_inside_a_region_finishes_before_the_flag_is_looked_at,
        c41_statuses_are_never_missing_or_stale,
        c42_a_stored_yield_of_another_program_or_a_damaged_one_is_refused,
        c42_a_yield_moves_between_devices,
        c42_a_forged_yield_is_refused,
        c43_a_pending_launch_can_be_polled_waited_for_and_dropped,
        c43_a_launch_that_was_forgotten_holds_up_nobody,
        c43_arrays_wait_for_their_writers_and_readers,
        c44_undo_leaves_nothing_of_an_abandoned_region_but_its_flag,
        c44_drive_repairs_and_leaves,
        temporaries_stay_where_they_are_live_and_follow_the_arguments_where_they_are_made_anew,
    }
    random {
        c48_random_programs_are_the_same_everywhere_one,
        c48_random_programs_are_the_same_everywhere_two,
    }
    regressions {
        a_negative_literal_can_be_negated,
        two_sums_into_shared_elements_are_taken_in_the_order_of_iterations,
        one_sum_into_shared_elements_in_a_loop_is_taken_in_the_order_of_iterations,
        an_index_can_be_cast_to_bool_in_a_loop_of_floats,
        equal_values_of_a_loop_condition_are_not_lost,
        fused_loops_give_what_they_gave_apart,
    }
    random_gradients {
        gradients_of_random_programs_are_the_same_under_every_schedule,
    }
}

/// Loops and conditions on data are code inside one kernel: no conditional node of a graph, and no host that drives them.
#[test]
#[ignore = "needs CUDA"]
fn c50_a_loop_on_the_device_is_one_launch_however_long_it_is() {
    use ebbtide_conformance::{Input, run};
    use ebbtide_ir::Literal;

    let options = Options::new().cache(Cache::at(folder()));
    let (device, counters) = options.build().expect("these tests need a GPU, its driver and NVRTC");
    let mut costs = Vec::new();
    for steps in [1usize, 10, 1000] {
        let inputs = [
            Input::Array(vec![70, 90], 1),
            Input::Array(vec![70, 90], 2),
            Input::Array(vec![70, 90], 3),
            Input::Array(vec![1000], 4),
            Input::Array(vec![1000, 90], 5),
            Input::Scalar(Literal::from(steps)),
        ];
        let before = (counters.launches(), counters.waits());
        run(&crate::programs::wave(), &device, &inputs).expect("it runs");
        costs.push((counters.launches() - before.0, counters.waits() - before.1));
    }
    assert_eq!(costs[0].0, 1);
    assert_eq!(costs[0], costs[1]);
    assert_eq!(costs[0], costs[2]);
}

/// Steps for which one block is enough wait for each other, and go together.
#[test]
#[ignore = "needs CUDA"]
fn a_gradient_of_few_elements_is_one_launch_and_one_wait() {
    use crate::gradients::{bits, pointwise};
    use ebbtide_runtime::Budget;

    let options = Options::new().cache(Cache::at(folder()));
    let (device, counters) = options.build().expect("these tests need a GPU, its driver and NVRTC");
    let case = pointwise(100, 203);
    let expected = bits(&case.run(&case.compile(&interpreter())).0);
    let compiled = case.compile(&device);
    for (budget, most) in [(Budget::StoreAll, 1), (Budget::Periodic { period: 10 }, 8)] {
        let compiled = compiled.with_budget(budget);
        for round in 0..2 {
            let before = (counters.launches(), counters.waits());
            let found = bits(&case.run(&compiled).0);
            let (launches, waits) = (counters.launches() - before.0, counters.waits() - before.1);
            assert_eq!(found, expected, "{budget:?}, round {round}");
            assert!(launches <= most && waits == 1, "{budget:?}: {launches} launches, {waits} waits");
        }
    }
}
