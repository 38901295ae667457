//! Arguments of the form `KEY=VALUE`.

/// Parses `KEY=VALUE`.
pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_empty_and_a_value_may_contain_the_sign() {
        assert_eq!(key_value("team=a=b"), Ok(("team".into(), "a=b".into())));
        assert!(key_value("=web").is_err() && key_value("team").is_err());
    }
}
