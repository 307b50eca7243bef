//! What a client that does not read costs its neighbours.

use anyhow::Result;

use super::throughput::single_down;
use crate::chain::Chain;
use crate::load::Stalled;
use crate::options::Plan;
use crate::results::{Figure, Sample};

/// One stream alone, then beside stalled ones.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let alone = single_down(chain, plan.sample_bytes).await?;
    let stalled = Stalled::open(chain.entry(0), chain.target, plan.stalled_streams).await?;
    let beside = single_down(chain, plan.sample_bytes).await?;
    drop(stalled);
    Ok(vec![
        (Figure::BulkAlone, alone),
        (Figure::BulkBesideStalled, beside),
    ])
}
