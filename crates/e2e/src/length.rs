//! Short or long stories.

/// What a story repeats or waits for: the short measure in `make test`, the long one where `make long` asks for it.
pub fn at_length<T>(short: T, long: T) -> T {
    if std::env::var_os("NACRE_LONG").is_some_and(|wish| !wish.is_empty()) { long } else { short }
}
