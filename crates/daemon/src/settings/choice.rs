//! Values that are one of a few words.

/// Writes such a type down: each variant with its word.
///
/// ```
/// use tidegate_daemon::settings::Value;
///
/// tidegate_daemon::choice! {
///     /// When to do it.
///     pub enum When {
///         /// At once.
///         Now = "now",
///         /// Some day.
///         Later = "later",
///     }
/// }
///
/// assert_eq!(When::read("later"), Ok(When::Later));
/// assert_eq!(When::KIND, "now|later");
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[$about:meta])*
        $vis:vis enum $Choice:ident {
            $(#[$first_about:meta])*
            $First:ident = $first:literal,
            $($(#[$rest_about:meta])* $Rest:ident = $rest:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Choice {
            $(#[$first_about])*
            $First,
            $($(#[$rest_about])* $Rest,)+
        }

        impl $crate::settings::Value for $Choice {
            const KIND: &'static str = concat!($first $(, "|", $rest)+);

            fn read(text: &str) -> Result<Self, $crate::settings::Remedy> {
                match text {
                    $first => Ok(Self::$First),
                    $($rest => Ok(Self::$Rest),)+
                    _ => Err($crate::settings::Remedy::new(
                        concat!("write ", $first $(, " or ", $rest)+),
                    )),
                }
            }

            fn show(&self) -> String {
                $crate::settings::quoted(match self {
                    Self::$First => $first,
                    $(Self::$Rest => $rest,)+
                })
            }
        }
    };
}
