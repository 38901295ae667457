//! `longhaul batch`, for people and for programs.

use longhaul_tests::project::{Habit, Plan, Project, plain};

use crate::world::World;

#[test]
fn a_batch_is_reported_as_it_was() {
    let never = Plan { id: "shell", needs: &[], steps: 1, habit: Habit::Never };
    let mixed = Project::new(&[never, plain("table", &["shell"], 1)], 0.0);
    let last = Project::new(&[plain("parser", &[], 1)], 0.0);
    let mut world = World::new(&[plain("parser", &[], 1)], 0.0);
    let file = format!(
        "batch = \"nightly\"\n[[project]]\nname = \"one\"\ndir = {:?}\n[[project]]\nname = \"two\"\ndir = {:?}\n\
         limits = {{ failed_gates = 1 }}\n[[project]]\nname = \"three\"\ndir = {:?}\nafter = [\"two\"]\n",
        world.root,
        mixed.root(),
        last.root(),
    );
    world.others = vec![mixed, last];
    std::fs::write(world.project.place().join("batch.toml"), file).unwrap();
    let output = world.call("batch <place>/batch.toml --progress jsonl -o json");
    let lines = output.exits(5).stdout.lines();
    // What is seen of the way depends on when one looks; how a project and a feature end does not.
    let ends = [r#""project":"one","state":"done""#, r#""feature":"shell","status":"blocked""#];
    let is_end =
        |line: &&str| line.contains("progress/1") && ends.iter().any(|end| line.contains(end));
    let mut shown: Vec<String> = lines.filter(is_end).map(|line| format!("{line}\n")).collect();
    shown.sort_by_key(|line| line.contains("\"feature\""));
    world.recorded("batch/progress", &shown.concat());
    world.transcript(
        "batch/batch",
        &[
            "batch <place>/batch.toml --progress none",
            "batch <place>/batch.toml --progress none -o json",
            "narrow batch <place>/batch.toml --progress none",
            "batch <place>/nothing.toml",
        ],
    );
}
