//! Modules of a crate use each other in one direction only, unless the documentation of their parent
//! names the group and the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, ItemUse, Lit, Macro, Meta, UseTree};

const CRATES: [&str; 9] =
    ["engine", "storage", "workflows", "backlog", "activities", "server", "bench", "cli", "tests"];

/// Begins the line of a parent's documentation that justifies a group:
/// ``These modules use each other: `a`, `b`: reason.``
const JUSTIFIED: &str = "These modules use each other: ";

/// The path of a module or an item below the root of its crate.
type Names = Vec<String>;

/// What a module contains, without its tests.
#[derive(Debug, Default)]
struct Module {
    documentation: String,
    /// The names of its own items.
    items: BTreeSet<String>,
    /// The names that `use` brings into it, with their paths as written.
    imports: BTreeMap<String, Names>,
    /// The paths of its glob imports, as written.
    globs: Vec<Names>,
    /// All paths that it mentions, as written.
    mentions: BTreeSet<Names>,
}

/// The modules of a crate by their paths; the root has the empty path.
#[derive(Debug, Default)]
struct Crate(BTreeMap<Names, Module>);

pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn documentation(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect()
}

impl Crate {
    fn load(source: &Path) -> Self {
        let mut found = Self::default();
        found.add(Vec::new(), &source.join("lib.rs"), source);
        found
    }

    /// Adds the module in a file, and the modules that it declares in other files.
    fn add(&mut self, path: Names, file: &Path, source: &Path) {
        let text = fs::read_to_string(file).unwrap();
        let parsed = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{} is no Rust code: {error}", file.display()));
        let mut reader = Reader { path, found: self, declared: Vec::new() };
        reader.current().documentation = documentation(&parsed.attrs);
        reader.visit_file(&parsed);
        for path in reader.declared {
            let place = source.join(path.iter().collect::<PathBuf>());
            let files = [place.with_extension("rs"), place.join("mod.rs")];
            let file = files.iter().find(|file| file.exists()).unwrap();
            self.add(path, file, source);
        }
    }

    /// The path of a mentioned item below the root, if it is in this crate.
    fn absolute(&self, module: &[String], mentioned: &[String]) -> Option<Names> {
        let mut base = module.to_vec();
        let mut rest = mentioned;
        match mentioned.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" | "super" => {
                while let [first, others @ ..] = rest
                    && (first == "self" || first == "super")
                {
                    if first == "super" {
                        base.pop()?;
                    }
                    rest = others;
                }
            }
            first => {
                let child = [module, &[first.to_owned()]].concat();
                self.0.contains_key(&child).then_some(())?;
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The module that defines an item: `use` declarations are followed.
    fn home_of(&self, item: &[String], depth: usize) -> Option<Names> {
        let length = (0..=item.len()).rev().find(|length| self.0.contains_key(&item[..*length]))?;
        let (path, rest) = item.split_at(length);
        let module = &self.0[path];
        let Some(name) = rest.first() else { return Some(path.to_vec()) };
        if module.items.contains(name) || depth == 8 {
            return Some(path.to_vec());
        }
        let follow = |base: Names, rest: &[String]| {
            self.home_of(&[base.as_slice(), rest].concat(), depth + 1)
        };
        if let Some(imported) = module.imports.get(name) {
            return follow(self.absolute(path, imported)?, &rest[1..]);
        }
        let globs = module.globs.iter().filter_map(|glob| self.absolute(path, glob));
        let homes = globs.filter(|glob| glob != path).filter_map(|glob| follow(glob, rest));
        let is_defined = |home: &Names| self.0[home].items.contains(name);
        Some(homes.into_iter().find(is_defined).unwrap_or_else(|| path.to_vec()))
    }

    /// The uses between the children of each module. A module may use what is above and below it.
    fn uses(&self) -> BTreeMap<Names, BTreeMap<(String, String), String>> {
        let mut uses: BTreeMap<Names, BTreeMap<(String, String), String>> = BTreeMap::new();
        for (path, module) in &self.0 {
            for mentioned in &module.mentions {
                let Some(item) = self.absolute(path, mentioned) else { continue };
                let Some(home) = self.home_of(&item, 0) else { continue };
                let common = path.iter().zip(&home).take_while(|(one, other)| one == other).count();
                if let (Some(from), Some(to)) = (path.get(common), home.get(common)) {
                    let example = format!("`{}` uses `{}`", path.join("::"), mentioned.join("::"));
                    let edges = uses.entry(path[..common].to_vec()).or_default();
                    edges.entry((from.clone(), to.clone())).or_insert(example);
                }
            }
        }
        uses
    }
}

/// Reads one file into its module, and inline modules into theirs.
struct Reader<'c> {
    path: Names,
    found: &'c mut Crate,
    /// The modules that are in files of their own.
    declared: Vec<Names>,
}

