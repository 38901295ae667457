use reckon::tokens::{Placed, Token, tokenize};

fn texts(line: &str) -> Vec<String> {
    let text = |placed: Placed| match placed.token {
        Token::Number(text) | Token::Name(text) => text,
        Token::Symbol(symbol) => symbol.to_string(),
    };
    tokenize(line).unwrap().into_iter().map(text).collect()
}

#[test]
fn numbers_names_and_symbols_are_distinguished() {
    let tokens: Vec<Token> = tokenize("2*x")
        .unwrap()
        .into_iter()
        .map(|placed| placed.token)
        .collect();
    let expected = [
        Token::Number("2".into()),
        Token::Symbol('*'),
        Token::Name("x".into()),
    ];
    assert_eq!(tokens, expected);
}

#[test]
fn blanks_separate_and_are_dropped() {
    assert_eq!(texts("  max( 1,\t22 )"), ["max", "(", "1", ",", "22", ")"]);
}

#[test]
fn a_sign_belongs_to_a_number_only_in_its_exponent() {
    assert_eq!(texts("1e-3-2"), ["1e-3", "-", "2"]);
    assert_eq!(texts("0xe-3"), ["0xe", "-", "3"]);
}

#[test]
fn places_are_counted_in_characters() {
    let places: Vec<usize> = tokenize("ä + 2")
        .unwrap()
        .iter()
        .map(|placed| placed.at)
        .collect();
    assert_eq!(places, [0, 2, 4]);
}

#[test]
fn a_character_without_a_meaning_is_an_error_at_its_place() {
    assert_eq!(tokenize("2 $ 3").unwrap_err().at, Some(2));
}
