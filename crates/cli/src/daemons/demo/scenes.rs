//! What is shown. Each scene plays both ends of a connection and says what they saw.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::ends::{Saw, is_reset, pattern, read_out, reset, write_on};
use super::stage::Stage;

type Played<'a> = Pin<Box<dyn Future<Output = io::Result<String>> + 'a>>;

/// Something to see.
pub(super) struct Scene {
    pub(super) what: &'static str,
    pub(super) expected: &'static str,
    /// Plays it, and says what was observed.
    pub(super) play: for<'a> fn(&'a mut Stage) -> Played<'a>,
}

const MEGABYTE: usize = 1024 * 1024;
const TAIL: usize = 100_000;

/// All of it, in this order: the last ones need the gateway that was killed.
pub(super) const SCENES: &[Scene] = &[
    Scene {
        what: "1 MiB there and back",
        expected: "1048576 bytes, 0 changed",
        play: |stage| Box::pin(echo(stage)),
    },
    Scene {
        what: "the client ends first",
        expected: "target: EOF, client: answer",
        play: |stage| Box::pin(client_first(stage)),
    },
    Scene {
        what: "the target ends first",
        expected: "client: EOF, target: 100 kB",
        play: |stage| Box::pin(target_first(stage)),
    },
    Scene {
        what: "the target resets",
        expected: "client: reset",
        play: |stage| Box::pin(target_resets(stage)),
    },
    Scene {
        what: "the client resets",
        expected: "target: reset",
        play: |stage| Box::pin(client_resets(stage)),
    },
    Scene {
        what: "nothing listens there",
        expected: "client: 0 bytes, reset",
        play: |stage| Box::pin(refused(stage)),
    },
    Scene {
        what: "gateway killed mid-stream",
        expected: "client: reset, target: reset",
        play: |stage| Box::pin(gateway_killed(stage)),
    },
    Scene {
        what: "gateway back, try again",
        expected: "1048576 bytes, 0 changed",
        play: |stage| Box::pin(gateway_back(stage)),
    },
];

async fn echo(stage: &Stage) -> io::Result<String> {
    let (client, mut target) = stage.connect().await?;
    let sent = pattern(MEGABYTE);
    let (mut from_target, mut to_target) = client.into_split();
    let mut received = vec![0; sent.len()];
    let echoing = async {
        let (mut reader, mut writer) = target.split();
        tokio::io::copy(&mut reader, &mut writer).await
    };
    let asking = async {
        let writing = async {
            to_target.write_all(&sent).await?;
            to_target.shutdown().await
        };
        tokio::try_join!(writing, from_target.read_exact(&mut received)).map(|_| ())
    };
    tokio::try_join!(echoing, asking)?;
    let changed = sent.iter().zip(&received).filter(|(a, b)| a != b).count();
    Ok(format!("{} bytes, {changed} changed", received.len()))
}

async fn client_first(stage: &Stage) -> io::Result<String> {
    let (mut client, mut target) = stage.connect().await?;
    client.write_all(&pattern(TAIL)).await?;
    client.shutdown().await?;
    let (data, saw) = read_out(&mut target).await?;
    let answer = format!("{} bytes", data.len());
    target.write_all(answer.as_bytes()).await?;
    target.shutdown().await?;
    let (told, _) = read_out(&mut client).await?;
    let told = if told == format!("{TAIL} bytes").as_bytes() {
        "answer".to_owned()
    } else {
        format!("{:?}", String::from_utf8_lossy(&told))
    };
    Ok(format!("target: {}, client: {told}", saw.as_str()))
}

async fn target_first(stage: &Stage) -> io::Result<String> {
    let (mut client, mut target) = stage.connect().await?;
    target.write_all(b"220 ready").await?;
    target.shutdown().await?;
    let (_, saw) = read_out(&mut client).await?;
    client.write_all(&pattern(TAIL)).await?;
    client.shutdown().await?;
    let (data, _) = read_out(&mut target).await?;
    let all = if data.len() == TAIL { "100 kB" } else { "less" };
    Ok(format!("client: {}, target: {all}", saw.as_str()))
}

async fn target_resets(stage: &Stage) -> io::Result<String> {
    let (mut client, target) = stage.connect().await?;
    reset(target)?;
    let (_, saw) = read_out(&mut client).await?;
    Ok(format!("client: {}", saw.as_str()))
}

async fn client_resets(stage: &Stage) -> io::Result<String> {
    let (client, mut target) = stage.connect().await?;
    reset(client)?;
    let (_, saw) = read_out(&mut target).await?;
    Ok(format!("target: {}", saw.as_str()))
}

async fn refused(stage: &Stage) -> io::Result<String> {
    let (data, saw) = match stage.connect_to_nothing().await {
        Ok(mut client) => read_out(&mut client).await?,
        // So fast that it was never open.
        Err(error) if is_reset(&error) => (Vec::new(), Saw::Reset),
        Err(error) => return Err(error),
    };
    Ok(format!("client: {} bytes, {}", data.len(), saw.as_str()))
}

async fn gateway_killed(stage: &mut Stage) -> io::Result<String> {
    let (mut client, mut target) = stage.connect().await?;
    let killing = async {
        let mut some = vec![0; MEGABYTE];
        client.read_exact(&mut some).await?;
        stage.kill_gateway().await?;
        read_out(&mut client).await
    };
    let ((_, client), target) = tokio::try_join!(killing, write_on(&mut target))?;
    Ok(format!(
        "client: {}, target: {}",
        client.as_str(),
        target.as_str()
    ))
}

async fn gateway_back(stage: &mut Stage) -> io::Result<String> {
    stage.start_gateway().await?;
    echo(stage).await
}
