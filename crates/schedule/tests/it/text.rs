//! Suspending, writing down and resuming.

use ebbtide_schedule::*;

use crate::support::{Random, cases};

/// One schedule of every kind, block and shape.
pub fn zoo() -> Vec<AnySchedule> {
    let mut zoo: Vec<AnySchedule> = vec![StoreAll::new(0).unwrap().into(), StoreAll::new(9).unwrap().into()];
    for block in [1, 3] {
        for options in crate::support::options(block) {
            for steps in [0, 1, 2, 23] {
                zoo.push(Revolve::with(steps, 3, options).unwrap().into());
                zoo.push(Periodic::with(steps, 5, options).unwrap().into());
                zoo.push(Mixed::with(steps, 3, options).unwrap().into());
                let disk = Disk { slots: 4, write_cost: 1.5, read_cost: 0.25 };
                zoo.push(Multistage::with(steps, 2, disk, options).unwrap().into());
                zoo.push(Multistage::spaced(steps, 6, 2, 3, options).unwrap().into());
                // States on disk alone.
                let roomy = Disk { slots: 40, ..disk };
                zoo.push(Multistage::with(steps, 0, roomy, options).unwrap().into());
                let slot = |tier, index| Slot { tier, index };
                let survivors = [(0, slot(Tier::Disk, 7)), (steps / 2 + 1, slot(Tier::Memory, 2))];
                let survivors = &survivors[..1 + usize::from(steps > 1)];
                zoo.push(replan(steps, survivors, Progress::Forward, 3, options).unwrap().into());
                zoo.push(replan(steps, survivors, Progress::Reversed(steps), 3, options).unwrap().into());
            }
        }
        let mut online = Online::with(3, Options::new().block(block)).unwrap();
        zoo.push(online.clone().into());
        while !matches!(online.next(), Some(Action::Advance { to, .. }) if to >= 20) {}
        online.end(20).unwrap();
        zoo.push(online.into());
    }
    zoo
}

#[test]
fn a_schedule_suspended_at_any_action_and_resumed_goes_on_alike() {
    for mut schedule in zoo() {
        // The forward phase of an online schedule has no end.
        for _ in 0..400 {
            let text = schedule.to_string();
            let resumed: AnySchedule = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(resumed.to_string(), text);
            assert!(resumed.take(400).eq(schedule.clone().take(400)), "{text}");
            if schedule.next().is_none() {
                break;
            }
        }
    }
}

#[test]
fn hostile_text_is_an_error_or_a_schedule_that_stops_but_never_a_panic() {
    let mut random = Random(2);
    let mut texts: Vec<String> = Vec::new();
    for mut schedule in zoo() {
        for _ in 0..12 {
            texts.push(schedule.to_string());
            schedule.nth(random.below(7) as usize);
        }
    }
    let numbers =
        ["0", "1", "2", "7", "22", "23", "24", "4611686018427387904", "18446744073709551615", "-", "x", ""];
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..cases(20_000) {
        let text = &texts[random.below(texts.len() as u64) as usize];
        let mut bytes = text.clone();
        for _ in 0..1 + random.below(2) {
            // Replace one number by another.
            let starts: Vec<usize> = bytes
                .char_indices()
                .filter(|&(i, c)| c.is_ascii_digit() && !bytes[..i].ends_with(|c: char| c.is_ascii_digit()))
                .map(|(i, _)| i)
                .collect();
            let start = starts[random.below(starts.len() as u64) as usize];
            let length = bytes[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(bytes.len() - start);
            bytes.replace_range(start..start + length, numbers[random.below(numbers.len() as u64) as usize]);
        }
        match bytes.parse::<AnySchedule>() {
            Ok(schedule) => {
                accepted += 1;
                assert!(schedule.take(500).count() <= 500);
            }
            Err(error) => {
                refused += 1;
                assert!(
                    error.to_string().starts_with("not a suspended schedule")
                        || !matches!(error, Error::BadText { .. })
                );
            }
        }
    }
    assert!(accepted > 0 && refused > accepted, "{accepted} accepted, {refused} refused");
}

#[test]
fn truncated_and_foreign_texts_are_refused() {
    let mut schedule = AnySchedule::from(Revolve::new(100, 5).unwrap());
    schedule.nth(30);
    let text = schedule.to_string();
    let words: Vec<&str> = text.split(' ').collect();
    for length in 0..words.len() {
        assert!(words[..length].join(" ").parse::<AnySchedule>().is_err());
    }
    assert!(format!("{text} more=1").parse::<AnySchedule>().is_err());
    assert!("ebbtide-schedule/2 revolve".parse::<AnySchedule>().is_err());
    assert!("ebbtide-schedule/1 magic".parse::<AnySchedule>().is_err());
}
