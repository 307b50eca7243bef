//! Every cause arrives as what it is.

use std::net::SocketAddr;

use h2::Reason;
use http::HeaderMap;
use tidegate_e2e::raw::{self, Client, Forward, init};
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::messages::{ForwardFrame, path};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait;
use tonic::Code;

use crate::{ENDED, MOMENT, NONE_YET};

every_topology! {
    ss_24_each_cause_has_a_code_and_a_reason_of_its_own,
}

async fn ss_24_each_cause_has_a_code_and_a_reason_of_its_own(topology: Topology) {
    let options = Options::new()
        .gateway("drain_deadline", "0s")
        .gateway("max_streams_per_sandbox", 2)
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let (resetter, echo) = (Target::resetter(10).unwrap(), Target::echo().unwrap());
    let nobody = Target::echo().unwrap().address();
    let mut met = Vec::new();

    cancelled(&world, &echo).await; // by ourselves, so nobody is left to be told
    met.push((
        late(&world, &echo).await,
        Code::DeadlineExceeded,
        "OPERATION_TIMEOUT",
        "gateway",
    ));
    let refused = Call::begin(&world, nobody).await.outcome().await;
    met.push((refused, Code::Unavailable, "TARGET_REFUSED", "target"));
    met.push((
        reset(&world, &resetter).await,
        Code::Unavailable,
        "TARGET_RESET",
        "target",
    ));
    met.push((
        closed(&world, &echo).await,
        Code::Cancelled,
        "OPERATOR_CLOSED",
        "gateway",
    ));
    met.push((
        beyond(&world, &echo).await,
        Code::ResourceExhausted,
        "LIMIT_STREAMS",
        "gateway",
    ));

    let mut call = Call::open(&world, &echo).await;
    world.kill_supervisor().await;
    met.push((
        call.outcome().await,
        Code::Unavailable,
        "SUPERVISOR_LOST",
        "supervisor",
    ));
    world.start_supervisor().await;

    let mut call = Call::open(&world, &echo).await;
    world.gateway().process().terminate();
    met.push((
        call.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
        "gateway",
    ));
    assert!(world.gateway().process().exit(MOMENT).await.success());
    world.restart_gateway().await;
    world.until_sessions(2).await;

    let mut stream = world.stream(echo.address()).await;
    world.kill_gateway().await;
    assert_eq!(
        stream.recv().await.unwrap_err().reason.as_str(),
        "TRANSPORT_LOST"
    );

    for (outcome, code, reason, origin) in &met {
        let seen = (outcome.code, &*outcome.reason, &*outcome.origin);
        assert_eq!(seen, (*code, *reason, *origin), "{outcome:?}");
    }
    drop((stream, call));
    world.restart_gateway().await;
    world.until_sessions(3).await;
    world.rebase().await;
    world.settle().await;
}

/// A call, and the connection that carries it.
struct Call {
    forward: Forward,
    _client: Client,
}

impl Call {
    async fn begin(world: &World, target: SocketAddr) -> Self {
        let client = Client::connect(world).await;
        let forward = client.forward(target, &raw::STREAM).await;
        Self {
            forward,
            _client: client,
        }
    }

    async fn open(world: &World, target: &Target) -> Self {
        let mut call = Self::begin(world, target.address()).await;
        call.forward.opened().await;
        call
    }

    async fn outcome(&mut self) -> Outcome {
        self.forward.outcome().await.unwrap()
    }
}

async fn cancelled(world: &World, echo: &Target) {
    let mut call = Call::open(world, echo).await;
    call.forward.reset(Reason::CANCEL);
    let ended = "tidegate_streams_ended_total{kind=\"forward\",reason=\"CLIENT_CANCELLED\",\
                 origin=\"client\"}";
    let counted = wait::until_async(MOMENT, async || {
        world.gateway().metrics().others.get(ended) == Some(&1.0)
    });
    counted.await.unwrap();
}

async fn late(world: &World, echo: &Target) -> Outcome {
    let client = Client::connect(world).await;
    let mut limit = HeaderMap::new();
    limit.insert("grpc-timeout", "300m".parse().unwrap());
    let call = client.raw().open(path::FORWARD_TCP, limit).await.unwrap();
    let mut forward = Forward::from(call);
    let init = ForwardFrame::init(init(echo.address(), &raw::STREAM));
    forward.send(init).await.unwrap();
    forward.opened().await;
    forward.outcome().await.unwrap()
}

async fn reset(world: &World, resetter: &Target) -> Outcome {
    let mut call = Call::open(world, resetter).await;
    resetter.next().await.cue();
    call.outcome().await
}

async fn closed(world: &World, echo: &Target) -> Outcome {
    let mut call = Call::open(world, echo).await;
    let client = world.client();
    let streams = client.streams(None).await.unwrap();
    assert_eq!(streams.len(), 1, "{streams:?}");
    client.close_stream(&streams[0].id).await.unwrap();
    call.outcome().await
}

async fn beyond(world: &World, echo: &Target) -> Outcome {
    let _two = (Call::open(world, echo).await, Call::open(world, echo).await);
    Call::begin(world, echo.address()).await.outcome().await
}
