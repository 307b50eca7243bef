//! The way home: which gateway is dialled when, for as long as the supervisor runs.

use std::sync::Arc;
use std::time::Duration;

use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::redial::{Bounds, Ended, Next, Redial};
use tidegate_transport::Shards;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::session::{self, Gateway, Over};
use crate::{Phase, StopReason};

/// Keeps a session at one of the gateways.
#[derive(Debug)]
pub(crate) struct Home {
    context: Arc<Context>,
    shards: Arc<Shards>,
    gateways: Arc<[Gateway]>,
    schedule: Schedule,
    complaint: Complaint,
}

impl Home {
    pub(crate) fn new(
        context: Arc<Context>,
        shards: Arc<Shards>,
        gateways: Arc<[Gateway]>,
        redial: Bounds,
    ) -> Self {
        let scale = context.config.time_scale.0;
        let schedule = Schedule::new(gateways.len(), redial, scale);
        Self {
            context,
            shards,
            gateways,
            schedule,
            complaint: Complaint::default(),
        }
    }

    /// Opens a session after another until told to stop, or until there is no reason for the next.
    ///
    /// # Errors
    ///
    /// When another instance took over.
    pub(crate) async fn run(mut self, stop: &CancellationToken) -> Result<(), StopReason> {
        let mut address = 0;
        loop {
            let gateway = &self.gateways[address];
            let over = session::serve(&self.context, &self.shards, gateway, stop).await;
            let Over::Ended { how, stood } = over else {
                return Ok(());
            };
            match (self.schedule.next(&how, stood), how) {
                (
                    Next::Dial {
                        address: next,
                        after,
                    },
                    Ended::With(end),
                ) => {
                    self.complaint.make(gateway, &end, stood.is_some(), after);
                    address = next;
                    self.context.phase.send_replace(Phase::Dialling);
                    let pause = tokio::time::sleep(after);
                    if stop.run_until_cancelled(pause).await.is_none() {
                        return Ok(());
                    }
                }
                (Next::GiveWay, Ended::With(end)) => return Err(self.superseded(end)),
                (Next::Stop | Next::Dial { .. } | Next::GiveWay, _) => {
                    tracing::info!(gateway = gateway.url, "the sandbox was removed");
                    return Ok(());
                }
            }
        }
    }

    fn superseded(&self, end: End) -> StopReason {
        StopReason::Superseded {
            sandbox: self.context.config.sandbox.clone(),
            instance: self.context.instance.clone(),
            end: Box::new(end),
        }
    }
}

/// The schedule in the operator's time: tests let it pass faster.
#[derive(Debug)]
struct Schedule {
    redial: Redial,
    scale: f64,
    born: Instant,
}

impl Schedule {
    fn new(addresses: usize, bounds: Bounds, scale: f64) -> Self {
        Self {
            redial: Redial::new(addresses, bounds),
            scale,
            born: Instant::now(),
        }
    }

    fn next(&mut self, how: &Ended, stood: Option<Duration>) -> Next {
        let now = self.born + self.born.elapsed().mul_f64(self.scale);
        let stood = stood.map(|stood| stood.mul_f64(self.scale));
        match self
            .redial
            .ended(how, stood, rand::random(), now.into_std())
        {
            Next::Dial { address, after } => Next::Dial {
                address,
                after: after.div_f64(self.scale),
            },
            Next::Stop => Next::Stop,
            Next::GiveWay => Next::GiveWay,
        }
    }
}

/// Says each cause of an outage once where people look, and every time where they look for more.
#[derive(Debug, Default)]
struct Complaint {
    last: Option<String>,
}

impl Complaint {
    fn make(&mut self, gateway: &Gateway, end: &End, stood: bool, after: Duration) {
        if stood {
            self.last = None;
        }
        let gateway = gateway.url.as_str();
        let cause = format!("{gateway} {end}");
        if self.last.as_ref() == Some(&cause) {
            tracing::debug!(gateway, %end, remedy = end.remedy, ?after, "no session");
        } else if stood {
            tracing::warn!(gateway, %end, remedy = end.remedy, ?after, "session ended, dialling again");
        } else {
            tracing::warn!(gateway, %end, remedy = end.remedy, ?after, "no session, trying again");
        }
        self.last = Some(cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_lifecycle::cause::{Origin, Reason};

    #[test]
    fn the_schedule_runs_in_scaled_time() {
        let mut schedule = Schedule::new(1, Bounds::default(), 100.0);
        let refused = End::new(Origin::Gateway, Reason::CredentialInvalid, "");
        let Next::Dial { after, .. } = schedule.next(&Ended::With(refused), None) else {
            panic!("a refusal is retried");
        };
        let slow = Duration::from_millis(300)..Duration::from_millis(331);
        assert!(slow.contains(&after), "{after:?}");
    }
}
