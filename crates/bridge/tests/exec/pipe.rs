//! What a command's own end hears first, and who is woken by that.

use bytes::Bytes;
use tidegate_bridge::{End as _, ExecPipe, PipeReceiver, PipeSender, exec_pipe};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;
use tokio::task::JoinSet;

use crate::stage::{Stage, bounded, command};
use crate::{LEGACY, OURS, stdin};

fn pipe() -> (ExecPipe, PipeSender, PipeReceiver) {
    let gone = End::new(Origin::Supervisor, Reason::InternalError, "dropped");
    exec_pipe(gone, &Buffered::new())
}

async fn urgent(receiver: &mut PipeReceiver) -> Item {
    bounded(std::future::poll_fn(|cx| receiver.poll_urgent(cx))).await
}

#[tokio::test]
async fn a_signal_overtakes_stdin_that_nobody_reads() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.run(command(false)).await;
    let said = [
        stdin(b"one"),
        Item::Signal(2),
        stdin(b"two"),
        Item::Signal(15),
    ];
    for item in said {
        caller.sender.send(item).await.unwrap();
    }
    assert_eq!(urgent(&mut runner.receiver).await, Item::Signal(2));
    assert_eq!(urgent(&mut runner.receiver).await, Item::Signal(15));
    assert_eq!(runner.hears().await, stdin(b"one"));
    assert_eq!(runner.hears().await, stdin(b"two"));
}

#[tokio::test]
async fn an_interrupt_that_is_typed_keeps_its_place() {
    let mut stage = Stage::new(LEGACY).await;
    let (mut caller, mut runner) = stage.run(command(true)).await;
    for item in [stdin(b"one"), Item::Signal(2)] {
        caller.sender.send(item).await.unwrap();
    }
    assert_eq!(runner.hears().await, stdin(b"one"));
    assert_eq!(runner.hears().await, stdin(b"\x03"));
}

#[tokio::test]
async fn a_signal_that_overtook_leaves_room_for_the_next() {
    let (mut end, _sender, mut receiver) = pipe();
    end.queue(Item::Signal(15));
    // A task of its own is polled again only when it is woken.
    let mut room = JoinSet::new();
    room.spawn(async move { std::future::poll_fn(|cx| end.poll_room(cx)).await });
    tokio::task::yield_now().await;
    assert!(room.try_join_next().is_none());
    assert_eq!(urgent(&mut receiver).await, Item::Signal(15));
    bounded(room.join_next()).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_overtook_is_not_heard_again() {
    let (mut end, _sender, mut receiver) = pipe();
    let data = Bytes::from_static(b"input");
    for item in [Item::Stdin(data.clone()), Item::Signal(1)] {
        end.queue(item);
    }
    assert_eq!(urgent(&mut receiver).await, Item::Signal(1));
    assert_eq!(bounded(receiver.recv()).await, Ok(Some(Item::Stdin(data))));
    assert_eq!((end.taken(), end.waiting()), (5, 0));
}
