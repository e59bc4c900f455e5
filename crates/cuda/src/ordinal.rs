//! Which of several GPUs a process takes.

use std::ffi::c_int;

/// The number of this process among the ranks on its machine, by the launchers that say it: Open MPI, MPICH, PMI, Slurm.
const LOCAL_RANK: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];

/// The number of the GPU, of `count` that this process sees: what `EBBTIDE_GPU` says, else one for each rank of a machine in turn,
/// else the first.
pub fn ordinal(variable: impl Fn(&str) -> Option<String>, count: c_int) -> Result<c_int, String> {
    let said = variable("EBBTIDE_GPU").filter(|text| !text.is_empty());
    if let Some(text) = said {
        let number = text.parse::<c_int>().ok().filter(|number| (0..count).contains(number));
        return number
            .ok_or_else(|| format!("EBBTIDE_GPU is `{text}`: it numbers one of {count} GPUs, from 0"));
    }
    let rank = LOCAL_RANK.iter().find_map(|name| variable(name)?.parse::<c_int>().ok());
    Ok(rank.map_or(0, |rank| rank.rem_euclid(count.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)], count: c_int) -> Result<c_int, String> {
        ordinal(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()), count)
    }

    #[test]
    fn ranks_of_a_machine_take_its_gpus_in_turn() {
        let ranks: Vec<_> = (0..6).map(|k| with(&[("SLURM_LOCALID", &k.to_string())], 4)).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 0, 1].map(Ok));
        assert_eq!(with(&[("OMPI_COMM_WORLD_LOCAL_RANK", "3")], 1), Ok(0));
        assert_eq!(with(&[], 8), Ok(0));
    }

    #[test]
    fn a_number_that_was_given_counts_and_is_checked() {
        assert_eq!(with(&[("EBBTIDE_GPU", "2"), ("SLURM_LOCALID", "1")], 4), Ok(2));
        assert_eq!(with(&[("EBBTIDE_GPU", ""), ("SLURM_LOCALID", "1")], 4), Ok(1));
        for wrong in ["4", "-1", "first"] {
            assert!(with(&[("EBBTIDE_GPU", wrong)], 4).is_err(), "{wrong}");
        }
    }
}
