//! Parses one line of a checklist.

/// A line, by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'t> {
    Blank,
    /// `### text`, with the number of `#`.
    Heading {
        level: usize,
        text: &'t str,
    },
    /// `- [x] text`, with the spaces before it; `- [ ]* text` is optional.
    Box {
        indent: usize,
        mark: char,
        is_optional: bool,
        text: &'t str,
    },
    /// `**Name:** value`, after a bullet or not.
    Field {
        indent: usize,
        is_bullet: bool,
        field: Field,
        name: &'t str,
        value: &'t str,
    },
    /// `- text`, with the spaces before it.
    Bullet {
        indent: usize,
        text: &'t str,
    },
    Text {
        text: &'t str,
    },
}

/// The fields of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Dependencies,
    Priority,
    Category,
    Criteria,
    Description,
    Checks,
    Status,
    /// Kept in the description.
    Other,
}

impl Field {
    /// The field with this name, in English or Portuguese.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.trim().to_lowercase().as_str() {
            "dependencies" | "dependency" | "depends on" | "depends_on" | "dependências"
            | "dependencias" | "dependência" | "dependencia" | "depende de" | "blocked by" => {
                Self::Dependencies
            }
            "priority" | "prioridade" => Self::Priority,
            "category" | "type" | "categoria" | "tipo" => Self::Category,
            "acceptance criteria"
            | "acceptance"
            | "criteria"
            | "critérios de aceite"
            | "critérios de aceitação"
            | "criterios de aceite" => Self::Criteria,
            "description" | "descrição" | "descricao" => Self::Description,
            "check" | "checks" | "verify" | "verification" | "verificação" | "verificacao" => {
                Self::Checks
            }
            "status" | "estado" => Self::Status,
            _ => return None,
        })
    }
}

impl<'t> Line<'t> {
    pub(super) fn of(raw: &'t str) -> Self {
        let text = raw.trim();
        if text.is_empty() || text.chars().all(|letter| letter == '-') {
            return Self::Blank;
        }
        let level = text.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && text[level..].starts_with(' ') {
            return Self::Heading { level, text: text[level..].trim() };
        }
        let bullet = without_bullet(text);
        let blanks = raw.chars().take_while(|letter| letter.is_whitespace());
        let indent = blanks.map(|blank| if blank == '\t' { 4 } else { 1 }).sum();
        if let Some((mark, rest)) = bullet.and_then(marked) {
            let optional = rest.strip_prefix('*').filter(|rest| rest.starts_with([' ', '\t']));
            let text = optional.unwrap_or(rest).trim();
            return Self::Box { indent, mark, is_optional: optional.is_some(), text };
        }
        match (field(bullet.unwrap_or(text)), bullet) {
            (Some((field, name, value)), _) => {
                Self::Field { indent, is_bullet: bullet.is_some(), field, name, value }
            }
            (None, Some(text)) => Self::Bullet { indent, text },
            (None, None) => Self::Text { text },
        }
    }
}

/// The text after `- `, `* `, `+ ` or `1. `.
fn without_bullet(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let behind = if digits.len() < text.len() {
        digits.strip_prefix('.')?
    } else {
        text.strip_prefix(['-', '*', '+'])?
    };
    behind.starts_with([' ', '\t']).then(|| behind.trim())
}

/// The mark in `[x] text` and the text; `[P] text` is no box.
pub(super) fn marked(text: &str) -> Option<(char, &str)> {
    let mut letters = text.strip_prefix('[')?.chars();
    let mark = letters.next()?;
    let rest = letters.as_str().strip_prefix(']')?;
    let is_mark = !mark.is_alphanumeric() || matches!(mark, 'x' | 'X');
    let is_apart = rest.is_empty() || rest.starts_with([' ', '\t']) || rest.starts_with("* ");
    (is_mark && is_apart).then(|| (mark, rest.trim()))
}

/// `**Name:** value` and `**Name**: value` with any name, `Name: value` with a name that is known.
fn field(text: &str) -> Option<(Field, &str, &str)> {
    let bold = || {
        let (name, value) = text.strip_prefix("**")?.split_once("**")?;
        let value = name
            .strip_suffix(':')
            .map(|name| (name, value))
            .or_else(|| value.strip_prefix(':').map(|value| (name, value)));
        value.map(|(name, value)| (Field::named(name).unwrap_or(Field::Other), name, value))
    };
    let plain = || {
        let (name, value) = text.split_once(':')?;
        Field::named(name).map(|field| (field, name, value))
    };
    let (field, name, value) = bold().or_else(plain)?;
    Some((field, name.trim(), value.trim()))
}

/// The mark, the id and the title of `Task 3: title`, `[x] Task 3 - title`, `Tarefa 1.2. title`.
pub(super) fn task_heading(text: &str) -> Option<(char, String, &str)> {
    let (mark, text) = marked(text).unwrap_or((' ', text));
    let (id, rest) = task_number(text)?;
    let title = rest.trim_start_matches([' ', ':', '-', '–', '—', '.', ')']);
    let apart = rest.is_empty() || rest.starts_with([' ', ':', '-', '–', '—', '.', ')']);
    apart.then_some((mark, id, title))
}

/// `Task 3…` as the id `task-3` and the rest.
pub(super) fn task_number(text: &str) -> Option<(String, &str)> {
    let word = text.find(|letter: char| !letter.is_alphabetic()).filter(|end| *end > 0)?;
    if !["task", "tasks", "tarefa", "tarefas"].contains(&text[..word].to_lowercase().as_str()) {
        return None;
    }
    numbered(text[word..].trim_start())
}

/// `3…`, `#3…` or `1.2…` as the id of a task and the rest.
pub(super) fn numbered(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('#').unwrap_or(text);
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    number
        .starts_with(|letter: char| letter.is_ascii_digit())
        .then(|| (format!("task-{number}"), &text[number.len()..]))
}
