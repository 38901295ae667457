//! The style of sentences and bindings: `CONTRIBUTING.md` explains it.

use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Expr, ExprAssign, ItemMod, Local, Pat};

use super::{assert_none, code};
use crate::modules::is_test;

/// The width of a line, which rustfmt does not enforce for comments.
const WIDTH: usize = 100;

/// Words without a subject: a sentence names an owner, a caller, a reader.
const VAGUE_WORDS: [&str; 8] =
    ["nobody", "nobodys", "somebody", "whoever", "everybody", "anybody", "someone", "anyone"];
const VAGUE_PHRASES: [&str; 1] = ["what is said"];

/// Whether a file is below a directory of tests.
fn is_in_tests(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
}

/// Whether a file is a part of a crate of the product, and no test.
fn is_product(path: &Path) -> bool {
    let is_source = path.components().nth(1).is_some_and(|part| part.as_os_str() == "src");
    is_source && !is_in_tests(path) && !path.ends_with("tests.rs")
}

fn is_vague(line: &str) -> bool {
    let line = line.to_lowercase();
    let mut words = line.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| VAGUE_WORDS.contains(&word))
        || VAGUE_PHRASES.iter().any(|phrase| line.contains(phrase))
}

#[test]
fn sentences_name_their_subject() {
    let mut offenders = Vec::new();
    for (path, text) in code() {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            // A test may use such a word as an unknown name.
            let is_prose =
                ["//", "fn ", "async fn ", "pub fn "].iter().any(|it| line.starts_with(it));
            if (is_prose || !is_in_tests(&path)) && is_vague(line) {
                offenders.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert_none("these do not name their subject", &offenders);
}

#[test]
fn comments_fit_into_a_line() {
    let mut offenders = Vec::new();
    for (path, text) in code().into_iter().filter(|(path, _)| is_product(path)) {
        for (number, line) in (1..).zip(text.lines()) {
            let comment = line.trim_start();
            // The row of a table cannot be wrapped.
            let is_row = comment.starts_with("//! |") || comment.starts_with("/// |");
            if comment.starts_with("//") && !is_row && line.chars().count() > WIDTH {
                offenders.push(format!("{}:{number}", path.display()));
            }
        }
    }
    assert_none(&format!("these comments are wider than {WIDTH} columns"), &offenders);
}

/// Finds the bindings of several values at once.
#[derive(Default)]
struct TupleBindings(Vec<String>);

impl<'a> Visit<'a> for TupleBindings {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    /// `let … else` is not among them: its patterns are one condition.
    fn visit_local(&mut self, local: &'a Local) {
        let pattern = match &local.pat {
            Pat::Type(typed) => &*typed.pat,
            pattern => pattern,
        };
        if let (Pat::Tuple(pattern), Some(init)) = (pattern, &local.init)
            && init.diverge.is_none()
            && matches!(&*init.expr, Expr::Tuple(_))
        {
            let names: Vec<String> = pattern.elems.iter().map(name_of).collect();
            self.0.push(format!("let ({})", names.join(", ")));
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_assign(&mut self, assigned: &'a ExprAssign) {
        if matches!((&*assigned.left, &*assigned.right), (Expr::Tuple(_), Expr::Tuple(_))) {
            self.0.push("(…) = (…)".to_owned());
        }
        visit::visit_expr_assign(self, assigned);
    }
}

fn name_of(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(pattern) => pattern.ident.to_string(),
        _ => "_".to_owned(),
    }
}

fn tuple_bindings(text: &str) -> Vec<String> {
    let mut found = TupleBindings::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

#[test]
fn each_value_has_a_binding_of_its_own() {
    let mut offenders = Vec::new();
    for (path, text) in code().into_iter().filter(|(path, _)| is_product(path)) {
        let found = tuple_bindings(&text).into_iter();
        offenders.extend(found.map(|binding| format!("{}: {binding}", path.display())));
    }
    assert_none("write one `let` or assignment per value", &offenders);
}

#[test]
fn only_tuples_of_expressions_are_bindings_of_several_values() {
    let text = "fn f() {
        let (one, two): (u8, u8) = (1, 2);
        let (three, four) = split();
        let (Some(five), Some(six)) = (three, four) else { return };
        (one.a, two) = (five, six);
        { let (a, _) = (b, c); }
    }
    #[cfg(test)]
    mod tests { fn f() { let (a, b) = (1, 2); } }";
    assert_eq!(tuple_bindings(text), ["let (one, two)", "(…) = (…)", "let (a, _)"]);
}
