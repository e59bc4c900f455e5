//! How many threads a process should have. Input: the system and the variables of a batch system; output: each number
//! with its source.

/// The source of the number that the system says.
const SYSTEM: &str = "cores of this process (affinity, control groups)";

/// What says how many, and how many. `available_parallelism` asks `sched_getaffinity` and the quota of control groups of
/// both versions. Slurm binds tasks to cores where its administrator has set that up; its variables say what it gave
/// everywhere.
pub(crate) fn found(variable: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, usize)> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut found = vec![(SYSTEM, cores)];
    found.extend(of_slurm(variable));
    found
}

fn of_slurm(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, usize)> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok().filter(|n| *n > 0);
    if let Some(cores) = number("SLURM_CPUS_PER_TASK") {
        return Some(("SLURM_CPUS_PER_TASK", cores));
    }
    // What a node gave is one task's where there is one task.
    let alone = number("SLURM_NTASKS").is_some_and(|tasks| tasks == 1);
    number("SLURM_CPUS_ON_NODE").filter(|_| alone).map(|cores| ("SLURM_CPUS_ON_NODE", cores))
}

/// The least of them.
pub(crate) fn least(found: &[(&'static str, usize)]) -> usize {
    found.iter().map(|(_, threads)| *threads).min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(variables: &[(&str, &str)]) -> Option<(&'static str, usize)> {
        of_slurm(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn slurm_says_what_each_task_has() {
        assert_eq!(slurm(&[]), None);
        assert_eq!(slurm(&[("SLURM_CPUS_PER_TASK", "8")]), Some(("SLURM_CPUS_PER_TASK", 8)));
        assert_eq!(slurm(&[("SLURM_CPUS_PER_TASK", "many")]), None);
        assert_eq!(slurm(&[("SLURM_CPUS_PER_TASK", "0")]), None);
        // Four tasks share the cores of the node.
        assert_eq!(slurm(&[("SLURM_CPUS_ON_NODE", "16"), ("SLURM_NTASKS", "4")]), None);
        let alone = [("SLURM_CPUS_ON_NODE", "16"), ("SLURM_NTASKS", "1")];
        assert_eq!(slurm(&alone), Some(("SLURM_CPUS_ON_NODE", 16)));
    }

    #[test]
    fn the_least_number_counts() {
        assert_eq!(least(&[("a", 8), ("b", 3)]), 3);
        let cores = least(&found(|_| None));
        assert_eq!(least(&found(|name| (name == "SLURM_CPUS_PER_TASK").then(|| "1".to_string()))), 1);
        assert_eq!(
            least(&found(|name| (name == "SLURM_CPUS_PER_TASK").then(|| "100000".to_string()))),
            cores
        );
    }
}