impl Reader<'_> {
    fn current(&mut self) -> &mut Module {
        self.found.0.entry(self.path.clone()).or_default()
    }

    fn mention(&mut self, path: Names) {
        self.current().mentions.insert(path);
    }

    fn import(&mut self, tree: &UseTree, mut before: Names) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before.clone()));
            }
            UseTree::Glob(_) => {
                self.mention(before.clone());
                self.current().globs.push(before);
            }
            UseTree::Name(name) => self.import_as(name.ident.to_string(), None, before),
            UseTree::Rename(rename) => {
                self.import_as(rename.ident.to_string(), Some(rename.rename.to_string()), before);
            }
        }
    }

    fn import_as(&mut self, name: String, alias: Option<String>, mut path: Names) {
        if name != "self" {
            path.push(name);
        }
        let Some(last) = path.last() else { return };
        let alias = alias.unwrap_or_else(|| last.clone());
        self.mention(path.clone());
        self.current().imports.insert(alias, path);
    }
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        if is_test(attributes_of(item)) {
            return;
        }
        if let Some(name) = name_of(item) {
            self.current().items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        self.path.push(module.ident.to_string());
        if module.content.is_none() {
            self.declared.push(self.path.clone());
        } else {
            self.current().documentation = documentation(&module.attrs);
            visit::visit_item_mod(self, module);
        }
        self.path.pop();
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.mention(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// The tokens of a macro are not parsed, so their paths are looked for in their text.
    fn visit_macro(&mut self, call: &'a Macro) {
        let text = call.tokens.to_string().replace(" ::", "::").replace(":: ", "::");
        let words = text.split(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter));
        for word in words.filter(|word| word.contains("::")) {
            let names = word.split("::").filter(|name| !name.is_empty() && !name.contains(':'));
            self.mention(names.map(str::to_owned).collect());
        }
        visit::visit_macro(self, call);
    }
}

/// The groups that the documentation of a module justifies.
fn justified(documentation: &str) -> BTreeSet<BTreeSet<String>> {
    let groups = documentation.split(JUSTIFIED).skip(1);
    let group = |text: &str| {
        let (names, reason) = text.split_once("`: ")?;
        let names = names.split(',').map(|name| name.trim().trim_matches('`').to_owned());
        (!reason.trim().is_empty()).then(|| names.collect())
    };
    groups.filter_map(group).collect()
}

/// The groups of children of a module that use each other.
fn cycles(uses: &BTreeMap<(String, String), String>) -> BTreeSet<BTreeSet<String>> {
    let edges = uses.keys().map(|(from, to)| (from.as_str(), to.as_str()));
    let graph: DiGraphMap<&str, ()> = edges.collect();
    let groups = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1);
    groups.map(|group| group.into_iter().map(str::to_owned).collect()).collect()
}

fn shown(group: &BTreeSet<String>) -> String {
    group.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn report(found: &Crate, crate_name: &str) -> Vec<String> {
    let uses = found.uses();
    let mut wrong = Vec::new();
    for (path, module) in &found.0 {
        let parent = [&[crate_name.to_owned()], path.as_slice()].concat().join("::");
        let edges = uses.get(path).cloned().unwrap_or_default();
        let cycles = cycles(&edges);
        let justified = justified(&module.documentation);
        for group in cycles.difference(&justified) {
            let mut text = format!("in {parent}, {} use each other:", shown(group));
            for ((from, to), example) in &edges {
                if group.contains(from) && group.contains(to) {
                    text += &format!("\n    {from} -> {to}: {example}");
                }
            }
            wrong.push(text);
        }
        let stale = justified.difference(&cycles);
        wrong.extend(stale.map(|group| format!("{parent} justifies {} for nothing", shown(group))));
    }
    wrong
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = Vec::new();
    for name in CRATES {
        let found = Crate::load(&root.join(name).join("src"));
        assert!(found.0.len() > 3, "the modules of {name} are found");
        wrong.extend(report(&found, name));
    }
    assert!(wrong.is_empty(), "move the shared part into the lower module:\n{}", wrong.join("\n"));
}

/// The report on a crate with these files.
fn report_on(files: &[(&str, &str)]) -> Vec<String> {
    let source = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path: PathBuf = source.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    report(&Crate::load(source.path()), "sample")
}

#[test]
fn a_cycle_is_found_through_re_exports_macros_and_children() {
    let below = "use super::list; pub fn a() { list::b() }";
    let list = "pub use item::b; mod item;";
    for item in ["pub fn b() { crate::below::a() }", "pub fn b() { call!(super::super::below::a) }"]
    {
        let files = [
            ("lib.rs", "mod below; mod list;"),
            ("below.rs", below),
            ("list.rs", list),
            ("list/item.rs", item),
        ];
        let wrong = report_on(&files);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("in sample, `below`, `list` use each other:"), "{wrong:?}");
        assert!(wrong[0].contains("below -> list: `below` uses `super::list`"), "{wrong:?}");
    }
}

#[test]
fn a_cycle_may_be_justified_and_tests_do_not_count() {
    let first = "use super::second::B; pub struct A(Option<Box<B>>);";
    let second = "use super::first::A; pub struct B(A);";
    let justified =
        "//! A tree.\n//!\n//! These modules use each other: `first`,\n//! `second`: a tree.\n";
    let files = |root: &'static str, second: &'static str| {
        [("first.rs", first), ("second.rs", second), ("lib.rs", root)]
    };
    let root = "mod first; mod second;";
    let with_reason: &'static str = Box::leak(format!("{justified}{root}").into_boxed_str());
    assert_eq!(report_on(&files(with_reason, second)), [""; 0]);
    let only_in_tests = "pub struct B; #[cfg(test)] mod tests { use crate::first::A; }";
    assert_eq!(report_on(&files(root, only_in_tests)), [""; 0]);
    let wrong = report_on(&files(with_reason, only_in_tests));
    assert_eq!(wrong, ["sample justifies `first`, `second` for nothing"]);
}
