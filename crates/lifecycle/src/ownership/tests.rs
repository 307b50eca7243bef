//! What claims do to each other: named cases, and any sequence of them.

use proptest::prelude::*;

use super::*;

fn held(gateway: &str, instance: &str, generation: u64, slot: u8, standing: Standing) -> Held {
    Held {
        gateway: GatewayId::new(gateway),
        session: SessionId::new(format!("s{generation}")),
        instance: InstanceId::new(instance),
        generation: Generation::new(generation),
        slot,
        standing,
    }
}

fn wish(gateway: &str, instance: &str, homes: u8, replaces: Option<&str>) -> Wish {
    Wish {
        gateway: GatewayId::new(gateway),
        instance: InstanceId::new(instance),
        homes,
        replaces: replaces.map(SessionId::new),
    }
}

#[track_caller]
fn check(present: &[Held], wish: &Wish, slot: u8, ended: &[&str], drained: &[&str]) {
    let settled = settle(present, wish);
    let names = |ids: &[SessionId]| ids.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    assert_eq!(settled.slot, slot);
    assert_eq!(names(&settled.ended), ended);
    assert_eq!(names(&settled.drained), drained);
}

use Standing::{DrainOnly, Lapsed, Live};

#[test]
fn the_first_has_the_first_place() {
    check(&[], &wish("a", "i", 1, None), 0, &[], &[]);
    check(&[], &wish("a", "i", 0, None), 0, &[], &[]);
}

#[test]
fn a_process_that_comes_back_to_a_gateway_replaces_its_session() {
    for standing in [Live, Lapsed] {
        let before = [held("a", "i", 1, 0, standing)];
        check(&before, &wish("a", "i", 2, None), 0, &["s1"], &[]);
    }
}

#[test]
fn a_process_that_comes_back_to_a_gateway_keeps_the_streams_it_was_drained_with() {
    let before = [held("a", "i", 1, 0, DrainOnly), held("b", "i", 2, 0, Live)];
    check(&before, &wish("a", "i", 1, Some("s2")), 0, &[], &["s2"]);
}

#[test]
fn another_process_takes_over_everywhere() {
    let before = [
        held("a", "old", 1, 0, Live),
        held("b", "old", 2, 1, DrainOnly),
        held("c", "old", 3, 1, Lapsed),
    ];
    let all = ["s1", "s2", "s3"];
    check(&before, &wish("b", "new", 2, None), 0, &all, &[]);
    check(&before[..1], &wish("b", "", 2, None), 0, &["s1"], &[]);
}

#[test]
fn those_that_do_not_say_who_they_are_are_others() {
    let before = [held("a", "", 1, 0, Live)];
    check(&before, &wish("b", "", 2, None), 0, &["s1"], &[]);
}

#[test]
fn there_is_room_for_as_many_homes_as_are_wanted() {
    let before = [held("a", "i", 1, 0, Live)];
    check(&before, &wish("b", "i", 2, None), 1, &[], &[]);
    check(&before, &wish("b", "i", 1, None), 0, &[], &["s1"]);
    let before = [held("a", "i", 1, 0, Live), held("b", "i", 2, 1, Live)];
    check(&before, &wish("c", "i", 2, None), 0, &[], &["s1"]);
    check(&before, &wish("c", "i", 2, Some("s2")), 1, &[], &["s2"]);
    check(&before, &wish("c", "i", 1, None), 0, &[], &["s1", "s2"]);
}

#[test]
fn what_is_replaced_gives_way_even_where_there_is_room() {
    let before = [held("a", "i", 1, 0, Live)];
    check(&before, &wish("b", "i", 2, Some("s1")), 0, &[], &["s1"]);
    check(&before, &wish("b", "i", 2, Some("unknown")), 1, &[], &[]);
}

#[test]
fn what_has_lapsed_takes_nobodys_place_and_stays_a_hint() {
    let before = [held("a", "i", 1, 0, Lapsed)];
    check(&before, &wish("b", "i", 1, None), 0, &[], &[]);
}

#[test]
fn the_best_is_the_newest_that_takes_streams() {
    let mut homes = [
        held("a", "i", 4, 0, Lapsed),
        held("b", "i", 3, 0, DrainOnly),
        held("c", "i", 1, 0, Live),
        held("d", "i", 2, 1, Live),
    ];
    order(&mut homes, |held| (held.standing, held.generation));
    let gateways: Vec<_> = homes.iter().map(|it| it.gateway.as_str()).collect();
    assert_eq!(gateways, ["d", "c", "b", "a"]);
}

proptest! {
    /// However claims follow each other: the newest is live, one process holds all that is, at most
    /// one at a gateway and at most as many as it wants, each in a place of its own.
    #[test]
    fn every_sequence_of_claims_ends_in_order(
        claims in prop::collection::vec((0..3_u8, 0..4_u8, 0..4_u8, 0..12_u64, prop::bool::ANY), 1..40)
    ) {
        let mut present: Vec<Held> = Vec::new();
        for (generation, (instance, gateway, homes, replaces, lapse)) in (1..).zip(claims) {
            if lapse && let Some(first) = present.first_mut() {
                first.standing = Lapsed;
            }
            let wish = wish(
                &gateway.to_string(),
                &instance.to_string(),
                homes,
                Some(&format!("s{replaces}")),
            );
            let settled = settle(&present, &wish);
            present.retain(|held| !settled.ended.contains(&held.session));
            for held in &mut present {
                if settled.drained.contains(&held.session) {
                    prop_assert_eq!(held.standing, Live);
                    held.standing = DrainOnly;
                }
            }
            present.push(held(
                &gateway.to_string(),
                &instance.to_string(),
                generation,
                settled.slot,
                Live,
            ));
            let live: Vec<_> = present.iter().filter(|it| it.standing == Live).collect();
            prop_assert!(live.len() <= usize::from(homes.max(1)));
            for (at, one) in live.iter().enumerate() {
                prop_assert_eq!(&one.instance, &wish.instance);
                for other in &live[at + 1..] {
                    prop_assert_ne!(&one.gateway, &other.gateway);
                    prop_assert_ne!(one.slot, other.slot);
                }
            }
        }
    }
}
