//! `tidegate demo`: real processes on free ports, and what happens at both ends of a connection
//! between them.
//!
//! | module | what it does |
//! |---|---|
//! | `stage` | starts the processes, and kills them |
//! | `scenes` | what is shown, and what should come of it |
//! | `ends` | says in a few words what one end of a connection saw |

mod ends;
mod scenes;
mod stage;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::scenes::{SCENES, Scene};
use self::stage::Stage;
use crate::failure::{Failure, Trouble};
use crate::output::{Console, Style};
use crate::signals;

/// How long a scene may take.
const PATIENCE: Duration = Duration::from_secs(6);

/// Show what is promised, with a gateway, a supervisor and a forward on free ports
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    tidegate demo && echo everything happened as it should\n\n\
    It takes a few seconds and leaves nothing behind. Exits with 1 if anything differs.")]
pub(crate) struct Args {}

pub(super) async fn run(_: &Args, console: &Console) -> Result<(), Failure> {
    tokio::select! {
        played = play(console) => played,
        stopped = signals::told_to_stop() => Err(stopped),
    }
}

async fn play(console: &Console) -> Result<(), Failure> {
    let mut stage = Stage::set().await?;
    if !console.is_json() {
        console.line(head(&stage, console.style()))?;
    }
    let mut shown = Vec::new();
    for scene in SCENES {
        let showing = show(scene, &mut stage).await;
        if !console.is_json() {
            console.line(showing.line(scene, console.style()))?;
        }
        shown.push(showing);
    }
    stage.clear().await;
    if console.is_json() {
        let all = SCENES.iter().zip(&shown);
        let all = all.map(|(scene, showing)| showing.json(scene));
        console.json(&all.collect::<Vec<_>>())?;
    }
    conclude(&shown, console)
}

/// What came of a scene.
struct Showing {
    observed: String,
    right: bool,
    took: Duration,
}

async fn show(scene: &Scene, stage: &mut Stage) -> Showing {
    let begun = Instant::now();
    let played = tokio::time::timeout(PATIENCE, (scene.play)(stage)).await;
    let observed = match played {
        Ok(Ok(observed)) => observed,
        Ok(Err(error)) => format!("it failed: {error}"),
        Err(_) => format!("nothing for {PATIENCE:?}"),
    };
    Showing {
        right: observed == scene.expected,
        observed,
        took: begun.elapsed(),
    }
}

impl Showing {
    fn line(&self, scene: &Scene, style: Style) -> String {
        let widths = widths();
        let (mark, paint): (_, fn(Style, &str) -> String) = if self.right {
            ("ok", Style::green)
        } else {
            ("DIFFERS", Style::red)
        };
        let observed = format!("{:<1$}", self.observed, widths.1);
        let took = format!("{:>4} ms", self.took.as_millis());
        format!(
            "{:<3$}  {:<4$}  {}",
            scene.what,
            scene.expected,
            format_args!(
                "{}  {}  {}",
                paint(style, &observed),
                style.dim(&took),
                paint(style, mark)
            ),
            widths.0,
            widths.1,
        )
    }

    fn json(&self, scene: &Scene) -> Value {
        json!({
            "what": scene.what,
            "expected": scene.expected,
            "observed": self.observed,
            "ok": self.right,
            "durationMs": self.took.as_millis() as u64,
        })
    }
}

/// The widths of the columns: what is shown, and what is expected of it.
fn widths() -> (usize, usize) {
    let widest = |text: fn(&Scene) -> &str| {
        let all = SCENES.iter().map(|scene| text(scene).chars().count());
        all.max().unwrap_or(0)
    };
    (widest(|scene| scene.what), widest(|scene| scene.expected))
}

fn head(stage: &Stage, style: Style) -> String {
    let widths = widths();
    let columns = format!(
        "{:<2$}  {:<3$}  OBSERVED",
        "WHAT", "EXPECTED", widths.0, widths.1
    );
    format!("{}\n\n{}\n", stage.picture(), style.bold(&columns))
        .trim_end()
        .to_owned()
}

fn conclude(shown: &[Showing], console: &Console) -> Result<(), Failure> {
    let wrong = shown.iter().filter(|showing| !showing.right).count();
    if wrong > 0 {
        let sentence = format!("{wrong} of {} differ from what is promised", shown.len());
        let remedy = "This is a bug: please report it with the lines above.";
        return Err(Failure::local(Trouble::Promise, sentence, remedy));
    }
    if console.is_json() {
        return Ok(());
    }
    let style = console.style();
    console.line(format_args!(
        "\n{} Next: `tidegate dev`, and `tidegate port-forward --help`.",
        style.green("Everything happened as it should.")
    ))
}
