//! Exploration of thread schedules by shuttle's random and PCT schedulers (Burckhardt et al., ASPLOS 2010).

/// Runs the scenario under `SHUTTLE_ITERATIONS` schedules of each scheduler (default: 300), or under the schedule in
/// `SHUTTLE_SCHEDULE`: the output of a failure, without its line breaks.
pub fn explore(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(schedule) = std::env::var("SHUTTLE_SCHEDULE") {
        return shuttle::replay(scenario, &schedule);
    }
    let iterations = std::env::var("SHUTTLE_ITERATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300);
    shuttle::check_random(scenario.clone(), iterations);
    shuttle::check_pct(scenario, iterations, 3);
}
