//! The ways to reach a gateway, in the order in which they are tried.

/// Places that are kept: more are not worth trying.
const MAX: usize = 64;

/// The configured places, and behind them those that were learnt.
#[derive(Debug)]
pub(super) struct Places(Vec<String>);

impl Places {
    pub(super) fn new(configured: impl IntoIterator<Item = String>) -> Self {
        let mut places = Self(Vec::new());
        places.learn(configured);
        places
    }

    pub(super) fn learn(&mut self, places: impl IntoIterator<Item = String>) {
        for place in places {
            if self.0.len() < MAX && !self.0.contains(&place) {
                self.0.push(place);
            }
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.0[index]
    }

    /// The first place from `from` on, round and round, that is not `busy`, and if there is one, not
    /// `held` either.
    pub(super) fn next(
        &self,
        from: usize,
        busy: impl Fn(usize) -> bool,
        held: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let count = self.0.len();
        let free = |index: &usize| !busy(*index);
        let round = || (0..count).map(|step| (from + step) % count).filter(free);
        round()
            .find(|index| !held(*index))
            .or_else(|| round().next())
    }
}
