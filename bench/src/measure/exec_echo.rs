//! One keystroke, and its echo.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tidegate_client::exec::{Command, TerminalSize};

use crate::bounded::{LONG, within};
use crate::chain::Chain;
use crate::load::{Order, READY, Running, command, round_trips_on};
use crate::options::Plan;
use crate::results::{Far, Figure, Sample};
use crate::stats::percentile;

/// Ends `cat`: a terminal that is raw knows no key for it.
const TERM: i32 = 15;

/// Many round trips to the target over a stream, then to `cat` on a terminal.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let sandbox = chain.sandbox()?;
    let stream = sandbox.stream(Order::Echo).await?;
    let to_target = round_trips_on(stream, plan.round_trips).await?;

    let mut cat = sandbox.start(cat()).await?;
    cat.ready().await?;
    let keys = keystrokes(&mut cat, plan.round_trips);
    let to_command = within("keystrokes", LONG, keys).await?;
    cat.signal(TERM);
    let exit = cat.finish().await?;
    ensure!(
        exit.signal == Some(TERM),
        "cat ended in another way: {exit:?}"
    );

    let mut sample = Sample::new();
    for (far, times) in [(Far::Target, to_target), (Far::Command, to_command)] {
        let share = |share| percentile(&times, share).context("no round trips");
        sample.push((Figure::EchoMedian(far), share(0.5)?));
        sample.push((Figure::EchoTail(far), share(0.99)?));
    }
    Ok(sample)
}

/// On a raw terminal each byte comes back once, and from `cat`: the kernel adds no echo of its own.
fn cat() -> Command {
    let script = format!("stty raw -echo && printf {} && exec cat", char::from(READY));
    Command {
        terminal: Some(TerminalSize::default()),
        ..command(&["/bin/sh", "-c", &script])
    }
}

/// As `round_trips` over a stream: a tenth as many before them do not count.
async fn keystrokes(cat: &mut Running, count: usize) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(count);
    for trip in 0..count + count / 10 {
        let sent = trip as u8;
        let start = Instant::now();
        cat.send(sent).await?;
        let got = cat.byte().await?;
        if trip >= count / 10 {
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        ensure!(got == sent, "byte {sent} came back as {got}");
    }
    Ok(times)
}
