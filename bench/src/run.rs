//! One run: who takes part, in which order, and what to do when one of them fails.

use std::process::ExitCode;

use anyhow::Result;

use crate::chain::Chain;
use crate::goal::{self, Verdict};
use crate::measure::Measure;
use crate::options::{Options, Plan};
use crate::programs::Programs;
use crate::report::{self, progress};
use crate::results::Results;
use crate::subject::Subject;

/// Measures everything that was asked for and prints the report. The code is 1 if something could
/// not be measured, or with `--strict` if a goal was missed.
pub(crate) async fn run(options: &Options) -> Result<ExitCode> {
    let programs = Programs::locate(options.bin_dir.as_deref())?;
    let mut run = Run {
        options,
        plan: options.plan(),
        programs,
        results: Results::default(),
    };
    run.compared().await;
    run.fresh().await;
    run.threads().await;
    report::print(options, &run.plan, &run.results)?;
    Ok(run.exit_code())
}

struct Run<'a> {
    options: &'a Options,
    plan: Plan,
    programs: Programs,
    results: Results,
}

impl Run<'_> {
    /// The measures that compare everybody, all contenders up at the same time.
    async fn compared(&mut self) {
        let measures = self.wanted(&Measure::COMPARED);
        let concerned = |subject| measures.iter().any(|measure| measure.concerns(subject));
        let subjects: Vec<_> = Subject::ALL
            .into_iter()
            .filter(|one| concerned(*one))
            .collect();
        let chains = self.start_all(&subjects).await;
        for measure in measures {
            self.interleave(measure, &chains).await;
        }
    }

    /// The measures that take one sample of processes nothing has happened to.
    async fn fresh(&mut self) {
        for measure in self.wanted(&Measure::FRESH) {
            for subject in Subject::ALL
                .into_iter()
                .filter(|one| measure.concerns(*one))
            {
                for chain in self.start_all(&[subject]).await {
                    progress(format_args!("{}: {subject}", measure.name()));
                    self.sample(measure, &chain, true).await;
                }
            }
        }
    }

    /// The gateway's threads, compared with each other alone.
    async fn threads(&mut self) {
        for measure in self.wanted(&[Measure::Threads]) {
            let chains = self
                .start_all(&[Subject::OneThread, Subject::TwoThreads])
                .await;
            self.interleave(measure, &chains).await;
        }
    }

    fn wanted(&self, measures: &[Measure]) -> Vec<Measure> {
        measures
            .iter()
            .copied()
            .filter(|measure| self.options.wants(*measure))
            .collect()
    }

    async fn start_all(&mut self, subjects: &[Subject]) -> Vec<Chain> {
        let mut chains = Vec::new();
        for subject in subjects
            .iter()
            .filter(|one| self.options.wants_subject(**one))
        {
            chains.extend(self.start(*subject).await);
        }
        chains
    }

    /// A contender whose programs are missing is absent; one that does not start has failed.
    async fn start(&mut self, subject: Subject) -> Option<Chain> {
        if let Err(missing) = self.programs.check(subject) {
            self.results.leave_out(subject, missing.to_string());
            return None;
        }
        progress(format_args!("starting {subject}"));
        match Chain::start(subject, &self.programs).await {
            Ok(chain) => Some(chain),
            Err(error) => {
                self.results.failures.push(format!("{subject}: {error:#}"));
                None
            }
        }
    }

    /// A B C A B C …: what disturbs the machine for seconds disturbs all of a round.
    async fn interleave(&mut self, measure: Measure, chains: &[Chain]) {
        let concerned = chains
            .iter()
            .filter(|chain| measure.concerns(chain.subject));
        let mut taking_part: Vec<&Chain> = concerned.collect();
        for round in 0..self.plan.warm_up + self.plan.rounds {
            let counts = round >= self.plan.warm_up;
            progress(format_args!(
                "{}: {}",
                measure.name(),
                self.round_name(round)
            ));
            let mut healthy = Vec::with_capacity(taking_part.len());
            for chain in taking_part {
                if self.sample(measure, chain, counts).await {
                    healthy.push(chain);
                }
            }
            taking_part = healthy;
        }
    }

    /// Takes one sample; false if that failed.
    async fn sample(&mut self, measure: Measure, chain: &Chain, counts: bool) -> bool {
        match measure.sample(chain, &self.plan).await {
            Ok(sample) if counts => self.results.record(chain.subject, &sample),
            Ok(_) => {}
            Err(error) => {
                let (name, subject) = (measure.name(), chain.subject);
                let words = chain.last_words();
                self.results
                    .failures
                    .push(format!("{name}, {subject}: {error:#}\n{words}"));
                return false;
            }
        }
        true
    }

    fn round_name(&self, round: usize) -> String {
        match round.checked_sub(self.plan.warm_up) {
            None => "warm-up".to_owned(),
            Some(round) => format!("round {} of {}", round + 1, self.plan.rounds),
        }
    }

    fn exit_code(&self) -> ExitCode {
        let missed = |goal: &goal::Goal| matches!(goal.judge(&self.results), Verdict::Missed(_));
        let strict = self.options.strict && goal::all().iter().any(missed);
        ExitCode::from(u8::from(strict || !self.results.failures.is_empty()))
    }
}
