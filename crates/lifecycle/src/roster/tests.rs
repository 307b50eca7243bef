//! The roster: one case after the other, and at random.

use proptest::prelude::*;

use super::*;
use crate::cause::Origin;

const SECOND: Duration = Duration::from_secs(1);

fn roster(homes: u8, places: &[&str]) -> Roster {
    let places = places.iter().map(|place| (*place).to_owned());
    Roster::new(homes, places, Bounds::default())
}

fn because(reason: Reason) -> Ended {
    Ended::With(End::new(Origin::Gateway, reason, ""))
}

fn orders(roster: &mut Roster) -> Vec<Order> {
    std::iter::from_fn(|| roster.poll_order()).collect()
}

/// What was dialled, and nothing else was ordered.
#[track_caller]
fn dials(roster: &mut Roster) -> Vec<(Seat, String)> {
    let dialled = |order| match order {
        Order::Dial { seat, place, .. } => (seat, place),
        Order::LetGo(_) | Order::Short { .. } | Order::Stop | Order::GiveWay(_) => {
            panic!("{order:?}")
        }
    };
    orders(roster).into_iter().map(dialled).collect()
}

#[track_caller]
fn dial(roster: &mut Roster) -> (Seat, String) {
    let all = dials(roster);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

fn begin(roster: &mut Roster, seat: Seat, gateway: &str, now: Instant) {
    let session = SessionId::new(format!("s{}", seat.0));
    roster.began(seat, session, GatewayId::new(gateway), now);
}

#[test]
fn one_home_is_dialled_as_ever() {
    let now = Instant::now();
    let mut roster = roster(1, &["a", "b", "c"]);
    roster.start(now);
    let (first, place) = dial(&mut roster);
    assert_eq!(place, "a");
    begin(&mut roster, first, "ga", now);
    assert_eq!(
        (dials(&mut roster), roster.poll_timeout()),
        (Vec::new(), None)
    );
    let later = now + 60 * SECOND;
    let lost = because(Reason::TransportLost);
    assert_eq!(roster.ended(first, &lost, 1.0, later), Some(Duration::ZERO));
    let (second, place) = dial(&mut roster);
    assert_eq!(place, "b");
    assert_eq!(
        roster.ended(second, &lost, 1.0, later),
        Some(Duration::ZERO)
    );
    let (third, place) = dial(&mut roster);
    assert_eq!(place, "c");
    let wait = roster.ended(third, &lost, 1.0, later).unwrap();
    assert_eq!((wait, dials(&mut roster)), (SECOND / 2, Vec::new()));
    assert_eq!(roster.poll_timeout(), Some(later + wait));
    roster.handle_timeout(later + wait);
    assert_eq!(dial(&mut roster).1, "a");
}

#[test]
fn a_refusal_stays_at_its_place_and_a_removal_stops() {
    let now = Instant::now();
    let mut roster = roster(1, &["a", "b"]);
    roster.start(now);
    let (seat, _) = dial(&mut roster);
    let wait = roster
        .ended(seat, &because(Reason::NotPermitted), 0.0, now)
        .unwrap();
    roster.handle_timeout(now + wait);
    let (seat, place) = dial(&mut roster);
    assert_eq!(place, "a");
    begin(&mut roster, seat, "ga", now);
    roster.ended(seat, &Ended::Removed, 0.0, now);
    assert_eq!(orders(&mut roster), [Order::Stop]);
}

#[test]
fn ha_07_a_session_is_let_go_only_when_its_successor_stands() {
    let now = Instant::now();
    let mut roster = roster(1, &["a", "b"]);
    roster.start(now);
    let (old, _) = dial(&mut roster);
    begin(&mut roster, old, "ga", now);
    roster.asked_to_move(old, Vec::new(), now);
    let [
        Order::Dial {
            seat,
            place,
            replaces,
            held,
        },
    ] = &orders(&mut roster)[..]
    else {
        panic!("it dials");
    };
    assert_eq!(
        (place.as_str(), replaces),
        ("b", &Some(SessionId::new("s0")))
    );
    assert_eq!(held, &[GatewayId::new("ga")]);
    assert!(
        roster.is_live(old),
        "it takes streams until the other stands"
    );
    roster.asked_to_move(old, Vec::new(), now);
    assert_eq!(
        dials(&mut roster),
        [],
        "asked again, it does not begin again"
    );
    begin(&mut roster, *seat, "gb", now);
    assert_eq!(orders(&mut roster), [Order::LetGo(old)]);
    assert!(roster.is_live(*seat) && !roster.is_live(old));
    assert_eq!(roster.ended(old, &Ended::Removed, 0.5, now), None);
    assert_eq!(
        (orders(&mut roster), roster.poll_timeout()),
        (Vec::new(), None)
    );
}

#[test]
fn where_there_is_one_place_the_old_session_stays_and_the_place_is_tried_again() {
    let now = Instant::now();
    let mut roster = roster(1, &["a"]);
    roster.start(now);
    let (old, _) = dial(&mut roster);
    begin(&mut roster, old, "ga", now);
    let later = now + 60 * SECOND;
    roster.asked_to_move(old, Vec::new(), later);
    let (seat, place) = dial(&mut roster);
    assert_eq!(place, "a", "a balancer may lead elsewhere");
    let wait = roster
        .ended(seat, &because(Reason::GatewayDraining), 1.0, later)
        .unwrap();
    assert!(roster.is_live(old));
    assert_eq!(wait, SECOND / 2);
    let gone = later + wait / 2;
    let next = roster.ended(old, &because(Reason::GatewayDraining), 0.0, gone);
    assert_eq!(next, Some(Duration::ZERO), "the sooner of both");
    let [Order::Dial { replaces, .. }] = &orders(&mut roster)[..] else {
        panic!("it dials");
    };
    assert_eq!(replaces, &Some(SessionId::new("s0")));
}

#[test]
fn addresses_that_were_learnt_come_after_those_that_were_configured() {
    let now = Instant::now();
    let mut roster = roster(1, &["a", "b"]);
    roster.start(now);
    let (old, _) = dial(&mut roster);
    begin(&mut roster, old, "ga", now);
    let later = now + 60 * SECOND;
    roster.asked_to_move(old, vec!["c".into(), "a".into()], later);
    for expected in ["b", "c"] {
        let (seat, place) = dial(&mut roster);
        assert_eq!(place, expected);
        let wait = roster.ended(seat, &because(Reason::TransportLost), 1.0, later);
        assert_eq!(
            wait,
            Some(if expected == "b" {
                Duration::ZERO
            } else {
                SECOND / 2
            })
        );
    }
}

#[test]
fn several_homes_are_at_several_gateways() {
    let now = Instant::now();
    let mut roster = roster(2, &["a", "b"]);
    roster.start(now);
    let all = dials(&mut roster);
    let places: Vec<_> = all.iter().map(|(_, place)| place.as_str()).collect();
    assert_eq!(places, ["a", "b"]);
    begin(&mut roster, all[0].0, "ga", now);
    begin(&mut roster, all[1].0, "gb", now);
    assert_eq!((roster.live(), dials(&mut roster)), (2, Vec::new()));
    // One of them is lost: the other's gateway is not dialled, for there is one that is free.
    roster.ended(
        all[0].0,
        &because(Reason::TransportLost),
        1.0,
        now + 60 * SECOND,
    );
    roster.handle_timeout(now + 120 * SECOND);
    assert_eq!(dial(&mut roster).1, "a");
}

#[test]
fn two_attempts_are_never_on_their_way_to_one_place() {
    let now = Instant::now();
    let mut roster = roster(2, &["a"]);
    roster.start(now);
    let (first, _) = dial(&mut roster);
    assert_eq!(roster.poll_timeout(), None, "the other waits for the first");
    begin(&mut roster, first, "ga", now);
    let [Order::Dial { held, .. }] = &orders(&mut roster)[..] else {
        panic!("it dials");
    };
    assert_eq!(
        held,
        &[GatewayId::new("ga")],
        "so that the gateway can refuse"
    );
}

#[test]
fn too_few_gateways_are_said_once_and_looked_for_ever_less() {
    let mut now = Instant::now();
    let mut roster = roster(2, &["a"]);
    roster.start(now);
    let (first, _) = dial(&mut roster);
    begin(&mut roster, first, "ga", now);
    let mut said = 0;
    let mut wait = Duration::ZERO;
    for _ in 0..20 {
        for order in orders(&mut roster) {
            match order {
                Order::Dial { seat, .. } => {
                    let same = because(Reason::DuplicateSession);
                    wait = roster.ended(seat, &same, 0.0, now).unwrap();
                }
                Order::Short { held, wanted } => {
                    assert_eq!((held, wanted), (1, 2));
                    said += 1;
                }
                Order::LetGo(_) | Order::Stop | Order::GiveWay(_) => panic!("{order:?}"),
            }
        }
        now = roster.poll_timeout().unwrap_or(now);
        roster.handle_timeout(now);
    }
    assert_eq!(said, 1);
    assert!(wait >= 60 * SECOND, "{wait:?}");
    assert!(roster.is_live(first), "what there is stays");
}

#[test]
fn an_older_gateway_that_is_found_twice_is_no_rival() {
    let now = Instant::now();
    for end_comes_first in [false, true] {
        let mut roster = roster(2, &["a", "b"]);
        roster.start(now);
        let all = dials(&mut roster);
        let (first, second) = (all[0].0, all[1].0);
        begin(&mut roster, first, "g", now);
        if end_comes_first {
            roster.ended(first, &because(Reason::Superseded), 0.5, now);
        }
        begin(&mut roster, second, "g", now);
        if !end_comes_first {
            roster.ended(first, &because(Reason::Superseded), 0.5, now);
        }
        for order in orders(&mut roster) {
            assert!(
                !matches!(order, Order::GiveWay(_) | Order::Stop),
                "{order:?}"
            );
        }
        assert!(roster.is_live(second));
        assert!(
            roster.poll_timeout() > Some(now + 10 * SECOND),
            "it does not duel with itself"
        );
    }
}

#[test]
fn another_instance_is_given_way_to_whichever_home_learns_of_it() {
    let now = Instant::now();
    let mut roster = roster(2, &["a", "b"]);
    roster.start(now);
    let all = dials(&mut roster);
    begin(&mut roster, all[0].0, "ga", now);
    begin(&mut roster, all[1].0, "gb", now);
    assert_eq!(
        roster.ended(all[1].0, &because(Reason::Superseded), 0.5, now),
        None
    );
    assert!(matches!(orders(&mut roster)[..], [Order::GiveWay(_)]));
}

/// What may happen to a roster.
#[derive(Clone, Debug)]
enum Event {
    /// One of the attempts succeeds, at that gateway.
    Begin(usize, u8),
    /// One of the attempts fails.
    Fail(usize, Reason),
    /// The gateway of one of the sessions asks for a move.
    Ask(usize),
    /// One of the sessions ends.
    Lose(usize, Reason),
    /// Time passes.
    Wait(u64),
}

fn events() -> impl Strategy<Value = Event> {
    let reasons = || {
        prop::sample::select(vec![
            Reason::TransportLost,
            Reason::GatewayDraining,
            Reason::DuplicateSession,
            Reason::NotPermitted,
            Reason::OperatorClosed,
        ])
    };
    prop_oneof![
        4 => (any::<usize>(), 0u8..4).prop_map(|(which, gateway)| Event::Begin(which, gateway)),
        2 => (any::<usize>(), reasons()).prop_map(|(which, why)| Event::Fail(which, why)),
        2 => any::<usize>().prop_map(Event::Ask),
        1 => (any::<usize>(), reasons()).prop_map(|(which, why)| Event::Lose(which, why)),
        2 => (0u64..40_000).prop_map(Event::Wait),
    ]
}

/// A world that does what it is told and remembers it.
#[derive(Default)]
struct World {
    dialling: Vec<(Seat, String)>,
    standing: Vec<Seat>,
    let_go: Vec<Seat>,
}

impl World {
    fn obey(&mut self, roster: &mut Roster) {
        for order in orders(roster) {
            match order {
                Order::Dial { seat, place, .. } => {
                    assert!(
                        self.dialling.iter().all(|(_, other)| *other != place),
                        "{place} twice"
                    );
                    self.dialling.push((seat, place));
                }
                Order::LetGo(seat) => {
                    let index = self.standing.iter().position(|other| *other == seat);
                    self.standing
                        .remove(index.expect("a session that stands is let go, once"));
                    self.let_go.push(seat);
                }
                Order::Short { held, wanted } => assert!(0 < held && held < wanted),
                Order::Stop | Order::GiveWay(_) => panic!("{order:?}"),
            }
        }
    }
}

proptest! {
    /// Whatever happens: a place has one attempt at most, a home one session, what stands is let go
    /// for a successor and for nothing else, and no home is forgotten.
    #[test]
    fn no_home_is_lost_and_none_is_doubled(
        homes in 1u8..4,
        count in 1usize..4,
        events in prop::collection::vec(events(), 0..120),
    ) {
        let places: Vec<_> = ["a", "b", "c"].into_iter().take(count).collect();
        let mut roster = roster(homes, &places);
        let mut now = Instant::now();
        let mut world = World::default();
        roster.start(now);
        world.obey(&mut roster);
        for event in events {
            let before = roster.live();
            let mut may_shrink = false;
            match event {
                Event::Begin(which, gateway) if !world.dialling.is_empty() => {
                    let which = which % world.dialling.len();
                    let (seat, _) = world.dialling.remove(which);
                    world.standing.push(seat);
                    // An older gateway that is found twice costs the session that it had.
                    may_shrink = true;
                    begin(&mut roster, seat, &format!("g{gateway}"), now);
                    prop_assert!(roster.is_live(seat));
                }
                Event::Fail(which, why) if !world.dialling.is_empty() => {
                    let which = which % world.dialling.len();
                    let (seat, _) = world.dialling.remove(which);
                    prop_assert!(roster.ended(seat, &because(why), 0.5, now).is_some());
                }
                Event::Ask(which) if !world.standing.is_empty() => {
                    let seat = world.standing[which % world.standing.len()];
                    roster.asked_to_move(seat, Vec::new(), now);
                    prop_assert!(roster.is_live(seat), "make before break");
                }
                Event::Lose(which, why) if !world.standing.is_empty() => {
                    let which = which % world.standing.len();
                    let seat = world.standing.remove(which);
                    may_shrink = true;
                    roster.ended(seat, &because(why), 0.5, now);
                }
                Event::Wait(millis) => {
                    now += Duration::from_millis(millis);
                    roster.handle_timeout(now);
                }
                Event::Begin(..) | Event::Fail(..) | Event::Ask(_) | Event::Lose(..) => {}
            }
            world.obey(&mut roster);
            prop_assert!(may_shrink || roster.live() >= before);
            prop_assert!(roster.live() <= usize::from(homes));
            prop_assert_eq!(roster.live(), world.standing.len());
            for seat in &world.standing {
                prop_assert!(roster.is_live(*seat));
            }
            let idle = roster.live() + world.dialling.len() < usize::from(homes);
            prop_assert!(!idle || roster.poll_timeout().is_some() || !world.dialling.is_empty());
        }
    }
}
