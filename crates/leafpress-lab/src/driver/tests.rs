use super::*;

/// Steps until it is stopped or has no steps left.
struct Counting {
    number: usize,
    steps: u64,
    left: u64,
    fault: Option<Fault>,
}

#[derive(Clone, Copy)]
enum Fault {
    Error,
    Panic,
}

impl Target for Counting {
    type Done = (usize, u64);

    fn step(&mut self, _: &AtomicBool) -> Result<bool, LabError> {
        match self.fault {
            Some(Fault::Error) => return Err(LabError::System(format!("thread {} failed", self.number))),
            Some(Fault::Panic) => panic!("as the test wants it"),
            None => {}
        }
        self.steps += 1;
        Ok(self.steps < self.left)
    }

    fn begin(&mut self) {
        self.steps = 0;
    }

    fn finish(self) -> (usize, u64) {
        (self.number, self.steps)
    }
}

/// Notes the stages, and ends or interrupts one.
#[derive(Default)]
struct Notes<'n> {
    stages: Vec<Phase>,
    ends: Option<Phase>,
    interrupts: Option<(Phase, &'n AtomicBool)>,
}

impl Observer for Notes<'_> {
    fn begin(&mut self, stage: Phase) {
        self.stages.push(stage);
    }

    fn look(&mut self, stage: Phase, _: Duration) -> Option<Duration> {
        if let Some((_, cancel)) = self.interrupts.filter(|(at, _)| *at == stage) {
            cancel.store(true, Ordering::Relaxed);
        }
        (self.ends != Some(stage)).then_some(Duration::from_millis(1))
    }

    fn end(&mut self, stage: Phase) {
        self.stages.push(stage);
    }
}

type Driven = Result<Measured<(usize, u64)>, LabError>;

/// Three threads; number 1 has the fault.
fn run(
    (warm_up, timed): (Option<Duration>, Duration),
    left: u64,
    fault: Option<Fault>,
    cancel: &AtomicBool,
    notes: &mut Notes<'_>,
) -> Driven {
    let plan = Plan {
        warm_up,
        timed,
        cancel,
        panicked: &|number| LabError::System(format!("thread {number} panicked")),
    };
    let make = |number, left| {
        Ok(Counting {
            number,
            steps: 0,
            left,
            fault: fault.filter(|_| number == 1),
        })
    };
    drive(&plan, vec![left; 3], make, notes)
}

#[test]
fn threads_go_through_together_and_return_their_results_in_order() {
    let mut notes = Notes::default();
    let never = AtomicBool::new(false);
    let measured = run((Some(UNTIL_DONE), UNTIL_DONE), 7, None, &never, &mut notes);
    assert_eq!(measured.unwrap().whole().unwrap().done, [(0, 7), (1, 7), (2, 7)]);
    assert_eq!(notes.stages, [Phase::WarmUp, Phase::WarmUp, Phase::Timed, Phase::Timed]);
    let mut notes = Notes::default();
    let measured = run((None, UNTIL_DONE), 7, None, &never, &mut notes).unwrap();
    assert_eq!((measured.warmup_seconds, measured.done.len()), (0.0, 3));
    assert_eq!(notes.stages, [Phase::Timed, Phase::Timed]);
}

#[test]
fn a_stage_ends_by_its_length_or_by_its_observer() {
    let never = AtomicBool::new(false);
    for (timed, ends) in [(Duration::from_millis(5), None), (UNTIL_DONE, Some(Phase::Timed))] {
        let mut notes = Notes {
            ends,
            ..Notes::default()
        };
        let measured = run((None, timed), u64::MAX, None, &never, &mut notes).unwrap();
        assert!(!measured.interrupted && measured.done.iter().all(|(_, steps)| *steps > 0));
    }
}

#[test]
fn an_interrupt_calls_off_a_warm_up_and_keeps_what_was_measured() {
    for stage in [Phase::WarmUp, Phase::Timed] {
        let cancel = AtomicBool::new(false);
        let mut notes = Notes {
            ends: Some(Phase::WarmUp),
            interrupts: Some((stage, &cancel)),
            ..Notes::default()
        };
        let measured = run((Some(UNTIL_DONE), UNTIL_DONE), u64::MAX, None, &cancel, &mut notes);
        match measured {
            Ok(measured) => {
                assert!(stage == Phase::Timed && measured.interrupted && measured.done.len() == 3);
                assert!(matches!(measured.whole(), Err(LabError::Cancelled)));
            }
            Err(error) => assert!(stage == Phase::WarmUp && matches!(error, LabError::Cancelled)),
        }
    }
}

#[test]
fn a_failure_is_reported_and_a_panic_is_one() {
    let never = AtomicBool::new(false);
    for warm_up in [None, Some(UNTIL_DONE)] {
        for (fault, expected) in [(Fault::Error, "thread 1 failed"), (Fault::Panic, "thread 1 panicked")] {
            let failed = run(
                (warm_up, UNTIL_DONE),
                u64::MAX,
                Some(fault),
                &never,
                &mut Notes::default(),
            );
            assert_eq!(failed.err().unwrap().to_string(), expected);
        }
    }
}

#[test]
fn a_target_that_cannot_be_made_ends_the_run() {
    let plan = Plan {
        warm_up: Some(UNTIL_DONE),
        timed: UNTIL_DONE,
        cancel: &AtomicBool::new(false),
        panicked: &|_| LabError::Cancelled,
    };
    let make = |number, ()| match number {
        1 => Err(LabError::System("not made".into())),
        _ => Ok(Counting {
            number,
            steps: 0,
            left: u64::MAX,
            fault: None,
        }),
    };
    let failed = drive(&plan, vec![(); 3], make, &mut Notes::default());
    assert_eq!(failed.err().unwrap().to_string(), "not made");
}
