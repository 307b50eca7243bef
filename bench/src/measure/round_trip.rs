//! One byte there and back.

use anyhow::{Context, Result};

use crate::chain::Chain;
use crate::load::round_trips;
use crate::options::Plan;
use crate::results::{Figure, Sample};
use crate::stats::percentile;

/// Many round trips over one stream.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let times = round_trips(chain.entry(0), plan.round_trips).await?;
    let share = |share| percentile(&times, share).context("no round trips");
    Ok(vec![
        (Figure::RoundTripMedian, share(0.5)?),
        (Figure::RoundTripTail, share(0.99)?),
    ])
}
