//! Pages of a list whose items have unique, ordered keys.

/// Where a page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the first item.
    #[default]
    First,
    /// After that many items. Items that come and go shift the pages.
    Skip(u32),
    /// After the item with this key, whether it still exists or not.
    After(String),
}

impl Start {
    /// What a token of ours says.
    pub(crate) fn of_token(token: String) -> Self {
        if token.is_empty() {
            Self::First
        } else {
            Self::After(token)
        }
    }
}

/// The largest page, and the one for callers that do not say.
pub(crate) const MAX_ITEMS: usize = 5_000;

/// The items of one page in the order of their keys, and the token of the next page: empty on the
/// last one.
pub(crate) fn cut<T>(
    mut items: Vec<T>,
    key: impl Fn(&T) -> String,
    start: Start,
    size: u32,
) -> (Vec<T>, String) {
    items.sort_by_cached_key(&key);
    let skipped = match start {
        Start::First => 0,
        Start::Skip(count) => items.len().min(count as usize),
        Start::After(last) => items.partition_point(|item| key(item) <= last),
    };
    items.drain(..skipped);
    let size = match size as usize {
        0 => MAX_ITEMS,
        size => size.min(MAX_ITEMS),
    };
    let more = items.len() > size;
    items.truncate(size);
    let token = items.last().filter(|_| more).map(key).unwrap_or_default();
    (items, token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(start: Start, size: u32) -> (Vec<&'static str>, String) {
        cut(
            vec!["d", "a", "c", "b"],
            |item| (*item).to_owned(),
            start,
            size,
        )
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        assert_eq!(page(Start::First, 3), (vec!["a", "b", "c"], "c".to_owned()));
        assert_eq!(
            page(Start::After("c".to_owned()), 3),
            (vec!["d"], String::new())
        );
        assert_eq!(
            page(Start::First, 4),
            (vec!["a", "b", "c", "d"], String::new())
        );
        assert_eq!(page(Start::First, 0).0.len(), 4);
        assert_eq!(page(Start::First, u32::MAX).0.len(), 4);
    }

    #[test]
    fn a_token_outlives_its_item() {
        assert_eq!(page(Start::After("bb".to_owned()), 9).0, ["c", "d"]);
        assert_eq!(page(Start::After("z".to_owned()), 9).0.len(), 0);
    }

    #[test]
    fn items_can_be_skipped_by_number() {
        assert_eq!(page(Start::Skip(3), 9).0, ["d"]);
        assert_eq!(page(Start::Skip(u32::MAX), 9).0.len(), 0);
    }
}
