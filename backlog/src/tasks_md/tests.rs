//! Checklists in, features out.

use super::*;
use std::fmt::Write as _;

fn summary(text: &str) -> String {
    let list = match read_tasks(text) {
        Ok(list) => list,
        Err(error) => return error.to_string(),
    };
    let mut out = String::new();
    for feature in &list.features {
        let Feature { id, name, description, status, priority, .. } = feature;
        let _ = write!(
            out,
            "{id} | {name} | {} | {status} {priority}",
            description.replace('\n', " / ")
        );
        let _ = write!(out, " | {}", feature.acceptance_criteria.join(", "));
        let depends_on: Vec<&str> =
            feature.depends_on.iter().map(longhaul_workflows::backlog::FeatureId::as_str).collect();
        let _ = write!(out, " | {}", depends_on.join(", "));
        let checks: Vec<&str> = feature.checks.iter().map(|check| check.run.as_str()).collect();
        let _ = writeln!(out, " | {}", checks.join(", "));
    }
    out + &list.notes.join("\n")
}

fn check(text: &str, expected: &str) {
    assert_eq!(summary(text), expected);
}

#[test]
fn a_checklist_is_read() {
    check(
        "# Backlog\n\n- [ ] Login: users can log in\n  - [x] form\n  - [ ] error text\n  - \
         Depends on: Tables\n- [x] Tables\n* [~] **Search**: full text\n- [!] Pay at \
         http://pay.example\nNeeds a key.\n```\n- [ ] not one\n```\n",
        "login | Login | users can log in | pending 0 | form, error text | tables | \n\
         tables | Tables |  | completed 0 |  |  | \n\
         search | Search | full text | in_progress 0 |  |  | \n\
         pay-at-http-pay-example | Pay at http://pay.example | Needs a key. | blocked 0 |  |  | \n\
         no id: one was made from the name or the description (line 3 -> `login`, line 7 -> \
         `tables`, line 8 -> `search` and 1 more)",
    );
}

#[test]
fn tasks_with_headings_are_read() {
    check(
        "# Tasks\n## Sprint 1: base\n### Task 1: Tabelas\n- **Tipo:** infra\n- **Prioridade:** \
         P0\n- **Dependências:** nenhuma\n- **Arquivos:**\n  - Criar `db.sql`\n- **Acceptance \
         Criteria:**\n  - [x] migra\n  - [x] volta\n\n### Task 2: Login\nText.\n- **Priority:** \
         P3\n- **Dependencies:** Task 1 (base), Task 3\n- **Verify:** `npm test`\n#### Acceptance \
         Criteria\n- [ ] entra\n### Tarefa 3 - Chaves\n- [~] meio\n## Notes\n- [ ] stray\n",
        "task-1 | Tabelas | Arquivos: / - Criar `db.sql` | completed 2 | migra, volta |  | \n\
         task-2 | Login | Text. | pending -1 | entra | task-1, task-3 | npm test\n\
         task-3 | Chaves |  | in_progress 0 | meio |  | \n\
         a box outside of any task: not read (line 23)\n\
         completed, as the boxes of the criteria say (line 3)\n\
         the priority P0 is read as 2 (line 3)\n\
         the priority P3 is read as -1 (line 13)\n\
         in_progress, as the boxes of the criteria say (line 20)",
    );
}

#[test]
fn wrong_checklists_are_refused_with_all_problems() {
    check(
        "# nothing\n- a\n",
        "the feature list has no entries: found a text without tasks; write lines such as `- [ ] \
         Name: description`, or headings such as `### Task 1: title`",
    );
    check(
        "### Task 1: a\n**Dependencies:** Task 9, Task 1\n**Priority:** soon\n### Task 1: b\n",
        "the feature list has 4 problems:\n\
         - line 1 (`task-1`), `priority`: found \"soon\"; write P0 to P4, or a whole number, \
         higher for sooner\n\
         - line 1 (`task-1`), `dependencies`: \"task-9\" is no id and no name of another entry; \
         add that feature, correct the id, or take the dependency out\n\
         - line 1 (`task-1`), `dependencies`: \"task-1\" is the entry itself; take it out: a \
         feature cannot wait for itself\n\
         - line 4 (`task-1`), `id`: \"task-1\" is taken: line 1 `task-1` has it (capital letters \
         do not count); give one of the two another id",
    );
    check(
        "- [ ] \n",
        "the feature list has 1 problem:\n- line 1, `name`: missing; write it after the box",
    );
}
