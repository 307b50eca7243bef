//! What every engine promises, asked of the one in memory.

use std::time::Duration;

use tidegate_directory::{
    Claim, Directory, Event, Home, Incarnation, Knowledge, Memory, MemorySeat, MemorySettings,
    Replica,
};
use tidegate_lifecycle::id::{GatewayId, InstanceId, SandboxName, SessionId};
use tidegate_lifecycle::ownership::Standing;

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).expect("a name")
}

fn claim(sandbox: &str, session: &str) -> Claim {
    Claim {
        sandbox: name(sandbox),
        session: SessionId::new(session),
        instance: InstanceId::new("i"),
        homes: 1,
        replaces: None,
    }
}

fn memory(grace: Duration) -> Memory {
    Memory::new(MemorySettings {
        grace,
        ..MemorySettings::default()
    })
}

fn seat(memory: &Memory, gateway: &str) -> MemorySeat {
    memory.seat(Replica {
        gateway: GatewayId::new(gateway),
        incarnation: Incarnation::new(format!("{gateway}, first")),
        peer_url: Some(format!("https://{gateway}")),
        public_url: None,
    })
}

fn sure() -> MemorySeat {
    seat(&memory(Duration::ZERO), "gw0")
}

async fn homes(seat: &MemorySeat) -> Vec<(String, Standing)> {
    let homes = seat.homes(&name("a")).await.expect("it is there");
    let told = |home: Home| (home.gateway.to_string(), home.standing);
    homes.into_iter().map(told).collect()
}

#[tokio::test]
async fn the_newest_session_wins_and_a_late_goodbye_changes_nothing() {
    let directory = sure();
    let first = directory.claim(claim("a", "s1")).await.unwrap();
    let second = directory.claim(claim("a", "s2")).await.unwrap();
    assert!(first.ended.is_empty() && second.generation > first.generation);
    assert_eq!(second.ended[0].session, SessionId::new("s1"));

    let late = directory.release(&name("a"), &SessionId::new("s1")).await;
    assert!(!late.unwrap());
    let homes = directory.homes(&name("a")).await.unwrap();
    assert_eq!(
        homes
            .iter()
            .map(|home| home.session.as_str())
            .collect::<Vec<_>>(),
        ["s2"]
    );
    let released = directory.release(&name("a"), &SessionId::new("s2")).await;
    assert!(released.unwrap());
    assert!(directory.homes(&name("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_name_is_known_once_declared_or_seen_and_deleted_until_it_comes_back() {
    let directory = sure();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unknown));
    directory.declare(&name("a")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    assert!(!directory.entry(&name("a")).await.unwrap().unwrap().seen);

    assert!(directory.forget(&name("a")).await.unwrap().is_some());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Deleted));
    assert!(directory.list().await.unwrap().is_empty());
    assert!(directory.forget(&name("never")).await.unwrap().is_none());
    assert_eq!(
        directory.known(&name("never")).await,
        Ok(Knowledge::Unknown)
    );

    directory.claim(claim("a", "s1")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    let listed = directory.list().await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].homes.len(), listed[0].seen),
        (1, 1, true)
    );
}

#[tokio::test]
async fn a_young_directory_is_unsure_of_names_but_not_of_deletions() {
    let directory = seat(&Memory::new(MemorySettings::default()), "gw0");
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unsure));
    assert!(directory.forget(&name("a")).await.unwrap().is_none());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Deleted));
}

#[tokio::test]
async fn a_name_without_session_is_forgotten_after_its_retention() {
    let settings = MemorySettings {
        retention: Duration::ZERO,
        grace: Duration::ZERO,
    };
    let directory = seat(&Memory::new(settings), "gw0");
    directory.claim(claim("a", "s1")).await.unwrap();
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Known));
    let released = directory.release(&name("a"), &SessionId::new("s1")).await;
    assert!(released.unwrap());
    assert_eq!(directory.known(&name("a")).await, Ok(Knowledge::Unknown));
}

#[tokio::test]
async fn a_watch_notices_what_happened_after_it_began() {
    let directory = sure();
    let mut watch = directory.watch(&name("a")).await.unwrap();
    directory.claim(claim("a", "s1")).await.unwrap();
    watch.changed().await;
    directory.forget(&name("a")).await.unwrap();
    watch.changed().await;
}

#[tokio::test]
async fn a_supervisor_has_as_many_homes_as_it_wants_and_moves_without_a_gap() {
    let memory = memory(Duration::ZERO);
    let [a, b, c] = ["a", "b", "c"].map(|gateway| seat(&memory, gateway));
    let two = |session| Claim {
        homes: 2,
        ..claim("a", session)
    };
    a.claim(two("s1")).await.unwrap();
    b.claim(two("s2")).await.unwrap();
    let live = |gateway: &str| (gateway.to_owned(), Standing::Live);
    assert_eq!(homes(&c).await, [live("b"), live("a")]);

    let moves = Claim {
        replaces: Some(SessionId::new("s2")),
        ..two("s3")
    };
    let claimed = c.claim(moves).await.unwrap();
    assert_eq!(claimed.drained[0].session, SessionId::new("s2"));
    let drained = ("b".to_owned(), Standing::DrainOnly);
    assert_eq!(homes(&a).await, [live("c"), live("a"), drained]);
    let session = SessionId::new("s2");
    assert_eq!(b.next_event().await, Event::Drained { session });
}

#[tokio::test]
async fn another_process_ends_the_sessions_of_the_one_before_wherever_they_are() {
    let memory = memory(Duration::ZERO);
    let [a, b] = ["a", "b"].map(|gateway| seat(&memory, gateway));
    a.claim(claim("a", "s1")).await.unwrap();
    let newer = Claim {
        instance: InstanceId::new("another"),
        ..claim("a", "s2")
    };
    b.claim(newer).await.unwrap();
    let ended = Event::Ended {
        session: SessionId::new("s1"),
        by: InstanceId::new("another"),
    };
    assert_eq!(a.next_event().await, ended);
    assert_eq!(homes(&a).await, [("b".to_owned(), Standing::Live)]);

    // Its own end comes late, and touches nobody.
    assert!(!a.release(&name("a"), &SessionId::new("s1")).await.unwrap());
    assert_eq!(homes(&a).await, [("b".to_owned(), Standing::Live)]);

    a.forget(&name("a")).await.unwrap();
    let session = SessionId::new("s2");
    assert_eq!(b.next_event().await, Event::Forgotten { session });
}

#[tokio::test]
async fn a_gateway_that_left_is_the_last_resort() {
    let memory = memory(Duration::ZERO);
    let [a, b] = ["a", "b"].map(|gateway| seat(&memory, gateway));
    a.claim(claim("a", "s1")).await.unwrap();
    a.leave().await.unwrap();
    assert_eq!(homes(&b).await, [("a".to_owned(), Standing::Lapsed)]);
    b.claim(claim("a", "s2")).await.unwrap();
    let both = [
        ("b".to_owned(), Standing::Live),
        ("a".to_owned(), Standing::Lapsed),
    ];
    assert_eq!(homes(&b).await, both);
}
